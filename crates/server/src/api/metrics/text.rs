//! The text format of Prometheus.

use std::fmt::{Display, Write as _};

/// A page that is being written. Writing into a string cannot fail.
#[derive(Default)]
pub(super) struct Page(String);

impl Page {
    pub(super) fn finish(self) -> String {
        self.0
    }

    /// What a metric is; its samples follow.
    pub(super) fn head(&mut self, name: &str, kind: &str, about: &str) {
        let _ = writeln!(self.0, "# HELP {name} {about}\n# TYPE {name} {kind}");
    }

    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (place, (label, text)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"{}\"", if place == 0 { '{' } else { ',' }, escape(text));
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    pub(super) fn counter(&mut self, name: &str, about: &str, value: u64) {
        self.head(name, "counter", about);
        self.sample(name, &[], value);
    }

    pub(super) fn gauge(&mut self, name: &str, about: &str, value: u64) {
        self.head(name, "gauge", about);
        self.sample(name, &[], value);
    }

    pub(super) fn by_destination<G>(
        &mut self,
        name: &str,
        kind: &str,
        about: &str,
        rows: &[(&str, &G)],
        value: impl Fn(&G) -> f64,
    ) {
        self.head(name, kind, about);
        for (destination, gauge) in rows {
            self.sample(name, &[("destination", destination)], value(gauge));
        }
    }

    /// Counts are by bucket, not cumulated; bounds are in microseconds, the last one open.
    pub(super) fn histogram(
        &mut self,
        name: &str,
        about: &str,
        bounds_us: &[u64],
        counts: &[u64],
        sum_us: u64,
    ) {
        self.head(name, "histogram", about);
        let (bucket, mut total) = (format!("{name}_bucket"), 0);
        for (bound, count) in bounds_us.iter().zip(counts) {
            total += count;
            let bound =
                if *bound == u64::MAX { "+Inf".to_owned() } else { (*bound as f64 / 1e6).to_string() };
            self.sample(&bucket, &[("le", &bound)], total);
        }
        self.sample(&format!("{name}_sum"), &[], sum_us as f64 / 1e6);
        self.sample(&format!("{name}_count"), &[], total);
    }
}

/// As the format asks for it in values of labels.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_escaped_and_histograms_cumulated() {
        let mut page = Page::default();
        page.sample("a", &[("b", "c\"\\\nd"), ("e", "f")], 1);
        page.histogram("h", "About.", &[500, 1_000_000, u64::MAX], &[1, 2, 3], 2_500_000);
        assert_eq!(
            page.finish(),
            "a{b=\"c\\\"\\\\\\nd\",e=\"f\"} 1\n\
             # HELP h About.\n# TYPE h histogram\n\
             h_bucket{le=\"0.0005\"} 1\nh_bucket{le=\"1\"} 3\nh_bucket{le=\"+Inf\"} 6\nh_sum 2.5\nh_count 6\n"
        );
    }
}
