//! The laws of quiet hours, held against a reading of the specification that shares nothing with the code: it asks the
//! time zone library what a wall clock shows at each second (or minute) in turn, and compares that with the window.

#![expect(clippy::unwrap_used, reason = "a test that cannot build its input has failed")]

use jiff::civil::{DateTime, Time, Weekday};
use jiff::tz::TimeZone;
use proptest::prelude::*;
use tidegate_core::pattern::{EventType, Pattern, Patterns};
use tidegate_core::quiet::{QuietHours, Window, WindowMask, WindowSpec};
use tidegate_core::time::{Millis, Timestamp};

const DAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

/// A window as the specification has it, in the library's own words.
#[derive(Clone, Debug)]
struct Plain {
    zone: String,
    start: Time,
    /// `None` is `24:00`.
    end: Option<Time>,
    /// None is every day.
    days: Vec<Weekday>,
}

impl Plain {
    fn covers(&self, shown: DateTime) -> bool {
        let starts_on = |day| self.days.is_empty() || self.days.contains(&day);
        let (time, today) = (shown.time(), starts_on(shown.weekday()));
        match self.end {
            None => time >= self.start && today,
            Some(end) if self.start < end => time >= self.start && time < end && today,
            Some(end) => {
                (time >= self.start && today) || (time < end && starts_on(shown.weekday().previous()))
            }
        }
    }
    fn spec(&self) -> WindowSpec {
        let end = self.end.map_or("24:00".to_owned(), |end| end.strftime("%H:%M:%S").to_string());
        let name = |day: &Weekday| DAYS.iter().find(|(_, known)| known == day).unwrap().0.to_owned();
        WindowSpec {
            timezone: self.zone.clone(),
            quiet_start: self.start.strftime("%H:%M:%S").to_string(),
            quiet_end: end,
            days: self.days.iter().map(name).collect(),
            ..WindowSpec::default()
        }
    }
    fn rules(&self) -> TimeZone {
        TimeZone::get(&self.zone).unwrap()
    }
}

/// The windows as stored, so that sets which leave no opening are tried, too; and the mask of all of them.
fn quiet_hours(windows: &[Plain]) -> (QuietHours, WindowMask) {
    let windows = windows.iter().map(|plain| Window::parse(plain.spec()).unwrap()).collect();
    let hours = QuietHours::restore(windows).unwrap();
    let mask = hours.mask_without_type();
    (hours, mask)
}

fn instant(second: i64) -> Timestamp {
    Timestamp::from_millis(second * 1_000)
}

fn shown(rules: &TimeZone, second: i64) -> DateTime {
    rules.to_datetime(jiff::Timestamp::from_second(second).unwrap())
}

/// Verdicts of the plain reading for `from`, `from + step`, ….
struct Verdicts {
    from: i64,
    step: i64,
    quiet: Vec<bool>,
    /// For each, the place of the next one that differs, or the length.
    changes: Vec<usize>,
}

impl Verdicts {
    fn new(from: i64, step: i64, quiet: Vec<bool>) -> Self {
        let mut changes = vec![quiet.len(); quiet.len()];
        for i in (0..quiet.len().saturating_sub(1)).rev() {
            changes[i] = if quiet[i] == quiet[i + 1] { changes[i + 1] } else { i + 1 };
        }
        Self { from, step, quiet, changes }
    }
    fn at(&self, i: usize) -> i64 {
        self.from + self.step * i64::try_from(i).unwrap()
    }

    /// Asks `hours` the same at place `i`. A change past the end is only known to be no earlier.
    fn check(&self, hours: &QuietHours, mask: WindowMask, i: usize) {
        let now = instant(self.at(i)) + Millis::new(999);
        let about = || format!("{now}: {:?}", hours.windows());
        let (next, release) = (hours.next_change(mask, now), hours.release(mask, now));
        assert_eq!(hours.is_quiet(mask, now), self.quiet[i], "{}", about());
        assert_eq!(release, self.quiet[i].then_some(next), "{}", about());
        if self.quiet[i] {
            let began =
                self.quiet[..i].iter().rposition(|quiet| !quiet).map(|open| instant(self.at(open + 1)));
            let earliest = Some(hours.intervals(mask, now, 1)[0].0);
            assert!(began.map_or(earliest <= Some(instant(self.from)), |_| earliest == began), "{}", about());
        }
        let expected = instant(self.at(self.changes[i]));
        if self.changes[i] < self.quiet.len() {
            assert_eq!(next, expected, "{}", about());
        } else {
            assert!(next >= expected, "{}: {next} is too early", about());
        }
    }
    fn check_all(&self, hours: &QuietHours, mask: WindowMask, every: usize) {
        let last = self.quiet.len() - 1;
        let edges = (1..last).filter(|&i| self.quiet[i - 1] != self.quiet[i]);
        let edges = edges.flat_map(|i| [i - 1, i, i + 1]);
        for i in (0..self.quiet.len()).step_by(every).chain(edges) {
            self.check(hours, mask, i);
        }
    }
}

