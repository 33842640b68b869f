//! What is thrown at every reader of strangers' bytes, and the laws that must hold whatever it is.
//!
//! One file per target below [`target`]: each feeds the product's own reader and then checks its verdict by a rule written
//! down a second time. `corpus/` holds for each the cases worth keeping; the test `replay` runs them all, and
//! `cargo xtask fuzz` looks for more, guided by the coverage of the code.

pub mod target;

/// A target: its name, which is also the name of its corpus, and what it does with some bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 10] = [
    ("address", target::address::run),
    ("configuration", target::configuration::run),
    ("cursor", target::cursor::run),
    ("headers", target::headers::run),
    ("publish", target::publish::run),
    ("rate_limit", target::rate_limit::run),
    ("retry_after", target::retry_after::run),
    ("scenario", target::scenario::run),
    ("schedule", target::schedule::run),
    ("signature", target::signature::run),
];

/// What a target does, by its name.
pub fn find(name: &str) -> Option<fn(&[u8])> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, run)| *run)
}
