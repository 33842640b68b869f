//! The command line: one file for each subcommand.
//!
//! A command ends in one of three ways, and its exit code says which: 0, all is well; 1, what was checked does not hold;
//! 2, the input was of no use (a wrong option, a bad file), and a message on standard error says what to do about it.

mod config;
mod doctor;
mod migrate;
mod progress;
mod serve;
mod simulate;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Webhook delivery that controls when, how fast, how many at a time, and for how long.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, disable_help_subcommand = true, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Without a command, the server starts.
    #[command(flatten)]
    settings: serve::Settings,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server: accept events and deliver them. What it does without a command.
    Serve(Box<serve::Settings>),
    /// Show the settings, and where they come from.
    Config(config::Args),
    /// Look at everything that a server needs, and say how to mend what is wrong.
    Doctor(Box<serve::Settings>),
    Migrate(migrate::Args),
    /// Show what a policy would do to a given traffic, before anyone applies it.
    Simulate(simulate::Args),
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Well,
    /// A finding is not as it should be.
    DoesNotHold,
}

/// Reads the command line and does what it says.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match cli.command {
        Some(Command::Serve(settings)) => serve::run(&settings),
        Some(Command::Config(args)) => config::run(&args),
        Some(Command::Doctor(settings)) => doctor::run(&settings),
        Some(Command::Migrate(args)) => migrate::run(&args),
        Some(Command::Simulate(args)) => simulate::run(&args),
        None => serve::run(&cli.settings),
    };
    match ended {
        Ok(Ended::Well) => ExitCode::SUCCESS,
        Ok(Ended::DoesNotHold) => ExitCode::from(1),
        // Whoever read our output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Nowhere is left to complain to if this fails.
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Writes to standard output, at once.
fn say(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
