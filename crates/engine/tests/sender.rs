//! The sender over real sockets on loopback: what goes out, what each answer becomes, and what a hostile peer cannot do.

#![allow(clippy::unwrap_used, reason = "in the helpers, too, what fails is the test")]

#[path = "sender/dns.rs"]
mod dns;
#[path = "sender/kit.rs"]
mod kit;
#[path = "sender/server.rs"]
mod server;

#[path = "sender/addresses.rs"]
mod addresses;
#[path = "sender/answers.rs"]
mod answers;
#[path = "sender/bad_tls.rs"]
mod bad_tls;
#[path = "sender/hostile.rs"]
mod hostile;
#[path = "sender/reuse.rs"]
mod reuse;
#[path = "sender/tls.rs"]
mod tls;
#[path = "sender/wire.rs"]
mod wire;
