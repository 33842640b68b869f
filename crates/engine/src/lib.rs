//! Makes it happen: the dispatcher, a machine that turns what happened into what to do.
//!
//! [`Dispatcher::step`](dispatcher::Dispatcher::step) takes the time and one input and returns effects. It awaits
//! nothing, reads no clock and draws no number, so the simulator runs the very same code as the server.

pub mod dispatcher;
