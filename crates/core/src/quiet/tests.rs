use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn spec(zone: &str, hours: &str, days: &str) -> WindowSpec {
    let (start, end) = hours.split_once('-').unwrap();
    WindowSpec {
        timezone: zone.into(),
        quiet_start: start.into(),
        quiet_end: end.into(),
        days: days.split_whitespace().map(Into::into).collect(),
        ..WindowSpec::default()
    }
}

fn window(zone: &str, hours: &str, days: &str) -> Window {
    Window::parse(spec(zone, hours, days)).unwrap()
}

fn for_types(hours: &str, applies_to: &[&str], bypass: &[&str]) -> Window {
    let texts = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
    let spec = WindowSpec {
        applies_to: texts(applies_to),
        bypass_event_types: texts(bypass),
        ..spec("UTC", hours, "")
    };
    Window::parse(spec).unwrap()
}

fn check_release(windows: Vec<Window>, now: &str, release: Option<&str>) {
    let hours = QuietHours::new(windows).unwrap();
    let mask = hours.mask_without_type();
    assert_eq!(hours.release(mask, at(now)), release.map(at), "{:?} at {now}", hours.windows());
    assert_eq!(hours.is_quiet(mask, at(now)), release.is_some());
}

/// The vectors that were computed second by second on the IANA data.
#[test]
fn release_agrees_with_the_golden_vectors() {
    let table = [
        ("America/New_York", "23:00-05:00", "2026-03-08T04:30:00Z", Some("2026-03-08T09:00:00Z")),
        ("America/New_York", "23:00-05:00", "2026-11-01T03:30:00Z", Some("2026-11-01T10:00:00Z")),
        ("America/New_York", "00:00-02:30", "2026-03-08T05:30:00Z", Some("2026-03-08T07:00:00Z")),
        ("America/New_York", "00:00-02:30", "2026-03-08T06:45:00Z", Some("2026-03-08T07:00:00Z")),
        ("Europe/Berlin", "00:00-02:30", "2026-03-29T00:00:00Z", Some("2026-03-29T01:00:00Z")),
        ("America/New_York", "00:00-01:30", "2026-11-01T04:30:00Z", Some("2026-11-01T05:30:00Z")),
        ("America/New_York", "00:00-01:30", "2026-11-01T05:45:00Z", None),
        ("America/New_York", "00:00-01:30", "2026-11-01T06:10:00Z", Some("2026-11-01T06:30:00Z")),
        ("America/New_York", "00:00-06:00:30", "2026-05-01T10:00:15Z", Some("2026-05-01T10:00:30Z")),
        ("Africa/Cairo", "22:00-00:00", "2026-04-23T21:30:00Z", Some("2026-04-23T22:00:00Z")),
        ("Australia/Lord_Howe", "00:00-02:15", "2026-10-03T15:20:00Z", Some("2026-10-03T15:30:00Z")),
        ("Asia/Kathmandu", "00:00-06:00", "2026-04-30T18:15:00Z", Some("2026-05-01T00:15:00Z")),
        ("America/Chicago", "00:00-06:00", "2026-05-01T11:00:00Z", None),
        ("America/New_York", "02:00-03:00", "2026-03-08T06:59:59Z", None),
        ("America/New_York", "23:00-05:00", "2026-05-02T07:00:00Z", Some("2026-05-02T09:00:00Z")),
        ("America/New_York", "01:30-02:30", "2026-11-01T05:45:00Z", Some("2026-11-01T06:00:00Z")),
        ("America/New_York", "01:30-02:30", "2026-11-01T06:30:00Z", Some("2026-11-01T07:30:00Z")),
    ];
    for (zone, hours, now, release) in table {
        check_release(vec![window(zone, hours, "")], now, release);
    }
    let overlapping =
        vec![window("America/Chicago", "00:00-06:00", ""), window("America/Chicago", "05:30-07:00", "")];
    check_release(overlapping, "2026-05-01T05:30:00Z", Some("2026-05-01T12:00:00Z"));
    let whole =
        vec![window("America/Chicago", "00:00-12:00", ""), window("America/Chicago", "12:00-00:00", "")];
    assert!(QuietHours::new(whole).is_err());
}

