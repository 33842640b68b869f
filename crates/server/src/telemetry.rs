//! The log: one line for each thing that happened, on standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::config::LogFormat;

/// Begins to log. Control characters in what others sent us are escaped by the formatter.
pub(crate) fn start(format: LogFormat, level: &str) {
    // What the database remarks about tables that are there already is of no interest.
    let filter = EnvFilter::try_new(format!("tokio_postgres=warn,{level}"));
    let filter = filter.unwrap_or_else(|_| EnvFilter::new("tokio_postgres=warn,info"));
    let lines = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start in one process, as in tests, keeps the first log.
    let _started = match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}
