//! How far a transfer is, how fast it goes, and how long it will take: on one line where a person looks at it, else a line now
//! and then.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use tidegate_store::transfer::{Doing, Progress};

use crate::cli::progress::ProgressLine;

/// Between two lines in a log.
const PAUSE: Duration = Duration::from_secs(5);

/// Watches a transfer.
pub(super) struct Pace {
    line: ProgressLine,
    seen: bool,
    /// When this part began, and with how many rows.
    began: Option<(Doing, Instant, u64)>,
    logged: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { line: ProgressLine::new(), seen: io::stderr().is_terminal(), began: None, logged: now() }
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        let now = now();
        let (began, before) = match self.began {
            Some((doing, began, before)) if doing == progress.doing => (began, before),
            _ => {
                self.began = Some((progress.doing, now, progress.all_rows));
                (now, progress.all_rows)
            }
        };
        let text = text(progress, progress.all_rows.saturating_sub(before), now - began);
        if self.seen {
            self.line.show(share(progress), &text);
        } else if now - self.logged >= PAUSE {
            self.logged = now;
            // What cannot be shown is no reason to stop the work.
            let _ = writeln!(io::stderr(), "{:3.0}%  {text}", share(progress) * 100.0);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "how fast it goes is told to a person, and decides nothing")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::cast_precision_loss, reason = "shown in per cent")]
fn share(progress: &Progress) -> f64 {
    if progress.all_of == 0 { 1.0 } else { progress.all_rows as f64 / progress.all_of as f64 }
}

/// `events 120000 of 1000000, 25000 rows/s, 35 s left`.
fn text(progress: &Progress, since: u64, took: Duration) -> String {
    let doing = match progress.doing {
        Doing::Moving => "",
        Doing::Comparing => "compare ",
    };
    let Progress { table, rows, of, .. } = progress;
    let mut text = format!("{doing}{table} {rows} of {of}");
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    // The first moments say nothing.
    if let Some(rate) = (since * 1_000).checked_div(millis).filter(|rate| *rate > 0 && millis > 500) {
        let left = progress.all_of.saturating_sub(progress.all_rows) / rate;
        text.push_str(&format!(", {rate}/s, {left} s left"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_rest_come_from_what_was_done_since_it_began() {
        let mut progress = Progress {
            doing: Doing::Moving,
            table: "events",
            rows: 30_000,
            of: 50_000,
            all_rows: 40_000,
            all_of: 100_000,
        };
        let shown = text(&progress, 20_000, Duration::from_secs(2));
        assert_eq!(shown, "events 30000 of 50000, 10000/s, 6 s left");
        assert_eq!(text(&progress, 0, Duration::ZERO), "events 30000 of 50000");
        progress.doing = Doing::Comparing;
        assert!(text(&progress, 1, Duration::ZERO).starts_with("compare events"));
    }
}