#[test]
fn a_window_belongs_to_the_day_on_which_it_starts() {
    let friday_night = || vec![window("UTC", "22:00-06:00", "fri")];
    check_release(friday_night(), "2026-05-01T21:59:59.999Z", None);
    check_release(friday_night(), "2026-05-01T22:00:00Z", Some("2026-05-02T06:00:00Z"));
    check_release(friday_night(), "2026-05-02T05:59:59.999Z", Some("2026-05-02T06:00:00Z"));
    check_release(friday_night(), "2026-05-01T03:00:00Z", None);
    check_release(friday_night(), "2026-05-02T22:00:00Z", None);
    let weekend = || vec![window("Europe/Berlin", "00:00-24:00", "sat sun")];
    check_release(weekend(), "2026-05-01T22:00:00Z", Some("2026-05-03T22:00:00Z"));
    check_release(weekend(), "2026-05-01T21:59:59Z", None);
    // The clocks go forward on that Sunday: the weekend has 47 hours.
    check_release(weekend(), "2026-03-27T23:00:00Z", Some("2026-03-29T22:00:00Z"));
}

/// Samoa went from Thursday 29 December 2011 to Saturday the 31st, at 10:00 UTC.
#[test]
fn the_morning_after_a_date_that_never_was_belongs_to_it_all_the_same() {
    let apia = |days| vec![window("Pacific/Apia", "22:00-06:00", days)];
    check_release(apia("thu"), "2011-12-30T09:00:00Z", Some("2011-12-30T10:00:00Z"));
    check_release(apia("fri"), "2011-12-30T09:59:59Z", None);
    check_release(apia("fri"), "2011-12-30T10:00:00Z", Some("2011-12-30T16:00:00Z"));
    check_release(apia(""), "2011-12-30T09:00:00Z", Some("2011-12-30T16:00:00Z"));
}

#[test]
fn windows_in_several_zones_make_one_hold() {
    // 02:00 to 06:00 and, in Tokyo, 06:00 to 08:30.
    let hours = || vec![window("Asia/Tokyo", "15:00-17:30", ""), window("UTC", "02:00-06:00", "")];
    check_release(hours(), "2026-05-01T03:00:00Z", Some("2026-05-01T08:30:00Z"));
    let set = QuietHours::new(hours()).unwrap();
    let found = set.intervals(set.mask_without_type(), at("2026-05-01T07:00:00Z"), 2);
    let expected =
        [("2026-05-01T02:00:00Z", "2026-05-01T08:30:00Z"), ("2026-05-02T02:00:00Z", "2026-05-02T08:30:00Z")];
    assert_eq!(found, expected.map(|(start, end)| (at(start), at(end))));
}

#[test]
fn bypass_wins_over_applies_to() {
    let windows = vec![
        for_types("00:00-06:00", &[], &[]),
        for_types("01:00-07:00", &["order.*"], &["order.paid"]),
        for_types("02:00-08:00", &[], &["order.*"]),
        for_types("03:00-09:00", &["*.paid", "alarm"], &["*"]),
    ];
    let hours = QuietHours::new(windows).unwrap();
    let table: [(&str, &[usize]); 4] =
        [("order.created", &[0, 1]), ("order.paid", &[0]), ("invoice.paid", &[0, 2]), ("alarm", &[0, 2])];
    for (event_type, expected) in table {
        let mask = hours.mask_for(&EventType::parse(event_type).unwrap());
        assert_eq!(mask.windows().collect::<Vec<_>>(), expected, "{event_type}");
    }
    assert_eq!(hours.mask_without_type().windows().collect::<Vec<_>>(), [0, 2]);
    assert!(
        WindowMask::NONE.is_empty() && hours.release(WindowMask::NONE, at("2026-05-01T03:30:00Z")).is_none()
    );
}

#[test]
fn without_windows_nothing_is_ever_quiet() {
    let none = QuietHours::none();
    let mask = none.mask_for(&EventType::parse("order.created").unwrap());
    assert!(none.is_empty() && mask.is_empty());
    assert_eq!(none.release(mask, Timestamp::MIN), None);
    assert_eq!(none.next_change(mask, at("2026-05-01T00:00:00Z")), Timestamp::MAX);
    assert_eq!(none.intervals(mask, at("2026-05-01T00:00:00Z"), 3), []);
}

#[test]
fn a_zone_that_vanished_does_not_hold_and_is_named() {
    let gone = spec("Mars/Olympus", "00:00-24:00", "");
    let windows = vec![Window::restore(gone.clone()).unwrap(), window("UTC", "00:00-06:00", "")];
    assert_eq!(*windows[0].spec(), gone);
    let hours = QuietHours::restore(windows).unwrap();
    assert_eq!(hours.unknown_zones().collect::<Vec<_>>(), ["Mars/Olympus"]);
    let mask = hours.mask_for(&EventType::parse("order.created").unwrap());
    assert_eq!(mask.windows().collect::<Vec<_>>(), [1]);
    assert_eq!(hours.release(mask, at("2026-05-01T01:00:00Z")), Some(at("2026-05-01T06:00:00Z")));
    assert!(Window::restore(spec("Mars/Olympus", "6-7", "")).is_err(), "only the zone is let pass");
}

