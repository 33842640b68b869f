//! Where we may send to: what a destination's URL says, and which addresses may be dialled.
//!
//! [`Target`] reads the URL once, when it is written. [`Guard`] judges an address, as bits, never as text: every
//! address that a name resolves to is put to it before each connection, because a name may point elsewhere by then.
//! Resolving and connecting are left to the engine.

mod guard;
mod target;

pub use guard::Guard;
pub use target::{Host, Target};
