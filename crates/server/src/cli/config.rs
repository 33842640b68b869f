//! `tidegate config show`: what holds, and where it comes from.

use std::fmt::Write as _;

use clap::Subcommand;

use super::serve::Settings;
use super::{Ended, say};
use crate::config::{Config, DEFAULT_FILE};

/// The options of `config`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print every setting, and where its value comes from.
    Show {
        /// Print the default file instead: every setting, explained.
        #[arg(long)]
        default: bool,
        #[command(flatten)]
        settings: Box<Settings>,
    },
}

/// A URL as it may be shown: between the user's name and the host stands nothing.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.rsplit_once('@') {
        None => url.to_owned(),
        Some((user, rest)) => {
            let user = user.split_once(':').map_or(user, |(name, _)| name);
            format!("{scheme}://{user}:…@{rest}")
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Ended> {
    let Command::Show { default, settings } = &args.command;
    if *default {
        return say(DEFAULT_FILE).map(|()| Ended::Well);
    }
    let layers = settings.layers();
    let mut text = String::new();
    let widest = layers.iter().map(|(key, value, _)| key.len() + value.to_string().len()).max().unwrap_or(0);
    for (key, value, origin) in layers.iter() {
        let line = match key {
            "database_url" | "database_listen_url" => {
                format!("{key} = {}", without_password(&value.to_string()))
            }
            _ => format!("{key} = {value}"),
        };
        let width = widest.min(60) + 3;
        writeln!(text, "{line:width$}  # {origin}")?;
    }
    for name in layers.secret_variables() {
        writeln!(text, "# {name} is set (not shown)")?;
    }
    say(&text)?;
    Config::new(&layers)?;
    Ok(Ended::Well)
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn a_password_is_not_shown() {
        for (url, shown) in [
            ("postgres://tide:geheim@db/tide?sslmode=require", "postgres://tide:…@db/tide?sslmode=require"),
            ("postgres://tide:a@b:c@db/tide", "postgres://tide:…@db/tide"),
            ("postgres://db/tide", "postgres://db/tide"),
            ("\"\"", "\"\""),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
