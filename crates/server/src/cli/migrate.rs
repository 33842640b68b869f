//! `tidegate migrate`: moves a whole store from SQLite to PostgreSQL.

mod pace;

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, bail};
use tidegate_store::transfer::{self, Moved, Options, Source, Task, TransferError};

use self::pace::Pace;
use super::{Ended, say};
use crate::secrets::Secrets;

/// Move everything from SQLite to PostgreSQL.
///
/// Accounts, keys, destinations with their secrets and the state of their gates, events, deliveries in every state, attempts,
/// logs, counts: ids stay what they are, and a server that is started on the target goes on where the one on the source ended.
///
/// Stop the server first. The source is only read. The target must be an empty database; its schema, `tidegate`, is made. If
/// the command is cut off at any point, run it again: it goes on where it was. At the end both sides are read in full, and the
/// rows of every table are counted and compared by a checksum; until they are the same, no server starts on the target.
///
/// Secrets stay sealed with the key they are sealed with: give it to the servers on the target (TIDEGATE_SECRET_KEY, or
/// --secret-key-file). Start no server on the source afterwards: it would send once more what was waiting.
///
/// Exit code: 0, all is moved and the same; 1, both sides differ; 2, it could not be done, and the message says what to do.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The source: sqlite:DIRECTORY (a data directory) or sqlite:FILE
    #[arg(long, value_name = "sqlite:PATH")]
    from: String,
    /// The target: postgres://user:password@host/database. In the environment, nobody sees the password in a list of processes
    #[arg(long, value_name = "postgres://…", env = "TIDEGATE_DATABASE_URL", hide_env_values = true)]
    to: String,
    /// Move nothing; compare what was moved before, as long as no server has run on the target
    #[arg(long)]
    verify_only: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Ended> {
    let path = source(&args.from)?;
    if !args.to.starts_with("postgres://") && !args.to.starts_with("postgresql://") {
        bail!("--to must begin with postgres:// (what it is now is not shown: it may hold a password)");
    }
    let mut source = Source::open(&path)?;
    let key = sealed_with(&source)?;
    let task = if args.verify_only { Task::Verify } else { Task::Move };
    let key_fingerprint = key.as_ref().map(|key| key.as_bytes().to_vec());
    let mut pace = Pace::new();
    let moved = transfer::run(
        &mut source,
        &Options { url: args.to.clone(), key_fingerprint, task },
        &mut |progress| pace.show(&progress),
    );
    drop(pace);
    match moved {
        Ok(moved) => say(&report(&moved, task, &source, key.as_deref())).map(|()| Ended::Well),
        Err(error @ TransferError::Differ(_)) => say(&format!("{error}\n")).map(|()| Ended::DoesNotHold),
        Err(error) => Err(error.into()),
    }
}

/// Where the source lies.
fn source(from: &str) -> anyhow::Result<PathBuf> {
    let path = from.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path));
    match path {
        Some(path) if !path.is_empty() => Ok(path.into()),
        _ => {
            bail!("--from is {from}; it must be sqlite: and a data directory, such as sqlite:./tidegate-data")
        }
    }
}

/// The fingerprint of the key under which the secrets in the source are sealed, if there are any.
fn sealed_with(source: &Source) -> anyhow::Result<Option<String>> {
    let sealed = source.sealed()?;
    let mut keys = sealed.iter().map(|sealed| Secrets::fingerprint_of(sealed));
    let Some(first) = keys.next() else { return Ok(None) };
    let first = first.context("a secret in the source is damaged: set it anew, or restore a backup")?;
    match keys.all(|key| key.as_ref() == Some(&first)) {
        true => Ok(Some(first)),
        false => {
            bail!("the secrets in the source are sealed with several keys: no server can start with them")
        }
    }
}

fn report(moved: &Moved, task: Task, source: &Source, key: Option<&str>) -> String {
    let mut text = String::new();
    let rows: u64 = moved.tables.iter().map(|(_, sum)| sum.rows).sum();
    for (table, sum) in &moved.tables {
        let _ = writeln!(text, "  {table:<17} {:>11} rows  checksum {:032x}", sum.rows, sum.checksum);
    }
    let _ = match (moved.already, task) {
        (true, _) => writeln!(text, "This transfer has ended well before: nothing was done."),
        (_, Task::Verify) => writeln!(text, "{rows} rows are the same on both sides."),
        (_, Task::Move) => {
            let went_on = match moved.before {
                0 => String::new(),
                before => format!(" ({before} of them by an earlier call)"),
            };
            writeln!(text, "{rows} rows were moved{went_on}, and are the same on both sides.")
        }
    };
    if task == Task::Move {
        let directory = source.directory().display();
        text.push_str("Next:\n");
        if let Some(key) = key {
            let _ = writeln!(
                text,
                "  - give every server the key with the fingerprint {key} (if it was made here, it is {directory}/secret.key): \
                 TIDEGATE_SECRET_KEY, or --secret-key-file"
            );
        }
        text.push_str("  - start servers with --database-url, or TIDEGATE_DATABASE_URL\n");
        let _ = writeln!(
            text,
            "  - start none on {directory} any more: it would send again what was waiting. It was not changed; keep it as a backup"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::source;

    #[test]
    fn a_source_is_a_path_after_its_scheme() {
        for (from, path) in [
            ("sqlite:./data", Some("./data")),
            ("sqlite:/var/lib/tidegate/tidegate.db", Some("/var/lib/tidegate/tidegate.db")),
            ("sqlite:///var/lib/tidegate", Some("/var/lib/tidegate")),
            ("sqlite:", None),
            ("./data", None),
            ("postgres://db", None),
        ] {
            assert_eq!(source(from).ok(), path.map(Into::into), "{from}");
        }
    }
}
