//! Simulated deliveries per second, and whether memory grows with the length of a run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use tidegate_core::policy::Policy;
use tidegate_core::time::{Millis, Timestamp};
use tidegate_sim::chance::Chance;
use tidegate_sim::run::{Commit, Destination, Faults, Note, Observer, Setup, Sim, Storage, View};
use tidegate_sim::scenario;
use tidegate_sim::traffic::{Arrivals, Source, Template};
use tidegate_sim::world::{Latency, Model};

use crate::row::{Bound, Row};
use crate::stopwatch::{per_second, seconds};

pub(crate) fn measure() -> Vec<Row> {
    // First, while the process has no memory left over from other runs.
    let (short, long) = (resident_after(30), resident_after(180));
    let limit = bare_events();
    let mut rows = Vec::new();
    if let Some(fleet) = scenario::ALL.iter().find(|scenario| scenario.name == "fleet") {
        let (took, report) = seconds(|| (fleet.run)(101, &mut |_, _| {}));
        rows.push(Row {
            what: format!(
                "simulated deliveries, fleet, {:.1} million of them",
                report.deliveries as f64 / 1e6
            ),
            measured: report.deliveries as f64 / took,
            unit: "/s",
            required: Some(Bound::AtLeast(300_000.0)),
            limit: Some((limit, "bare deliveries: three events of a heap and a draw each")),
        });
    }
    rows.push(Row {
        what: "memory after 30 simulated days".into(),
        measured: short,
        unit: "KiB",
        required: None,
        limit: None,
    });
    rows.push(Row {
        what: "memory after 180 simulated days".into(),
        measured: long,
        unit: "KiB",
        required: None,
        limit: None,
    });
    rows
}

/// What any simulation of a delivery must do: plan and take three events, and draw a number for each.
fn bare_events() -> f64 {
    let mut chance = Chance::new(1);
    let mut heap: BinaryHeap<Reverse<(u64, u32)>> = (0..1_000).map(|n| Reverse((n, 0))).collect();
    per_second(|| {
        for _ in 0..3 {
            let Reverse((at, kind)) = heap.pop().expect("as many go in as come out");
            heap.push(Reverse((at + chance.below(1_000), kind ^ 1)));
        }
        black_box(&heap);
    })
}

struct Counter(u64);

impl Observer for Counter {
    fn note(&mut self, _: &View<'_>, note: &Note<'_>) {
        self.0 += u64::from(matches!(note, Note::Sent(..)));
    }
}

/// Resident memory of this process after so many days of a small world, in KiB.
fn resident_after(days: i64) -> f64 {
    let start = Timestamp::from_millis(1_777_593_600_000);
    let model = Model::healthy(Latency::LogNormal { median_ms: 120.0, sigma: 0.6 });
    let destination = |index: u32| Destination {
        name: format!("d{index}"),
        account: index % 5,
        policy: Policy::default(),
        model: model.clone(),
    };
    let arrivals = Arrivals::per_day(500.0, start, start + Millis::days(days));
    let source = |index| Source {
        destination: index,
        template: Template::new("order.created"),
        arrivals: arrivals.clone(),
    };
    let setup = Setup {
        seed: 7,
        start,
        slots: 1_000,
        commit: Commit::Instant,
        storage: Storage::Memory,
        destinations: (0..50).map(destination).collect(),
        sources: (0..50).map(source).collect(),
        faults: Faults::default(),
    };
    let mut sim = Sim::new(setup, Counter(0));
    sim.run_for(Millis::days(days));
    black_box(sim.observer.0);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    resident.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(f64::NAN)
}
