//! What a store must do, whichever engine is inside: the real definition of its verbs.
//!
//! Each behaviour opens a store of its own through [`fixture::Bench`], and every store has two accounts with two
//! destinations each, so that a missing condition shows. Another engine joins by another way to open.

#[path = "conformance/accept.rs"]
mod accept;
#[path = "conformance/fixture.rs"]
mod fixture;
#[path = "conformance/model.rs"]
mod model;
#[path = "conformance/refill.rs"]
mod refill;
