//! The rules of Tidegate. Everything it decides is decided here, as pure functions over values.
//!
//! Three functions carry it: [`gate::decide`] says whether a delivery may go now, and if not, why and until when;
//! [`settle::settle`] says what becomes of it after an attempt; [`gate::explain`] shows every gate to the person who
//! asks. Around them, one file per rule. Nothing here reads a clock, draws a number or touches the outside: time
//! ([`time::Now`]) and chance ([`draw::Draw`]) are arguments, so a simulator can run months of it in seconds.

pub mod breaker;
pub mod delivery;
pub mod dial;
pub mod draw;
pub mod gate;
pub mod headers;
pub mod health;
pub mod id;
pub mod invalid;
pub mod lane;
pub mod limits;
pub mod order;
pub mod outcome;
pub mod pace;
pub mod pattern;
pub mod policy;
pub mod quiet;
pub mod ramp;
pub mod rate;
pub mod rate_headers;
pub mod refill;
pub mod retry;
pub mod retry_after;
pub mod sequence;
pub mod settle;
pub mod sign;
pub mod sketch;
pub mod slots;
pub mod throttle;
pub mod time;
pub mod timeout;
