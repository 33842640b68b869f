//! Runs a scenario file and says what came of it.

use serde::Serialize;
use tidegate_core::time::Millis;

use super::behaviour::fit_between;
use super::figures::{Backlog, Figures, Total};
use super::tally::Tally;
use super::{Planned, ScenarioFile};
use crate::chance::Chance;
use crate::report::{Finding, Picture, Report};
use crate::run::{Destination, Faults, Observer, Setup, Sim, Storage};
use crate::scenario::Progress;
use crate::series::Series;
use crate::words::{count, moment, percent, plural, span};

/// Steps of a picture at most.
const PICTURE_STEPS: u32 = 288;
/// The parts in which a run tells how far it is.
const PARTS: i64 = 200;
/// The label under which the seed makes outages, apart from all that the run itself draws.
const OUTAGES: u64 = 0x007A_6E73;

/// What came of a file: the report, and a row for each destination.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The report.
    #[serde(flatten)]
    pub report: Report,
    /// The destinations, in the order of the file.
    pub destinations: Vec<Figures>,
}

impl ScenarioFile {
    /// Runs it under a seed.
    pub fn run(&self, seed: u64, progress: Progress<'_>) -> Run {
        self.run_watched(seed, (), progress).0
    }

    /// The same, with somebody else watching, too.
    pub fn run_watched<O: Observer>(&self, seed: u64, watcher: O, progress: Progress<'_>) -> (Run, O) {
        let tally = Tally::new(self.destinations.len());
        let series = Series::in_round_steps(self.start, self.length, PICTURE_STEPS);
        let mut sim = Sim::new(self.setup(seed), ((tally, series), watcher));
        for part in 0..PARTS {
            let at = |part: i64| self.length.scaled(part, PARTS);
            progress(part as f64 / PARTS as f64 * 0.95, &format!("{:.0}", sim.now().wall.to_jiff()));
            sim.run_for(at(part + 1) - at(part));
        }
        progress(0.95, "waiting for what is left");
        sim.heal();
        sim.run_until_quiet(self.drain);
        progress(1.0, "done");
        let simulated_seconds = Millis::new(sim.now().mono.as_millis()).as_secs_f64();
        let open: Vec<usize> =
            sim.dispatcher().lanes().iter().map(|lane| sim.backing().open_count(lane.id())).collect();
        let ((tally, series), watcher) = sim.observer;
        let names = self.destinations.iter().map(|planned| {
            let Destination { name, account, .. } = &planned.destination;
            (name.as_str(), self.accounts.get(*account as usize).map_or("", String::as_str))
        });
        let destinations = tally.figures(|lane| open.get(lane).copied().unwrap_or(0), names);
        let total = tally.total(&destinations);
        let report = Report {
            scenario: self.name.clone(),
            seed,
            world: self.world(),
            deliveries: total.ends.sum(),
            attempts: total.requests,
            simulated_seconds,
            findings: self.findings(&total),
            pictures: vec![Picture { title: self.name.clone(), series }],
        };
        (Run { report, destinations }, watcher)
    }

    /// Its world under a seed.
    pub fn setup(&self, seed: u64) -> Setup {
        let mut chance = Chance::new(seed ^ OUTAGES);
        let end = self.start + self.length;
        let destination = |(label, planned): (u64, &Planned)| {
            let mut destination = planned.destination.clone();
            let mut chance = chance.fork(label);
            if let Some(outages) = planned.outages {
                let drawn = outages.draw(self.start, end, &mut chance);
                destination.model.troubles = fit_between(&destination.model.troubles, drawn);
            }
            destination
        };
        Setup {
            seed,
            start: self.start,
            slots: self.slots,
            commit: self.commit,
            storage: Storage::Memory,
            destinations: (1..).zip(&self.destinations).map(destination).collect(),
            sources: self.sources.clone(),
            faults: self.faults,
        }
    }

    fn world(&self) -> String {
        let about = self.about.as_ref().map(|about| format!("{about} ")).unwrap_or_default();
        let destinations = plural(self.destinations.len() as u64, "destination", "destinations");
        let faults = if self.faults == Faults::default() { "" } else { ", with faults on our side" };
        format!(
            "{about}({destinations}, {} of traffic from {}{faults}.)",
            span(self.length),
            moment(self.start)
        )
    }

    fn findings(&self, total: &Total) -> Vec<Finding> {
        let known = total.ends.sum() + total.still_open;
        let cut_off = total.requests.saturating_sub(total.attempts.values().sum());
        let outcomes = total.attempts.iter().map(|(word, number)| (*word, *number));
        let outcomes: Vec<String> = outcomes
            .chain(Some(("cut off", cut_off)).filter(|_| cut_off > 0))
            .map(|(word, number)| format!("{} {word}", count(number)))
            .collect();
        let latency = |at: Option<Millis>| at.map_or("–".to_owned(), span);
        let longest = total.longest.as_ref().map_or("–".to_owned(), |(name, longest)| {
            format!("{} at {name}, mostly {}", span(longest.wait), longest.reason)
        });
        let Backlog { most, at, drained_at } = total.backlog;
        let backlog = at.map_or("none".to_owned(), |at| format!("{} at {}", count(most as u64), moment(at)));
        let drained = match (at, drained_at) {
            (Some(from), Some(to)) => format!("{}, {} later", moment(to), span(to - from)),
            (None, _) => "–".to_owned(),
            (Some(_), None) => format!("not within {} of the end of the traffic", span(self.drain)),
        };
        let ends = [
            ("delivered", total.ends.delivered),
            ("dead letter", total.ends.dead_letter),
            ("expired", total.ends.expired),
            ("cancelled", total.ends.cancelled),
            ("still open at the end", total.still_open),
        ];
        let end_of = |(what, number): (&str, u64)| {
            Finding::note(what, format!("{} ({})", count(number), percent(number, total.accepted)))
        };
        let mut findings = vec![Finding::check(
            "accepted",
            count(total.accepted),
            "all accounted for",
            known == total.accepted,
        )];
        findings.extend(
            ends.into_iter().filter(|(what, number)| *number > 0 || *what == "delivered").map(end_of),
        );
        findings.extend([
            Finding::note("requests by outcome", outcomes.join(", ")),
            Finding::note(
                "acceptance to delivery, p50 and p99",
                format!("{} and {}", latency(total.p50()), latency(total.p99())),
            ),
            Finding::note("longest wait", longest),
            Finding::note(
                "in flight at most",
                format!("{} of {}", total.peak_in_flight, count(self.slots.into())),
            ),
            Finding::note("largest backlog", backlog),
            Finding::note("drained", drained),
        ]);
        findings.extend(self.expect.findings(total));
        findings
    }
}
