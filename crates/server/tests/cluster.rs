//! Three nodes on one PostgreSQL, 200 destinations with every kind of bound, load on all nodes, and something that goes
//! wrong. The checks read only what the receivers saw, what the producers were told, and what the API says.
//!
//! `XTASK_NEMESIS` says how many runs (3 if not said; from 10 on every fault has its turn, with another one after it), and
//! `XTASK_SEED` with which seed they begin. Without PostgreSQL there is nothing to test.
#![expect(clippy::print_stdout, reason = "whoever runs it wants to see what goes wrong, and when")]

mod kit;

#[path = "cluster/checks.rs"]
mod checks;
#[path = "cluster/nemesis.rs"]
mod nemesis;
#[path = "cluster/node.rs"]
mod node;
#[path = "cluster/producer.rs"]
mod producer;
#[path = "cluster/proxy.rs"]
mod proxy;
#[path = "cluster/standstill.rs"]
mod standstill;
#[path = "cluster/world.rs"]
mod world;

use std::path::Path;
use std::sync::Arc;

use checks::Findings;
use kit::{Dice, Postgres, now, secs, until};
use nemesis::{ALL, Kind};
use node::{Cluster, NODES, Needs};
use producer::Ledger;
use standstill::Standstills;
use world::World;

/// Runs where nobody says how many.
const RUNS: u64 = 3;

fn number_from(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Goal: whatever fails, nothing that was answered with 202 is lost, no bound is broken, and deliveries go on in time.
/// Method: publish to all nodes without pause, let something fail, heal it, let it come to rest, and compare.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn whatever_fails_nothing_is_lost_and_every_bound_holds() {
    let Some(programs) = Postgres::programs() else {
        kit::skip(kit::NO_POSTGRES);
        return;
    };
    let (runs, first) = (number_from("XTASK_NEMESIS", RUNS), number_from("XTASK_SEED", 0));
    for seed in first..first + runs {
        run(&programs, seed, runs >= ALL.len() as u64).await;
    }
}

/// Goal: whoever asks a node whether it is ready learns whether it may work, also while nobody publishes.
/// Method: cut one of two off from the database until its lease is over, and let it back.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_ready_while_it_has_its_lease() {
    let Some(programs) = Postgres::programs() else {
        kit::skip(kit::NO_POSTGRES);
        return;
    };
    let mut cluster = Cluster::start(&programs, Needs::default()).await;
    let nodes = cluster.nodes[0].server.get("/v1/nodes").await.expect(200);
    assert_ne!(nodes["items"][0]["slot_count"], 0, "who is ready has its part: {nodes}");
    cluster.add_node().await;
    let [cut_off, other] = &cluster.nodes[..] else { panic!("two nodes") };

    let slots = async |wanted: &[u64]| {
        other.server.get("/readyz").await.expect(200);
        let nodes = other.server.get("/v1/nodes").await.expect(200);
        let counts = nodes["items"].as_array().expect("a list").iter();
        let mut counts: Vec<u64> = counts.filter_map(|node| node["slot_count"].as_u64()).collect();
        counts.sort_unstable();
        counts == wanted
    };
    until(secs(20), "each has its share", async || slots(&[128, 128]).await).await;
    cut_off.proxy.silence();
    until(secs(20), "it says that it has no lease", async || {
        let answer = cut_off.server.get("/readyz").await;
        answer.status == 503 && answer.text().contains("lease")
    })
    .await;
    until(secs(20), "the other has everything", async || slots(&[0, 256]).await).await;
    cut_off.proxy.open();
    until(secs(20), "it is ready again", async || cut_off.server.get("/readyz").await.status == 200).await;
    until(secs(20), "it gets its share back, and both stay ready", async || {
        cut_off.server.get("/readyz").await.expect(200);
        slots(&[128, 128]).await
    })
    .await;
}

/// One run: a fault that its seed names, and perhaps another one.
async fn run(programs: &Path, seed: u64, long: bool) {
    let mut dice = Dice::new(seed);
    let turn = |number: u64| ALL[usize::try_from(number % ALL.len() as u64).unwrap_or(0)];
    let mut faults = vec![turn(seed)];
    if long {
        faults.push(turn(dice.below(100)));
    }
    println!(
        "seed {seed}: {faults:?}. Again: XTASK_NEMESIS={} XTASK_SEED={seed} cargo test -p tidegate --test cluster -- --nocapture",
        if long { ALL.len() } else { 1 }
    );
    if faults.contains(&Kind::ClocksApart) && node::faketime().is_none() {
        kit::skip("libfaketime is not installed: clocks stay together");
    }
    let began = now();
    let needs = Needs {
        standby: faults.iter().any(|kind| kind.needs().standby),
        clocks_apart: faults.iter().any(|kind| kind.needs().clocks_apart),
    };
    let mut cluster = Cluster::start(programs, needs).await;
    let world = World::build(&cluster.nodes[0].server).await;
    while cluster.nodes.len() < NODES {
        cluster.add_node().await;
    }
    let (nodes, ledger, standstills) = (cluster.clients(), Arc::new(Ledger::default()), Standstills::watch());
    let producers = producer::start(&nodes, &world, &ledger, seed);
    tokio::time::sleep(secs(4)).await;
    println!("  set up within {:.1} s", began.elapsed().as_secs_f64());

    let mut happened = Vec::new();
    for kind in &faults {
        let fault = kind.happen(&mut cluster, &mut dice).await;
        tokio::time::sleep(fault.delivers_by.saturating_duration_since(now()) + secs(2)).await;
        happened.push(fault);
    }
    ledger.stop();
    for producer in producers {
        producer.await.expect("a producer gets every event accepted");
    }
    happened.extend(standstills.seen());
    happened.sort_by_key(|fault| fault.from);

    for destination in world.of(world::Kind::Quiet) {
        assert_eq!(destination.receiver.count(), 0, "{} got something in quiet hours", destination.name);
    }
    world.end_quiet_hours(&nodes[usize::try_from(dice.below(NODES as u64)).unwrap_or(0)]).await;
    world.come_to_rest(&nodes[0], secs(60)).await;
    let (events, errors) = (ledger.events(), ledger.errors());
    println!(
        "  at rest after {:.1} s; producers had to try again {} times",
        began.elapsed().as_secs_f64(),
        errors.len()
    );
    let attempts = checks::attempts(&nodes[1], &world).await;
    Findings::new(&world, &happened, &events, attempts).check();
    checks::api_agrees(&nodes, &world, &events).await;
    if faults.iter().all(|kind| *kind == Kind::RollingRestart) {
        assert!(errors.is_empty(), "a rolling restart is not to be noticed: {errors:?}");
    }
    println!("  {}", checks::stale(&nodes).await);
    println!("seed {seed}: everything holds, after {:.1} s", began.elapsed().as_secs_f64());
}
