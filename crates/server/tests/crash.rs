//! The server is killed at random moments under load and started again, many times in a row. The checks read only what the
//! receivers saw and what the API says.
//!
//! `XTASK_KILLS` says how often (the benchmarks ask for 50), `XTASK_SEED` where chance begins.

mod kit;

#[path = "crash/checks.rs"]
mod checks;
#[path = "crash/dice.rs"]
mod dice;
#[path = "crash/producer.rs"]
mod producer;
#[path = "crash/world.rs"]
mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use dice::Dice;
use kit::{Server, millis, now, secs};
use producer::Ledger;
use world::World;

/// One life of the server.
struct Life {
    /// When its process was started.
    from: Instant,
    /// When it was killed; none for the last.
    killed_at: Option<Instant>,
}

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
    let mut lives = vec![Life { from: now(), killed_at: None }];
    let mut server = Server::start(&[]).await;
    let world = World::build(&server).await;
    let (ledger, stop) = (Arc::new(Ledger::default()), Arc::new(AtomicBool::new(false)));
    let producers = producer::start(&server.client(), &ledger, &stop, seed);

    for _ in 0..kills {
        // Now and then it does not even live to be ready.
        let within = if dice.below(5) == 0 { 60 } else { 1_500 };
        tokio::time::sleep(millis(dice.below(within))).await;
        // What it sent before it died may be seen a moment later, so the moment is taken before and not after.
        lives.last_mut().expect("there is one").killed_at = Some(now());
        server.kill9();
        lives.push(Life { from: now(), killed_at: None });
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
    checks::all(&world, &published, &lives);
    checks::api_agrees(&server, &published).await;
    println!("seed {seed}: everything holds");
}
