//! What a destination's attempts have taught, as bytes: the figures, and the samples day by day. What is recent enough to
//! be a spike or an incident belongs to the process: a new one begins without.

use super::learned::{Estimate, Learned, Rollout};
use super::recent::{Recent, Tally};
use super::{Timeouts, Watch};
use crate::lane::bytes::{Reader, Writer};
use crate::sketch::Quantile;

const VERSION: u8 = 1;
/// The days of the years -9999 to 9999 lie well within.
const LAST_DAY: i32 = 5_000_000;

impl Timeouts {
    /// All that is to be stored.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new(VERSION);
        out.option(self.learned.as_ref(), write_learned);
        for (number, sketch) in self.days() {
            out.signed(number.into());
            out.block(&sketch);
        }
        out.into_bytes()
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::new(bytes, VERSION)?;
        let learned = from.option(read_learned)?;
        let mut days: Vec<(i32, &[u8])> = Vec::new();
        while from.end().is_none() {
            let number =
                i32::try_from(from.signed()?).ok().filter(|day| (-LAST_DAY..LAST_DAY).contains(day))?;
            if days.last().is_some_and(|(before, _)| number <= *before) {
                return None;
            }
            days.push((number, from.block()?));
        }
        Self::restore(learned, days).ok()
    }

    /// The process is a new one, with the breaker open or not: what it had not yet made up its mind about is gone.
    pub(crate) fn restarted(&mut self, breaker_open: bool) {
        self.recent = Recent::default();
        self.watch = if breaker_open { Watch::Outage } else { Watch::default() };
    }
}

fn write_learned(out: &mut Writer, learned: &Learned) {
    let Learned { timeout, first_sample_at, last_sample_at, recompute_at, estimate, tally, rollout } =
        learned;
    out.option(*timeout, Writer::millis);
    out.time(*first_sample_at);
    out.time(*last_sample_at);
    out.time(*recompute_at);
    out.option(*estimate, |out, estimate| {
        out.time(estimate.at);
        match estimate.percentile {
            Quantile::Empty => out.byte(0),
            Quantile::At(time) => {
                out.byte(1);
                out.millis(time);
            }
            Quantile::AmongCensored { beyond } => {
                out.byte(2);
                out.millis(beyond);
            }
        }
    });
    write_tally(out, *tally);
    match *rollout {
        Rollout::Settled => out.byte(0),
        Rollout::Trial { baseline, since, before } => {
            out.byte(1);
            out.millis(baseline);
            out.time(since);
            write_tally(out, before);
        }
        Rollout::Waiting { until } => {
            out.byte(2);
            out.time(until);
        }
    }
}

fn read_learned(from: &mut Reader<'_>) -> Option<Learned> {
    Some(Learned {
        timeout: from.option(Reader::millis)?,
        first_sample_at: from.time()?,
        last_sample_at: from.time()?,
        recompute_at: from.time()?,
        estimate: from.option(|from| {
            let at = from.time()?;
            let percentile = match from.byte()? {
                0 => Quantile::Empty,
                1 => Quantile::At(from.millis()?),
                2 => Quantile::AmongCensored { beyond: from.millis()? },
                _ => return None,
            };
            Some(Estimate { at, percentile })
        })?,
        tally: read_tally(from)?,
        rollout: match from.byte()? {
            0 => Rollout::Settled,
            1 => Rollout::Trial { baseline: from.millis()?, since: from.time()?, before: read_tally(from)? },
            2 => Rollout::Waiting { until: from.time()? },
            _ => return None,
        },
    })
}

fn write_tally(out: &mut Writer, tally: Tally) {
    out.number(tally.attempts.into());
    out.number(tally.timeouts.into());
}

fn read_tally(from: &mut Reader<'_>) -> Option<Tally> {
    Some(Tally { attempts: from.number_u32()?, timeouts: from.number_u32()? })
}
