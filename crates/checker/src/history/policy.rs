//! What is read of the API's document of a destination: the parts that can be judged from outside.

use serde::Deserialize;
use serde_json::{Map, Value};

/// A destination's policies.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// Whether it is switched on.
    pub active: bool,
    /// Whether it was paused: not in the API's document; `pause` and `resume` set it.
    pub paused: bool,
    /// Patterns of the events that it gets.
    pub event_types: Vec<String>,
    /// Requests at a time.
    pub max_concurrency: u32,
    /// How fast.
    pub rate_limit: Option<RateLimit>,
    /// Quiet hours.
    pub delivery_schedules: Vec<Window>,
    /// In which order.
    pub ordering: Ordering,
    /// What follows a dead head of a line.
    pub on_exhausted: OnExhausted,
    /// When to try again.
    pub retry_policy: Option<RetryPolicy>,
    /// When to stop trying.
    pub circuit_breaker: Breaker,
    /// Statuses that are final at once.
    pub permanent_statuses: Vec<u16>,
    /// What the body is.
    pub envelope: Envelope,
    /// Where to.
    pub url: Option<String>,
    /// How long an attempt may take, where that is pinned.
    pub timeout_seconds: Option<f64>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            active: true,
            paused: false,
            event_types: vec!["*".to_owned()],
            max_concurrency: 5,
            rate_limit: None,
            delivery_schedules: Vec::new(),
            ordering: Ordering::None,
            on_exhausted: OnExhausted::Skip,
            retry_policy: None,
            circuit_breaker: Breaker::default(),
            permanent_statuses: Vec::new(),
            envelope: Envelope::Raw,
            url: None,
            timeout_seconds: None,
        }
    }
}

impl Policy {
    /// Reads a document. The one window of `delivery_schedule` counts where there is no list; null is as good as nothing.
    pub fn read(document: &Map<String, Value>) -> Result<Self, serde_json::Error> {
        let mut document = document.clone();
        let single = document.remove("delivery_schedule");
        document.retain(|_, value| !value.is_null());
        if let Some(window) = single.filter(|window| !window.is_null()) {
            document.entry("delivery_schedules").or_insert_with(|| Value::Array(vec![window]));
        }
        serde_json::from_value(Value::Object(document))
    }
}

/// `rate_limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct RateLimit {
    /// So many a minute …
    #[serde(default)]
    pub max_per_minute: Option<u64>,
    /// … or so many …
    #[serde(default)]
    pub max: Option<u64>,
    /// … in this time.
    #[serde(default)]
    pub per: Per,
    /// So many at once.
    #[serde(default)]
    pub burst_capacity: Option<u64>,
    /// Whether it may slow down by itself.
    #[serde(default)]
    pub mode: Mode,
}

/// `mode` of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// As it is written.
    #[default]
    Fixed,
    /// It learns the destination's own ceiling.
    Adaptive,
}

/// The period of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// 1 s.
    Second,
    /// 60 s.
    #[default]
    Minute,
    /// 3,600 s.
    Hour,
    /// 86,400 s.
    Day,
}

impl RateLimit {
    /// Tokens a day: a whole number, whatever the period.
    pub fn per_day(&self) -> i128 {
        let (max, times) = match (self.max_per_minute, self.per) {
            (Some(max), _) => (max, 1_440),
            (None, Per::Second) => (self.max.unwrap_or(u64::MAX), 86_400),
            (None, Per::Minute) => (self.max.unwrap_or(u64::MAX), 1_440),
            (None, Per::Hour) => (self.max.unwrap_or(u64::MAX), 24),
            (None, Per::Day) => (self.max.unwrap_or(u64::MAX), 1),
        };
        i128::from(max) * times
    }
    /// So many at once.
    pub fn burst(&self) -> i128 {
        i128::from(self.burst_capacity.or(self.max_per_minute).or(self.max).unwrap_or(u64::MAX))
    }
}

/// One window of quiet hours.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Window {
    /// An IANA name.
    pub timezone: String,
    /// The first quiet second.
    pub quiet_start: String,
    /// The first that is open again.
    pub quiet_end: String,
    /// On which it starts; none: every day.
    #[serde(default)]
    pub days: Vec<String>,
    /// Which types it holds; none: all.
    #[serde(default)]
    pub applies_to: Vec<String>,
    /// Which it does not.
    #[serde(default)]
    pub bypass_event_types: Vec<String>,
}

/// `ordering`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ordering {
    /// As they come.
    None,
    /// One line.
    Fifo,
    /// A line for each key.
    Key,
}

/// `on_exhausted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExhausted {
    /// The next one goes.
    Skip,
    /// Nothing goes until a person resumes the line.
    Halt,
}

/// `envelope`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Envelope {
    /// The payload.
    Raw,
    /// The payload in `data`.
    Standard,
}

/// `retry_policy`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RetryPolicy {
    /// At most so many.
    pub max_attempts: u32,
    /// After each failure; the last one repeats.
    pub delays_seconds: Vec<f64>,
    /// How far chance moves a delay.
    #[serde(default)]
    pub jitter: Jitter,
}

/// How far chance moves a delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// Not at all.
    None,
    /// A fifth either way.
    #[default]
    Proportional,
    /// Anywhere from nothing to all of it.
    Full,
}

/// `circuit_breaker`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct Breaker {
    /// Off: it never opens.
    pub enabled: bool,
    /// Opens after so many failures in a row.
    pub consecutive_failures: u32,
    /// For so long at first …
    pub open_seconds: f64,
    /// … and at most.
    pub max_open_seconds: f64,
    /// Probes that must succeed to close it.
    pub successes_to_close: u32,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            enabled: true,
            consecutive_failures: 5,
            open_seconds: 30.0,
            max_open_seconds: 600.0,
            successes_to_close: 2,
        }
    }
}
