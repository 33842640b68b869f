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
