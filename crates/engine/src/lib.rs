//! Makes it happen: the dispatcher, a machine that turns what happened into what to do, and all that runs it.
//!
//! [`Dispatcher::step`](dispatcher::Dispatcher::step) takes the time and one input and returns effects. It awaits
//! nothing, reads no clock and draws no number, so the simulator runs the same code as the server.
//!
//! ```text
//!   handle    what the server asks and tells
//!   driver    carries what happens to the dispatcher, and does what it says
//!   sender    one attempt: resolver, connection, signature, answer
//!   keeper    ends what went stale in the store, deletes what is old
//!   membership, tenancy, orders   one of several nodes: leases, slots that come and go, wishes for what others work
//!   deathwatch      what the process was at work on when it died
//!   reading         deliveries that are read because somebody wants something of them
//!   clock, chance   the one file that reads the clock, the one that draws
//! ```

pub mod chance;
pub mod clock;
mod deathwatch;
pub mod dispatcher;
mod driver;
mod handle;
mod keeper;
mod membership;
pub mod metrics;
pub mod notice;
mod orders;
pub mod pulse;
mod reading;
pub mod resolver;
pub mod sender;
pub mod tenancy;
mod wish;

pub use driver::{NewLane, Past, View, restore};
pub use handle::{Engine, EngineConfig, Place, Started, Stopped, start};
pub use membership::Seen;
pub use reading::Reading;
