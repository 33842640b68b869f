//! A breaker in the store: whether it is open, and else the failures in a row. The window of the last minute is not
//! kept: the clock that it is counted on belongs to the process. Nor is the generation: no attempt outlives its process.

use super::{Breaker, FailureRun, Phase, Window};
use crate::lane::bytes::{Reader, Writer};

impl Breaker {
    pub(crate) fn write(&self, out: &mut Writer) {
        match &self.phase {
            Phase::Closed { run, .. } => {
                out.byte(0);
                out.number(run.length.into());
                out.option(run.first, Writer::id);
                out.flag(run.several);
            }
            Phase::Open { since, until, trips, successes, .. } => {
                out.byte(1);
                out.time(*since);
                out.time(*until);
                out.number((*trips).into());
                out.number((*successes).into());
            }
        }
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let phase = match from.byte()? {
            0 => {
                let length = from.number_u32()?;
                let (first, several) = (from.option(Reader::id)?, from.flag()?);
                Phase::Closed { window: Window::default(), run: FailureRun { length, first, several } }
            }
            1 => Phase::Open {
                since: from.time()?,
                until: from.time()?,
                trips: from.number_u32().filter(|trips| *trips > 0)?,
                successes: from.number_u32().filter(|count| *count < u32::MAX)?,
                probe_out: false,
            },
            _ => return None,
        };
        Some(Self { phase, generation: 0 })
    }
}
