//! From what was written to values, collecting all faults.

use std::path::PathBuf;
use std::str::FromStr;

use tidegate_core::time::Millis;
use tidegate_core::timeout::TimeoutParams;

use super::layers::{BOOTSTRAP_KEY, Layers, Origin, SECRET_KEY, Written};
use super::{Config, LogFormat, Problems, Secret, units};
use crate::auth::key::is_well_formed;
use crate::secrets::Secrets;

pub(super) fn read(layers: &Layers) -> Result<Config, Problems> {
    let mut reader = Reader { layers, problems: layers.problems.clone() };
    let hour = Millis::hours(1);
    let config = Config {
        listen: reader.parsed(
            "listen",
            "an address and a port, such as 127.0.0.1:8080",
            ([127, 0, 0, 1], 8080).into(),
        ),
        data_dir: reader.one("data_dir").into(),
        database_url: reader.secret("database_url"),
        database_listen_url: reader.secret("database_listen_url"),
        node_name: Some(reader.one("node_name")).filter(|name| !name.is_empty()),
        allow_destinations: reader.list("allow_destinations", "ranges such as 10.0.0.0/8"),
        https_only: reader.boolean("https_only"),
        retention: reader.duration("retention", Millis::seconds(1), Millis::days(365)),
        max_age: reader.duration("max_age", hour, Millis::days(30)),
        max_in_flight: reader.number("max_in_flight", 1, 100_000),
        max_event_bytes: reader.size("max_event_size", 1 << 10, 64 << 20),
        max_batch_bytes: reader.size("max_batch_size", 1 << 10, 256 << 20),
        max_connections: reader.number("max_connections", 1, 1_000_000),
        max_connections_per_address: reader.number("max_connections_per_address", 1, 1_000_000),
        api_rate_limit: reader.rate("api_rate_limit"),
        drain_limit: reader.duration("drain_limit", Millis::ZERO, Millis::minutes(10)),
        name_servers: reader.list("name_servers", "IP addresses"),
        extra_ca_file: reader.path("extra_ca_file"),
        keep_success_bodies: reader.boolean("keep_success_bodies"),
        timeout: reader.timeout(),
        paused: reader.boolean("paused"),
        secret_key_file: reader.path("secret_key_file"),
        secret_key: reader.secret_key(),
        bootstrap_key: reader.bootstrap_key(),
        log_format: reader.log_format(),
        log_level: reader.log_level(),
        threads: reader.threads("threads"),
    };
    if config.data_dir.as_os_str().is_empty() {
        reader.refuse("data_dir", "a directory");
    }
    if reader.problems.is_empty() { Ok(config) } else { Err(Problems(reader.problems)) }
}