/// The seconds at which the zone changes its offset within a span of years, with the offset from then on.
fn shifts(rules: &TimeZone, from: &str, to: &str) -> Vec<(i64, i32)> {
    let (from, to): (jiff::Timestamp, jiff::Timestamp) = (from.parse().unwrap(), to.parse().unwrap());
    let all = rules.following(from).take_while(|shift| shift.timestamp() < to);
    all.map(|shift| (shift.timestamp().as_second(), shift.offset().seconds())).collect()
}

/// Times that lie around what the clock shows before and after a shift, two of which make a window that straddles it.
fn telling_times(rules: &TimeZone, shift: i64) -> Vec<Time> {
    let seconds =
        |dt: DateTime| i64::from(dt.hour()) * 3_600 + i64::from(dt.minute()) * 60 + i64::from(dt.second());
    let (before, after) = (seconds(shown(rules, shift - 1)) + 1, seconds(shown(rules, shift)));
    let times = [
        before - 4_500,
        before - 600,
        before,
        i64::midpoint(before, after) + 17,
        after,
        after + 600,
        after + 4_500,
        0,
    ];
    times.iter().map(|s| Time::midnight() + jiff::SignedDuration::from_secs(s.rem_euclid(86_400))).collect()
}

/// All windows between telling times: on every day, and on the days that the clock shows around the shift.
fn telling_windows(zone: &str, rules: &TimeZone, shift: i64) -> Vec<Plain> {
    let times = telling_times(rules, shift);
    let before = shown(rules, shift - 1).weekday();
    let after = shown(rules, shift).weekday();
    let mut windows = Vec::new();
    for &start in &times {
        for &end in times.iter().filter(|&&end| end != start) {
            let end = (end != Time::midnight()).then_some(end);
            for days in [vec![], vec![before], vec![after], vec![before.previous()]] {
                windows.push(Plain { zone: zone.to_owned(), start, end, days });
            }
        }
    }
    windows
}

fn check_around(rules: &TimeZone, shift: i64, reach: i64, every: usize, windows: &[&Plain]) {
    let from = shift - reach;
    let clock: Vec<DateTime> = (from..shift + reach).map(|second| shown(rules, second)).collect();
    for plain in windows {
        let verdicts = Verdicts::new(from, 1, clock.iter().map(|&shown| plain.covers(shown)).collect());
        let (hours, mask) = quiet_hours(&[(*plain).clone()]);
        verdicts.check_all(&hours, mask, every);
    }
}

/// Goal: no change of the clocks anywhere makes release too early or too late.
/// Method: second by second, three hours around every change of offset, in every zone that has its own.
#[test]
fn release_and_next_change_are_right_around_every_change_of_the_clocks() {
    let spans =
        [("2024-01-01T00:00:00Z", "2031-01-01T00:00:00Z"), ("2037-06-01T00:00:00Z", "2038-12-31T00:00:00Z")];
    let mut seen = std::collections::HashSet::new();
    let mut turn = 0;
    for zone in jiff::tz::db().available() {
        let rules = TimeZone::get(zone.as_str()).unwrap();
        for (from, to) in spans {
            for (shift, offset) in shifts(&rules, from, to) {
                let before = rules.to_offset(jiff::Timestamp::from_second(shift - 1).unwrap()).seconds();
                // Zones that do the same at the same time need one look.
                if !seen.insert((shift, before, offset)) {
                    continue;
                }
                // Each shift gets its share of all windows, another each time.
                let all = telling_windows(zone.as_str(), &rules, shift);
                let share: Vec<_> = (0..16).map(|i| &all[(turn + i * 37) % all.len()]).collect();
                turn += 1;
                check_around(&rules, shift, 3 * 3_600, 193, &share);
            }
        }
    }
    assert!(seen.len() > 400, "only {} shifts looked at", seen.len());
}

fn any_zone() -> impl Strategy<Value = String> {
    let zones: Vec<String> = jiff::tz::db().available().map(|zone| zone.to_string()).collect();
    proptest::sample::select(zones)
}

