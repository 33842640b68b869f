//! The `tidegate` binary. What it does is in [`cli`].

mod api;
mod auth;
mod catalogue;
mod cli;
mod config;
mod dashboard;
mod jobs;
mod policy;
mod secrets;
mod serve;
mod telemetry;

use std::process::ExitCode;

/// Many small allocations of many threads: the system's allocator is slower at these, and keeps more.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
