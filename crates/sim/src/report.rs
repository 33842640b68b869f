//! What a run has shown: findings with their targets, and series for the picture.

use serde::{Serialize, Serializer};

use crate::series::Series;

/// The result of one scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The scenario's name.
    pub scenario: String,
    /// The seed: the same one gives the same report.
    pub seed: u64,
    /// What was simulated, in a sentence or two.
    pub world: String,
    /// Deliveries that came to an end.
    pub deliveries: u64,
    /// Requests made.
    pub attempts: u64,
    /// Simulated time, in seconds.
    #[serde(serialize_with = "to_the_millisecond")]
    pub simulated_seconds: f64,
    /// What it shows.
    pub findings: Vec<Finding>,
    /// One picture per part of the scenario.
    pub pictures: Vec<Picture>,
}

/// One figure, and what it should be.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What is measured, in words.
    pub what: String,
    /// What came out, with its unit.
    pub value: String,
    /// What it should be, in words; `None`: shown for information.
    pub target: Option<String>,
    /// Whether it is.
    pub holds: bool,
}

/// A part of a run over time.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    /// Its heading.
    pub title: String,
    /// What it shows.
    pub series: Series,
}

/// Sums of floats are off in their last digits, which nobody wants to read.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn to_the_millisecond<S: Serializer>(seconds: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((seconds * 1_000.0).round() / 1_000.0)
}

impl Finding {
    /// A figure that should be so.
    pub fn check(
        what: impl Into<String>,
        value: impl Into<String>,
        target: impl Into<String>,
        holds: bool,
    ) -> Self {
        Self { what: what.into(), value: value.into(), target: Some(target.into()), holds }
    }
    /// A figure for information.
    pub fn note(what: impl Into<String>, value: impl Into<String>) -> Self {
        Self { what: what.into(), value: value.into(), target: None, holds: true }
    }
}

impl Report {
    /// Whether everything is as it should be.
    pub fn holds(&self) -> bool {
        self.findings.iter().all(|finding| finding.holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_time_is_told_to_the_millisecond() {
        let told = to_the_millisecond(&7_680.040_000_000_001, serde_json::value::Serializer);
        assert_eq!(told.unwrap(), serde_json::json!(7_680.04));
    }
}