/// Windows at full minutes. Quarters of an hour are likely, so that windows touch now and then.
fn any_window() -> impl Strategy<Value = Plain> {
    let minute = prop_oneof![(0..96_i64).prop_map(|quarter| quarter * 15), 0..1_440_i64];
    let days = proptest::sample::subsequence(DAYS.map(|(_, day)| day).to_vec(), 0..=7);
    (any_zone(), minute, 1..1_440_i64, days).prop_map(|(zone, start, length, days)| {
        let time = |minute: i64| Time::midnight() + jiff::SignedDuration::from_mins(minute % 1_440);
        let end = time(start + length);
        Plain { zone, start: time(start), end: (end != Time::midnight()).then_some(end), days }
    })
}

/// A second of 2020 to 2040, at a full minute.
fn any_minute() -> impl Strategy<Value = i64> {
    (26_297_280..36_817_920_i64).prop_map(|minute| minute * 60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Up to four windows in any zones, minute by minute over nine days. In these years all offsets are whole minutes.
    #[test]
    fn release_is_never_quiet_and_nothing_before_it_is_open(
        windows in proptest::collection::vec(any_window(), 1..=4),
        from in any_minute(),
    ) {
        let zones: Vec<_> = windows.iter().map(Plain::rules).collect();
        let minutes = (0..9 * 1_440).map(|i| from + i * 60);
        let quiet = minutes.map(|second| windows.iter().zip(&zones).any(|(w, zone)| w.covers(shown(zone, second))));
        let verdicts = Verdicts::new(from, 60, quiet.collect());
        let (hours, mask) = quiet_hours(&windows);
        verdicts.check_all(&hours, mask, 313);
    }

    /// The past had offsets of odd seconds, lost days and clocks changed at midnight.
    #[test]
    fn release_is_right_around_the_changes_of_the_past(
        zone in any_zone(),
        which in any::<proptest::sample::Index>(),
        pick in any::<proptest::sample::Index>(),
    ) {
        let rules = TimeZone::get(&zone).unwrap();
        let shifts = shifts(&rules, "1800-01-01T00:00:00Z", "2024-01-01T00:00:00Z");
        if !shifts.is_empty() {
            let (shift, _) = shifts[which.index(shifts.len())];
            let all = telling_windows(&zone, &rules, shift);
            check_around(&rules, shift, 2_400, 61, &[pick.get(&all)]);
        }
    }

    #[test]
    fn intervals_are_what_release_and_next_change_say(
        windows in proptest::collection::vec(any_window(), 1..=4),
        from in any_minute(),
        count in 0..12_usize,
    ) {
        let (hours, mask) = quiet_hours(&windows);
        let from = instant(from);
        let found = hours.intervals(mask, from, count);
        prop_assert!(found.len() <= count);
        let mut open = from;
        for (i, &(start, end)) in found.iter().enumerate() {
            if i > 0 || !hours.is_quiet(mask, from) {
                prop_assert!(!hours.is_quiet(mask, open), "intervals have open time between them");
                prop_assert_eq!(hours.next_change(mask, open), start);
            } else {
                prop_assert!(start <= from && from < end);
            }
            prop_assert!(hours.is_quiet(mask, start));
            if end - start < Millis::days(35) {
                prop_assert!(!hours.is_quiet(mask, start - Millis::new(1)), "the real start");
                prop_assert_eq!(hours.release(mask, start), Some(end));
                prop_assert!(!hours.is_quiet(mask, end));
            }
            open = end;
        }
    }

    /// What was accepted never runs into the limit of the search, and opens within it.
    #[test]
    fn windows_that_were_accepted_always_open_again(
        windows in proptest::collection::vec(any_window(), 1..=6),
        at in 1_767_225_600..1_830_000_000_i64,
    ) {
        let (stored, mask) = quiet_hours(&windows);
        let at = instant(at);
        let accepted = QuietHours::new(stored.windows().to_vec()).is_ok();
        if let Some(release) = stored.release(mask, at) && accepted {
            prop_assert!(!stored.is_quiet(mask, release) && release > at);
        }
        if !accepted {
            let closed = (0..53).map(|i| instant(1_767_225_600) + Millis::days(14 * i));
            let longest = closed.filter_map(|at| Some(stored.release(mask, at)? - at)).max();
            prop_assert!(longest >= Some(Millis::days(21)));
        }
    }
}

#[test]
fn every_question_has_an_answer_at_the_ends_of_time() {
    for zone in jiff::tz::db().available() {
        for (start, end) in [("00:00", "24:00"), ("12:00", "11:59:59"), ("03:00", "03:00:01")] {
            let spec = WindowSpec {
                timezone: zone.to_string(),
                quiet_start: start.into(),
                quiet_end: end.into(),
                ..WindowSpec::default()
            };
            let hours = QuietHours::restore(vec![Window::parse(spec).unwrap()]).unwrap();
            let mask = hours.mask_without_type();
            for near in [Timestamp::MIN, Timestamp::MAX] {
                for away in [0, 1, 999, 1_000, 43_200_000, 86_400_001].map(Millis::new) {
                    for at in [near - away, near + away] {
                        let release = hours.release(mask, at);
                        assert!(
                            release.is_none_or(|r| r > at || r == Timestamp::MAX),
                            "{zone} at {at}: {release:?}"
                        );
                        let next = hours.next_change(mask, at);
                        assert!(next > at || at == Timestamp::MAX, "{zone} at {at}: {next}");
                        assert!(hours.intervals(mask, at, 2).iter().all(|(start, end)| start <= end));
                    }
                }
            }
        }
    }
}

/// Patterns of up to three segments out of `a`, `b` and `*`, and all names that could tell them apart.
fn any_pattern() -> impl Strategy<Value = String> {
    let segment = proptest::sample::select(vec!["a", "b", "*"]);
    proptest::collection::vec(segment, 1..=3).prop_map(|segments| segments.join("."))
}

fn telling_names() -> Vec<EventType> {
    let segments = ["a", "b", "z"];
    let mut names: Vec<String> = segments.map(str::to_owned).to_vec();
    let mut longest = names.clone();
    for _ in 0..3 {
        longest =
            longest.iter().flat_map(|head| segments.map(|segment| format!("{head}.{segment}"))).collect();
        names.extend(longest.iter().cloned());
    }
    names.iter().map(|name| EventType::parse(name).unwrap()).collect()
}

/// A window over some of the four quarters of the day, in UTC.
fn quarter_window() -> impl Strategy<Value = (u8, WindowSpec)> {
    let patterns = || proptest::collection::vec(any_pattern(), 0..=3);
    (0..4_u8, 1..=3_u8, patterns(), patterns()).prop_map(|(first, length, applies_to, bypass_event_types)| {
        let quarters = (0..length).fold(0, |set, i| set | 1 << ((first + i) % 4));
        let time = |quarter: u8| format!("{:02}:00", quarter % 4 * 6);
        let spec = WindowSpec {
            timezone: "UTC".into(),
            quiet_start: time(first),
            quiet_end: time(first + length),
            applies_to,
            bypass_event_types,
            ..WindowSpec::default()
        };
        (quarters, spec)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// A mask has the windows that apply and are not bypassed; a set is refused iff one type has no quarter of the day.
    #[test]
    fn a_set_is_refused_iff_it_leaves_some_type_no_moment(
        windows in proptest::collection::vec(quarter_window(), 1..=5),
    ) {
        let parsed = windows.iter().map(|(_, spec)| Window::parse(spec.clone()).unwrap()).collect();
        let hours = QuietHours::restore(parsed).unwrap();
        let mut closed = false;
        for name in telling_names() {
            let matches = |list: &[String]| list.iter().any(|text| Pattern::parse(text).unwrap().matches(&name));
            let applies = |spec: &WindowSpec| spec.applies_to.is_empty() || matches(&spec.applies_to);
            let concerned: Vec<usize> = (0..windows.len())
                .filter(|&i| applies(&windows[i].1) && !matches(&windows[i].1.bypass_event_types))
                .collect();
            prop_assert_eq!(hours.mask_for(&name).windows().collect::<Vec<_>>(), &concerned[..]);
            closed |= concerned.iter().fold(0, |set, &i| set | windows[i].0) == 0b1111;
        }
        prop_assert_eq!(QuietHours::new(hours.windows().to_vec()).is_err(), closed);
    }

    #[test]
    fn no_text_makes_a_parser_panic(
        text in prop_oneof![
            any::<String>(),
            "[0-9:.+ -]{0,9}",
            "[a-zA-Z0-9_.*-]{0,140}",
            "[A-Za-z]{1,9}/[A-Za-z_]{1,9}",
        ],
        place in 0..6,
    ) {
        let _ = EventType::parse(&text);
        let _ = Pattern::parse(&text);
        let _ = Patterns::parse(&[&text, "a"]);
        let mut spec = WindowSpec {
            timezone: "UTC".into(),
            quiet_start: "22:00".into(),
            quiet_end: "06:00".into(),
            ..WindowSpec::default()
        };
        match place {
            0 => spec.timezone = text,
            1 => spec.quiet_start = text,
            2 => spec.quiet_end = text,
            3 => spec.days = vec![text],
            4 => spec.applies_to = vec![text],
            _ => spec.bypass_event_types = vec![text],
        }
        if let Ok(window) = Window::parse(spec.clone()) {
            prop_assert_eq!(window.spec(), &spec);
        }
        let _ = Window::restore(spec).map(|window| QuietHours::new(vec![window]));
    }
}