struct Reader<'a> {
    layers: &'a Layers,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn refuse(&mut self, key: &str, allowed: &str) {
        let problem = match self.layers.get(key) {
            Some((value, origin)) => format!("{key} is {value} ({origin}); allowed: {allowed}"),
            None => format!("{key} is missing; allowed: {allowed}"),
        };
        self.problems.push(problem);
    }

    fn one(&self, key: &str) -> String {
        match self.layers.get(key) {
            Some((Written::One(text), _)) => text.trim().to_owned(),
            Some((Written::Many(texts), _)) => texts.join(",").trim().to_owned(),
            None => String::new(),
        }
    }

    fn secret(&self, key: &str) -> Option<Secret> {
        Some(self.one(key)).filter(|text| !text.is_empty()).map(|text| Secret(text.into()))
    }

    fn secret_key(&mut self) -> Option<Secret> {
        let key = self.layers.secret(SECRET_KEY)?;
        if let Err(error) = Secrets::from_text(key.reveal(), SECRET_KEY) {
            self.problems.push(error.to_string());
        }
        Some(key.clone())
    }

    /// Also where a first start was long ago: it can never have been of use.
    fn bootstrap_key(&mut self) -> Option<Secret> {
        let key = self.layers.secret(BOOTSTRAP_KEY)?;
        if !is_well_formed(key.reveal()) {
            self.problems
                .push(format!("{BOOTSTRAP_KEY} is no key: it must be tg_ and 32 to 200 URL-safe characters"));
        }
        Some(key.clone())
    }

    fn many(&self, key: &str) -> Vec<String> {
        let texts = match self.layers.get(key) {
            Some((Written::One(text), _)) => text.split(',').map(str::to_owned).collect(),
            Some((Written::Many(texts), _)) => {
                texts.iter().flat_map(|text| text.split(',')).map(str::to_owned).collect()
            }
            None => Vec::new(),
        };
        texts.into_iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
    }

    /// Reads one value; where it cannot be, the fault is noted and something harmless stands in.
    fn parsed<T: FromStr>(&mut self, key: &str, allowed: &str, instead: T) -> T {
        match self.one(key).parse() {
            Ok(value) => value,
            Err(_) => {
                self.refuse(key, allowed);
                instead
            }
        }
    }

    fn list<T: FromStr>(&mut self, key: &str, allowed: &str) -> Vec<T> {
        let parsed: Result<Vec<T>, _> = self.many(key).iter().map(|text| text.parse()).collect();
        parsed.unwrap_or_else(|_| {
            self.refuse(key, allowed);
            Vec::new()
        })
    }

    fn boolean(&mut self, key: &str) -> bool {
        match self.one(key).as_str() {
            "true" | "1" | "yes" | "on" => true,
            "false" | "0" | "no" | "off" => false,
            _ => {
                self.refuse(key, "true or false");
                false
            }
        }
    }

    fn number(&mut self, key: &str, least: u32, most: u32) -> u32 {
        match self.one(key).replace('_', "").parse() {
            Ok(number) if (least..=most).contains(&number) => number,
            _ => {
                self.refuse(key, &format!("{least} to {most}"));
                least
            }
        }
    }

    fn rate(&mut self, key: &str) -> Option<u32> {
        match self.one(key).as_str() {
            "off" | "" => None,
            text => match text.parse() {
                Ok(rate) if rate > 0 => Some(rate),
                _ => {
                    self.refuse(key, "calls per second, or off");
                    None
                }
            },
        }
    }

    fn threads(&mut self, key: &str) -> Option<u32> {
        match self.one(key).as_str() {
            "auto" | "" => None,
            _ => Some(self.number(key, 1, 1_024)),
        }
    }

    fn duration(&mut self, key: &str, least: Millis, most: Millis) -> Millis {
        match units::duration(&self.one(key)) {
            Some(duration) if (least..=most).contains(&duration) => duration,
            _ => {
                self.refuse(key, &format!("a duration with its unit, from {least} to {most}"));
                least
            }
        }
    }

    fn size(&mut self, key: &str, least: u64, most: u64) -> usize {
        match units::size(&self.one(key)) {
            Some(size) if (least..=most).contains(&size) => usize::try_from(size).unwrap_or(usize::MAX),
            _ => {
                self.refuse(key, &format!("a size such as 1MiB, from {least} to {most} bytes"));
                usize::try_from(least).unwrap_or(usize::MAX)
            }
        }
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        Some(self.one(key)).filter(|text| !text.is_empty()).map(PathBuf::from)
    }

    fn log_format(&mut self) -> LogFormat {
        match self.one("log_format").as_str() {
            "text" => LogFormat::Text,
            "json" => LogFormat::Json,
            _ => {
                self.refuse("log_format", "text or json");
                LogFormat::Text
            }
        }
    }

    fn log_level(&mut self) -> String {
        let level = self.one("log_level");
        if tracing_subscriber::EnvFilter::try_new(&level).is_err() || level.is_empty() {
            self.refuse(
                "log_level",
                "error, warn, info, debug or trace, also by part: info,tidegate_engine=debug",
            );
        }
        level
    }

    /// Here the core knows what fits together.
    fn timeout(&mut self) -> TimeoutParams {
        let day = Millis::days(365);
        let time =
            |reader: &mut Self, name: &str| reader.duration(&format!("timeout.{name}"), Millis::ZERO, day);
        let number = |reader: &mut Self, name: &str| reader.number(&format!("timeout.{name}"), 0, u32::MAX);
        let before = self.problems.len();
        let params = TimeoutParams {
            default: time(self, "default"),
            min: time(self, "min"),
            max: time(self, "max"),
            percentile_permyriad: number(self, "percentile_permyriad"),
            multiplier_permille: number(self, "multiplier_permille"),
            buffer: time(self, "buffer"),
            window_days: u16::try_from(number(self, "window_days")).unwrap_or(u16::MAX),
            recompute_every: time(self, "recompute_every"),
            stale_after: time(self, "stale_after"),
            min_samples: number(self, "min_samples").into(),
            min_age: time(self, "min_age"),
            shrink_permille: number(self, "shrink_permille"),
            step_every: time(self, "step_every"),
            growth_permille: number(self, "growth_permille"),
            spike_permille: number(self, "spike_permille"),
            spike_min_attempts: number(self, "spike_min_attempts"),
            min_timeouts: number(self, "min_timeouts"),
            rise_deviations: number(self, "rise_deviations"),
            incident_limit: number(self, "incident_limit"),
        };
        if self.problems.len() == before {
            let ordered = params.min <= params.default && params.default <= params.max;
            if !ordered {
                self.refuse_order(&["timeout.min", "timeout.default", "timeout.max"]);
            }
            // Against each other these two are wrong only where the order is, and that has been told.
            let told = |field: &str| !ordered && ["default", "max"].contains(&field);
            for fault in params.faults().iter().filter(|fault| !told(&fault.field)) {
                self.refuse(&format!("timeout.{}", fault.field), &fault.allowed);
            }
        }
        params
    }

    /// Settings that must rise in this order and do not. Whoever wrote one of them learns what the others are; a default is
    /// never what is wrong.
    fn refuse_order(&mut self, keys: &[&str]) {
        let (mut written, mut unsaid) = (Vec::new(), Vec::new());
        for key in keys {
            match self.layers.get(key) {
                Some((value, Origin::Default)) => unsaid.push(format!("{key} is {value}")),
                Some((value, origin)) => written.push(format!("{key} is {value} ({origin})")),
                None => {}
            }
        }
        let unsaid = if unsaid.is_empty() {
            String::new()
        } else {
            format!("; where nothing is said, {}", unsaid.join(" and "))
        };
        self.problems.push(format!("{}; allowed: {}{unsaid}", written.join(", "), keys.join(" ≤ ")));
    }
}
