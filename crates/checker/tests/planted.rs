//! Goal: each promise that is broken is found, by its own judge and no other; and what only looks broken is not.
//! Method: a small good history, broken in one way.

#![expect(clippy::unwrap_used, reason = "a history that a test builds has what it looks for")]
#![expect(clippy::needless_pass_by_value, reason = "events are made where they are added")]

#[path = "planted/bounds.rs"]
mod bounds;
#[path = "planted/files.rs"]
mod files;
#[path = "planted/fleet.rs"]
mod fleet;
#[path = "planted/lines.rs"]
mod lines;
#[path = "planted/messages.rs"]
mod messages;
#[path = "planted/shut.rs"]
mod shut;
#[path = "planted/world.rs"]
mod world;

/// Whoever adds a judge adds a history that turns it red, and it alone.
#[test]
fn every_judge_has_a_history_that_only_it_finds_broken() {
    let histories = [
        include_str!("planted/bounds.rs"),
        include_str!("planted/fleet.rs"),
        include_str!("planted/lines.rs"),
        include_str!("planted/messages.rs"),
        include_str!("planted/shut.rs"),
    ];
    for (name, _) in tidegate_checker::invariant::ALL {
        let expected = format!("&[\"{name}\"]");
        assert!(histories.iter().any(|text| text.contains(&expected)), "no history breaks {name}");
    }
}
