//! The server is killed at random moments under load and started again, many times in a row. The checks read only what the
//! receivers saw and what the API says.
//!
//! `XTASK_KILLS` says how often (the benchmarks ask for 50), `XTASK_SEED` where chance begins.

mod kit;

#[path = "crash/checks.rs"]
mod checks;
#[path = "crash/lives.rs"]
mod lives;
#[path = "crash/log.rs"]
mod log;
#[path = "crash/producer.rs"]
mod producer;
#[path = "crash/rate.rs"]
mod rate;
#[path = "crash/repeats.rs"]
mod repeats;
#[path = "crash/world.rs"]
mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kit::{Dice, Server, millis, secs};
use lives::Lives;
use producer::Ledger;
use world::World;

fn number_from(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Goal: whatever was answered with 202 is delivered, whenever the server dies, and no bound is broken meanwhile.
/// Method: publish without pause, kill at random moments (also while it starts), then let it come to rest and compare.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_random_moments_it_loses_nothing_and_keeps_every_bound() {
    let (kills, seed) = (number_from("XTASK_KILLS", 7), number_from("XTASK_SEED", 1));
    println!("seed {seed}, {kills} kills");
    let mut dice = Dice::new(seed);
    let mut lives = Lives::new();
    let mut server = Server::start(&[]).await;
    let world = World::build(&server).await;
    let (ledger, stop) = (Arc::new(Ledger::default()), Arc::new(AtomicBool::new(false)));
    let producers = producer::start(&server.client(), &ledger, &stop, seed);

    for _ in 0..kills {
        // Now and then it does not even live to be ready.
        let within = if dice.below(5) == 0 { 60 } else { 1_500 };
        tokio::time::sleep(millis(dice.below(within))).await;
        lives.end();
        server.kill9();
        world.drained().await;
        lives.begin();
        server.respawn();
        if dice.below(5) != 0 {
            server.ready().await;
        }
    }
    server.ready().await;
    stop.store(true, Ordering::Relaxed);
    for producer in producers {
        producer.await.expect("a producer fails no test itself");
    }

    world.check_quiet_hours_hold(&server, &ledger).await;
    world.end_quiet_hours(&server).await;
    world.come_to_rest(&server, secs(120)).await;
    let published = ledger.published();
    println!("{}", published.summary(&world));
    for line in checks::all(&server, &world, &published, &lives).await {
        println!("{line}");
    }
    checks::api_agrees(&server, &published).await;
    println!("seed {seed}: everything holds");
}
