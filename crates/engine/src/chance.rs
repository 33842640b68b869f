//! The one place that draws: numbers from the operating system, taken in blocks so that a draw costs no call.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use tidegate_core::draw::Draw;

/// Draws kept in stock.
const BLOCK: usize = 256;

/// Numbers that nobody can guess.
pub struct Chance {
    stock: Mutex<Stock>,
}

struct Stock {
    numbers: [u64; BLOCK],
    used: usize,
}

impl Chance {
    /// An empty stock: the first draw fills it.
    pub const fn new() -> Self {
        Self { stock: Mutex::new(Stock { numbers: [0; BLOCK], used: BLOCK }) }
    }

    /// The next number.
    pub fn draw(&self) -> Draw {
        let mut stock = self.stock.lock().unwrap_or_else(PoisonError::into_inner);
        if stock.used == BLOCK {
            let mut bytes = [0; BLOCK * 8];
            getrandom::fill(&mut bytes).expect("the operating system gives random numbers");
            for (number, bytes) in stock.numbers.iter_mut().zip(bytes.as_chunks().0) {
                *number = u64::from_ne_bytes(*bytes);
            }
            stock.used = 0;
        }
        let number = stock.numbers[stock.used];
        stock.used += 1;
        Draw(number)
    }
}

impl Default for Chance {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chance")
    }
}
