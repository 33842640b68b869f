//! The world, modelled, under one seed.
//!
//! The real dispatcher and the real rules run on a virtual clock, against modelled destinations: months in seconds, the
//! same result each time. [`run::Sim`] is the driver; [`world`] holds the destinations, [`traffic`] the publishers,
//! [`backing`] what survives a crash, [`cluster`] several nodes on one database, [`oracle`] the bounds that must hold after every step, [`history`] a run
//! as files that a checker from outside can judge, [`scenario`] the built-in experiments and the files that people write.

pub mod backing;
pub mod chance;
pub mod cluster;
pub mod history;
pub mod oracle;
pub mod report;
pub mod run;
pub mod scenario;
pub mod series;
pub mod svg;
pub mod table;
pub mod traffic;
pub mod words;
pub mod world;