#[test]
fn stored_windows_without_an_opening_still_end_the_search() {
    let hours = QuietHours::restore(vec![window("UTC", "00:00-24:00", "")]).unwrap();
    let mask = hours.mask_without_type();
    let now = at("2026-05-01T00:00:00Z");
    assert_eq!(hours.release(mask, now), Some(now + SEARCH_LIMIT));
    assert_eq!(hours.next_change(mask, now), now + SEARCH_LIMIT);
    assert_eq!(hours.intervals(mask, now, 5), [(now - SEARCH_LIMIT, now + SEARCH_LIMIT)]);
    assert_eq!(hours.release(mask, Timestamp::MAX), Some(Timestamp::MAX));
}

#[test]
fn an_opening_that_a_gap_swallows_is_waited_for_the_week_after() {
    // Open for an hour a week, at 2 on Sunday morning: on 8 March 2026 New York has no such hour.
    let new_york = |hours, days| window("America/New_York", hours, days);
    let windows = || {
        vec![
            new_york("00:00-24:00", "mon tue wed thu fri sat"),
            new_york("00:00-02:00", "sun"),
            new_york("03:00-24:00", "sun"),
        ]
    };
    check_release(windows(), "2026-03-01T08:00:00Z", Some("2026-03-15T06:00:00Z"));
}

fn refused(windows: Vec<Window>) -> bool {
    QuietHours::new(windows).is_err()
}

#[test]
fn windows_that_leave_a_type_no_moment_are_refused() {
    assert!(refused(vec![window("UTC", "00:00-24:00", "")]));
    assert!(refused(vec![window("UTC", "00:00-12:00", ""), window("Asia/Tokyo", "21:00-09:00", "")]));
    assert!(!refused(vec![window("UTC", "00:00-23:59:59", "")]));
    assert!(!refused(vec![window("UTC", "00:00-24:00", "mon tue wed thu fri sat")]));
    assert!(refused(vec![window("UTC", "12:00-11:00", ""), window("UTC", "11:00-12:00", "")]));

    // Open from 8 to 9 in New York and from 13 to 14 in Berlin. They are 5 hours apart for four weeks of the year.
    let only_in_march =
        || vec![window("America/New_York", "09:00-08:00", ""), window("Europe/Berlin", "14:00-13:00", "")];
    let fault = QuietHours::new(only_in_march()).unwrap_err().under("delivery_schedules").to_string();
    let expected = "`delivery_schedules` is closed all the time from 2026-01-01T00:00:00.000Z; allowed: windows that \
                    leave an opening at least every three weeks for every event type; shorten one, or limit it with \
                    `days`, `applies_to` or `bypass_event_types`";
    assert_eq!(fault, expected);
    let fault = QuietHours::new(vec![window("UTC", "00:00-01:00", ""); 21]).unwrap_err().to_string();
    assert_eq!(fault, "`` is 21 windows; allowed: at most 20 windows");
}

#[test]
fn windows_that_never_meet_in_one_type_are_not_refused() {
    let halves = |first: (&[&str], &[&str]), second: (&[&str], &[&str])| {
        vec![for_types("00:00-12:00", first.0, first.1), for_types("12:00-00:00", second.0, second.1)]
    };
    assert!(!refused(halves((&["order.*"], &[]), (&["invoice.*"], &[]))));
    assert!(!refused(halves((&["order.*"], &[]), (&[], &["order.*"]))));
    assert!(!refused(halves((&["*.paid"], &["order.*"]), (&["order.*"], &[]))));
    assert!(!refused(halves((&["order.*"], &["*"]), (&[], &[]))));
    assert!(refused(halves((&["*.paid"], &[]), (&["order.*"], &[]))));
    assert!(refused(halves((&["order.*"], &["order.paid"]), (&[], &["alarm"]))));
    assert!(refused(halves((&["order.*.*"], &[]), (&["*.line.*"], &[]))));
}

#[test]
fn patterns_made_to_cross_each_other_do_not_stall_the_check() {
    // Each pattern fixes another segment: 2^20 of their combinations have names in common.
    let crossing: Vec<String> = (0..20).map(|i| format!("{}a.*", "*.".repeat(i))).collect();
    let crossing: Vec<&str> = crossing.iter().map(String::as_str).collect();
    let windows = vec![for_types("00:00-12:00", &crossing, &[]), for_types("12:00-00:00", &["b"], &[])];
    let fault = QuietHours::new(windows).unwrap_err().to_string();
    assert!(fault.contains("over 4096 ways"), "{fault}");
    assert!(!refused(vec![for_types("00:00-12:00", &crossing, &[])]), "not where there is an opening anyway");
}
