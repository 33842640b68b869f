//! `fairness`: those who have little to send do not wait for one who has much, and nobody waits for those who hang.

mod busy;
mod hanging;

use tidegate_core::time::Millis;

use super::Progress;
use super::count::Count;
use crate::report::{Finding, Picture, Report};
use crate::series::Series;
use busy::{Past, Rush};
use hanging::{Hang, LARGE, LATER, SMALL};

/// What all worlds together have shown so far.
#[derive(Default)]
struct Story {
    findings: Vec<Finding>,
    pictures: Vec<Picture>,
    count: Count,
    lasted: Millis,
}

impl Story {
    fn add(&mut self, count: Count, lasted: Millis) {
        self.count += count;
        self.lasted += lasted;
    }
    fn show(&mut self, title: &str, series: Series) {
        self.pictures.push(Picture { title: title.into(), series });
    }
}

/// Runs it.
pub(super) fn run(seed: u64, progress: Progress<'_>) -> Report {
    let mut story = Story::default();
    progress(0.0, "one busy destination among 20");
    busy_one(seed, &mut story);
    progress(0.05, "1,000 destinations, none hangs");
    let without = hanging::run(seed, &LARGE, Hang::Absent);
    progress(0.35, "100 of them never answer");
    let always = hanging::run(seed, &LARGE, Hang::Always);
    progress(0.65, "100 of them stop answering");
    let later = hanging::run(seed, &LARGE, Hang::Later);
    progress(0.95, "500 new ones never answer");
    let small = hanging::run(seed, &SMALL, Hang::Absent);
    let new = hanging::run(seed, &SMALL, Hang::New);
    let stop = format!("100 of 1,000 destinations stop answering after {LATER}");
    story.findings.extend([
        hanging::judge("100 of 1,000 destinations never answer", &LARGE, &without, &always),
        hanging::judge(&stop, &LARGE, &without, &later),
        hanging::judge("500 new destinations never answer, 600 slots", &SMALL, &small, &new),
    ]);
    for ran in [&without, &always, &later, &small, &new] {
        story.add(ran.count, ran.lasted);
    }
    story.show(&stop, later.series);
    story.show("500 new destinations never answer, 600 slots", new.series);
    Report {
        scenario: "fairness".into(),
        seed,
        world: "first 180 events for one destination and 20 for 19 others, on a node with 10 slots; then 1,000 destinations \
                with 4 events a second each, of which 100 hang, on a node with 2,000 slots; then 500 with an event every \
                800 ms each, to which 500 are added that hang, on a node with 600 slots"
            .into(),
        deliveries: story.count.ended,
        attempts: story.count.attempts,
        simulated_seconds: story.lasted.as_secs_f64(),
        findings: story.findings,
        pictures: story.pictures,
    }
}

fn busy_one(seed: u64, story: &mut Story) {
    let worlds = [(Past::None, Rush::Together), (Past::InUse, Rush::Together), (Past::InUse, Rush::Before)];
    for (past, rush) in worlds {
        let alone = busy::run(seed, past, Rush::Absent);
        let crowded = busy::run(seed, past, rush);
        story.findings.push(busy::judge(past, rush, &alone, &crowded));
        story.add(alone.count, alone.lasted);
        story.add(crowded.count, crowded.lasted);
        if rush == Rush::Before {
            story.show("180 for one destination, then 20 for 19 others", crowded.series);
        }
    }
}
