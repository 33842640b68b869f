//! What a store must do, whichever engine is inside: the real definition of its verbs.
//!
//! Each behaviour opens a store of its own through [`fixture::Bench`], and every store has two accounts with two
//! destinations each, so that a missing condition shows. Another engine joins by another way to open.

#![expect(clippy::unwrap_used, unreachable_pub, reason = "one test binary")]

#[path = "conformance/accept.rs"]
mod accept;
#[path = "conformance/change.rs"]
mod change;
#[path = "conformance/fixture.rs"]
mod fixture;
#[path = "conformance/forget.rs"]
mod forget;
#[path = "conformance/lists.rs"]
mod lists;
#[path = "conformance/model.rs"]
mod model;
#[path = "conformance/record.rs"]
mod record;
#[path = "conformance/refill.rs"]
mod refill;
#[path = "conformance/restart.rs"]
mod restart;
