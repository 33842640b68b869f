#![allow(missing_docs, clippy::all, clippy::disallowed_methods, clippy::print_stdout)]
use tidegate_core::policy::Policy;
use tidegate_core::time::*;
use tidegate_sim::run::*;
use tidegate_sim::traffic::*;
use tidegate_sim::world::*;
#[derive(Default)]
struct C {
    sent: u64,
    settled: u64,
    acc: u64,
}
impl Observer for C {
    fn note(&mut self, _: &View<'_>, n: &Note<'_>) {
        match n {
            Note::Sent(..) => self.sent += 1,
            Note::Settled(_, d) => {
                if d.status.is_final() {
                    self.settled += 1
                }
            }
            Note::Accepted(..) => self.acc += 1,
            _ => {}
        }
    }
}
fn main() {
    let start = Timestamp::parse("2026-05-01T00:00:00Z").unwrap();
    let to = start + Millis::days(60);
    let mut destinations = vec![];
    let mut sources = vec![];
    for i in 0..200 {
        destinations.push(Destination {
            name: format!("d{i}"),
            account: i as u32 % 10,
            policy: Policy::default(),
            model: Model::healthy(Latency::LogNormal { median_ms: 100.0 + 10.0 * i as f64, sigma: 0.5 })
                .troubled(
                    Outages {
                        between: Millis::days(3),
                        lasting: Millis::minutes(20),
                        kind: TroubleKind::Hangs,
                    }
                    .draw(start, to, &mut tidegate_sim::chance::Chance::new(i)),
                ),
        });
        sources.push(Source {
            destination: i as usize,
            template: Template::new("order.created"),
            arrivals: Arrivals::per_day(400.0, start, to),
        });
    }
    for grouped in [false, true] {
        let setup = Setup {
            seed: 1,
            start,
            slots: 2000,
            commit: if grouped { Commit::Grouped(Millis::new(2)) } else { Commit::Instant },
            destinations: destinations.clone(),
            sources: sources.clone(),
            faults: if grouped {
                Faults {
                    crash_every: Some(Millis::minutes(5)),
                    lost_wakes: 0.1,
                    clock_steps: Some((Millis::hours(1), Millis::hours(1))),
                }
            } else {
                Faults::default()
            },
        };
        let t = std::time::Instant::now();
        let mut sim = Sim::new(setup, C::default());
        for d in 0..(if grouped { 2 } else { 60 }) {
            sim.run_for(Millis::days(1));
            if d % 10 == 0 {
                println!(
                    "day {d} {:.2} sent {} open {}",
                    t.elapsed().as_secs_f64(),
                    sim.observer.sent,
                    sim.open_deliveries()
                );
            }
        }
        sim.heal();
        let q = sim.run_until_quiet(Millis::days(10));
        let e = t.elapsed().as_secs_f64();
        let c = &sim.observer;
        println!(
            "quiet {q} accepted {} sent {} final {} open {} in {e:.2}s = {:.0}/s trace {:x}",
            c.acc,
            c.sent,
            c.settled,
            sim.open_deliveries(),
            c.settled as f64 / e,
            sim.trace()
        );
    }
}
