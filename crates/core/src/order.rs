//! Order among the deliveries of one destination.

use std::sync::Arc;

use crate::delivery::Delivery;
use crate::id::DeliveryId;
use crate::invalid::Invalid;

/// Which deliveries of a destination keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ordering {
    /// None: the first in line goes first, several at a time.
    #[default]
    None,
    /// All: one at a time; the head blocks until it is final.
    Fifo,
    /// Those with the same `ordering_key`; keys go in parallel, deliveries without a key are unordered.
    Key,
}

impl Ordering {
    /// The kind that `word` names.
    pub fn parse(word: &str) -> Result<Self, Invalid> {
        match word {
            "none" => Ok(Self::None),
            "fifo" => Ok(Self::Fifo),
            "key" => Ok(Self::Key),
            other => Err(Invalid::new("ordering", format_args!("\"{other}\""), "none, fifo or key")),
        }
    }

    /// The line that `delivery` stands in, if it keeps any order.
    pub fn line(self, delivery: &Delivery) -> Option<Line> {
        match self {
            Self::None => None,
            Self::Fifo => Some(Line::Whole),
            Self::Key => delivery.ordering_key.clone().map(Line::Key),
        }
    }
}

/// Deliveries that go one after the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Line {
    /// All of the destination's.
    Whole,
    /// Those with this key.
    Key(Arc<str>),
}

/// What follows in a line when a delivery is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnExhausted {
    /// The next one goes.
    #[default]
    Skip,
    /// Nothing goes until a person resumes it.
    Halt,
}

impl OnExhausted {
    /// The kind that `word` names.
    pub fn parse(word: &str) -> Result<Self, Invalid> {
        match word {
            "skip" => Ok(Self::Skip),
            "halt" => Ok(Self::Halt),
            other => Err(Invalid::new("on_exhausted", format_args!("\"{other}\""), "skip or halt")),
        }
    }
}

/// Whose turn it is in a delivery's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Its own, or it stands in no line.
    Its,
    /// Another one's, which is not final yet.
    Behind(DeliveryId),
    /// Nobody's: this one is dead, and the line stands until a person resumes it.
    Halted(DeliveryId),
}
