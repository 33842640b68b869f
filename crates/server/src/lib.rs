//! The server of Tidegate. What the binary does is in [`cli`]; [`reading`] is there for the fuzz targets. Nothing else
//! of it can be used from outside.

mod api;
mod auth;
mod catalogue;
mod cli;
mod config;
mod dashboard;
mod jobs;
mod policy;
pub mod reading;
mod secrets;
mod serve;
mod telemetry;

pub use cli::main;
