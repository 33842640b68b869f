//! I9: while a destination is shut nothing begins there, then one probe at a time.
//!
//! Judged by the answers that its receiver gave: 429, 503 with `Retry-After`, 410, and failures in a row, which open the
//! breaker (its other rule, the share of failures, can only open it earlier). What was learned just before a fault may be
//! lost with it, a person may lift any hold, and setting the clock moves every end: then the judge forgets, too.

mod breaker;
mod gone;
mod wait;

use crate::names::Name;
use crate::run::{Ending, Receipt, Run, SECOND};
use crate::verdict::Verdict;
use breaker::Breaker;
use gone::Gone;
use wait::Wait;

/// How long a destination is left alone that does not say for how long, the first time.
const LEFT_ALONE: u64 = 60 * SECOND;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I9", "throttle, 503, breaker, 410");
    let mut probes = 0;
    for (place, _) in run.places() {
        let mut moments: Vec<(u64, bool, &Receipt)> = Vec::new();
        for receipt in run.requests_at(place) {
            moments.push((receipt.t, true, receipt));
            if receipt.ending != Ending::Open {
                moments.push((receipt.end, false, receipt));
            }
        }
        // Ends before starts of the same moment: whether a start came before is told by its own time.
        moments.sort_by_key(|(at, starts, _)| (*at, *starts));
        let mut lane = Lane::new(run, place);
        for (_, starts, receipt) in moments {
            if starts {
                lane.begins(receipt, &mut verdict);
            } else {
                lane.ends(receipt);
            }
        }
        probes += lane.probes;
    }
    verdict.note(probes, "probes");
    verdict
}

/// Why nothing may begin, since when, and until when.
#[derive(Clone, Copy)]
struct Shut<'a> {
    learned: u64,
    until: u64,
    probe: Option<&'a Receipt>,
    /// The delivery that was answered so: its next request was not on its way.
    told: Option<Name>,
}

impl<'a> Shut<'a> {
    const fn new(learned: u64, until: u64) -> Self {
        Self { learned, until, probe: None, told: None }
    }
    /// Whether the sender may not know of it any more, or not be bound by it, at `t`.
    fn is_forgotten(&self, run: &Run, place: u32, t: u64) -> bool {
        run.faults.clock_was_set(self.learned, t)
            || run.destinations[place as usize].timeline.is_touched(self.learned, t)
            || run.faults.may_forget(self.learned, t)
    }
    /// A request begins: is that wrong?
    fn begins(&mut self, run: &Run, receipt: &'a Receipt, single: bool) -> Option<String> {
        let t = receipt.t;
        // Nobody can have read an answer sooner: what begins within J of it is on its way, as many as may be open at a time.
        let underway = t <= self.learned.saturating_add(run.jitter) && self.told != Some(receipt.delivery);
        if t <= self.learned || underway {
            return None;
        }
        if t.saturating_add(run.rounded()) < self.until {
            return Some(format!("shut until {}", run.at(self.until)));
        }
        if !single {
            return None;
        }
        let open = self.probe.filter(|probe| run.known_end(probe) > t && !run.faults.is_replaced(probe.t, t));
        self.probe = Some(receipt);
        open.map(|probe| format!("while a probe, {}, is out", run.show(probe)))
    }
    fn is_probe(&self, receipt: &Receipt) -> bool {
        self.probe.is_some_and(|probe| std::ptr::eq(probe, receipt))
    }
}

/// One destination, as its receiver's answers make it.
struct Lane<'a> {
    run: &'a Run,
    place: u32,
    throttled: Option<Shut<'a>>,
    /// When it last said 429 to a request that began after the time before.
    throttled_at: Option<u64>,
    unavailable: Option<Shut<'a>>,
    breaker: Breaker<'a>,
    gone: Gone,
    probes: u64,
}

impl<'a> Lane<'a> {
    fn new(run: &'a Run, place: u32) -> Self {
        let (throttled, throttled_at, unavailable) = (None, None, None);
        let (breaker, gone) = (Breaker::new(run, place), Gone::default());
        Self { run, place, throttled, throttled_at, unavailable, breaker, gone, probes: 0 }
    }

    fn begins(&mut self, receipt: &'a Receipt, verdict: &mut Verdict) {
        let (run, place) = (self.run, self.place);
        for (what, shut, single) in [
            ("throttled", &mut self.throttled, true),
            ("unavailable", &mut self.unavailable, false),
            ("its breaker open", self.breaker.open(), true),
        ] {
            *shut = shut.take().filter(|shut| !shut.is_forgotten(run, place, receipt.t));
            let Some(closed) = shut else { continue };
            verdict.judge();
            if let Some(wrong) = closed.begins(run, receipt, single) {
                let learned = run.at(closed.learned);
                verdict.wrong(|| format!("{} began: {what} since {learned}, {wrong}", run.show(receipt)));
            }
            self.probes += u64::from(closed.is_probe(receipt));
        }
        self.breaker.begins(receipt);
        self.gone.begins(run, place, receipt, verdict);
    }

    fn ends(&mut self, receipt: &'a Receipt) {
        let run = self.run;
        self.throttled = self.throttled.filter(|shut| !shut.is_probe(receipt));
        self.breaker.ends(receipt);
        self.gone.ends(run, self.place, receipt);
        let asked = Wait::asked(run, receipt);
        let (shut, wait) = match (receipt.ending, receipt.status) {
            (Ending::Answered, 429) => {
                let begun = |at: u64| receipt.t <= at.saturating_add(run.late());
                let stale = self.throttled_at.is_some_and(begun);
                if !stale {
                    self.throttled_at = Some(receipt.end);
                }
                let wait = asked.or((!stale).then_some(LEFT_ALONE));
                (&mut self.throttled, wait)
            }
            (Ending::Answered, 503) => (&mut self.unavailable, asked),
            _ => return,
        };
        let Some(wait) = wait else { return };
        let until = receipt.end.saturating_add(wait);
        if shut.is_none_or(|shut| until > shut.until) {
            let probe = shut.and_then(|shut| shut.probe);
            let told = Some(receipt.delivery);
            *shut = Some(Shut { probe, told, ..Shut::new(receipt.end, until) });
        }
    }
}
