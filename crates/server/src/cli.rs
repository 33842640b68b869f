//! The command line: one file for each subcommand.
//!
//! A command ends in one of three ways, and its exit code says which: 0, all is well; 1, what was checked does not hold;
//! 2, the input was of no use (a wrong option, a bad file), and a message on standard error says what to do about it.

mod progress;
mod simulate;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What a person sees who starts it without a command.
const WELCOME: &str = "\
Tidegate will be a webhook delivery engine: one binary that controls when, how fast, how many at a time
and for how long an event is sent to each destination, and whether at all. The server is not built yet.

What works today is the simulator: the real rules and the real dispatcher, on a virtual clock, against
modelled destinations. Days pass in seconds, and the same seed gives the same result.

  tidegate simulate --list                     the built-in scenarios
  tidegate simulate <scenario>                 run one of them
  tidegate simulate my.toml                    run your own: docs/scenario-files.md has the format
  tidegate simulate my.toml --svg my.svg       and draw what happened
  tidegate simulate my.toml --seed 7 --json    under another seed, as JSON

From the source tree, write `cargo run --release --` instead of `tidegate`, and try
`cargo run --release -- simulate examples/scenarios/night-batch.toml --svg night-batch.svg`.
";

/// Webhook delivery that controls when, how fast, how many at a time, and for how long.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
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
pub(crate) fn main() -> ExitCode {
    let ended = match Cli::parse().command {
        Some(Command::Simulate(args)) => simulate::run(&args),
        None => say(WELCOME).map(|()| Ended::Well),
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
