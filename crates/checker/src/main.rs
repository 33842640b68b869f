//! The checker.
fn main() {}
