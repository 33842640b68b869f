//! A learned pace in the store: all of it but what hangs on this process's clock. A wait is kept as its length, and
//! [`Pace::rebase`] gives it a place on the next process's clock.

use super::{Pace, Phase};
use crate::lane::bytes::{Reader, Writer};
use crate::time::{Millis, Mono};

const PROCESS_START: Mono = Mono::from_millis(0);

impl Pace {
    pub(crate) fn write(&self, out: &mut Writer) {
        match self.phase {
            Phase::Searching { rate } => {
                out.byte(0);
                out.float(rate);
            }
            Phase::Cruising { floor, ceiling } => {
                out.byte(1);
                out.float(floor);
                out.float(ceiling);
            }
            Phase::Shut { at, until, rate } => {
                out.byte(2);
                out.millis(until.since(at));
                out.float(rate);
            }
        }
        out.signed(self.busy_us);
        out.number(self.passed.into());
        out.option(self.usual_wait, Writer::millis);
        out.float(self.driven);
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let phase = match from.byte()? {
            0 => Phase::Searching { rate: rate(from)? },
            1 => Phase::Cruising { floor: rate(from)?, ceiling: rate(from)? },
            2 => {
                let wait = from.millis().filter(|wait| *wait >= Millis::ZERO)?;
                let until = Mono::from_millis(wait.get());
                Phase::Shut { at: PROCESS_START, until, rate: rate(from)? }
            }
            _ => return None,
        };
        Some(Self {
            phase,
            busy_us: from.signed().filter(|busy| *busy >= 0)?,
            passed: from.number_u32()?,
            usual_wait: from.option(|from| from.millis().filter(|wait| *wait > Millis::ZERO))?,
            stated: None,
            driven: rate(from)?,
            next_us: 0,
        })
    }
}

/// No pace stands still or goes backwards.
fn rate(from: &mut Reader<'_>) -> Option<f64> {
    from.float().filter(|rate| *rate > 0.0)
}
