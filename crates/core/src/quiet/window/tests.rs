use super::*;

fn spec() -> WindowSpec {
    WindowSpec {
        timezone: "Europe/Berlin".into(),
        quiet_start: "22:00".into(),
        quiet_end: "06:00".into(),
        ..WindowSpec::default()
    }
}

fn hours(start: &str, end: &str) -> Result<(i64, i64), Invalid> {
    let spec = WindowSpec { quiet_start: start.into(), quiet_end: end.into(), ..spec() };
    Window::parse(spec).map(|window| (window.hours.start, window.hours.length))
}

fn fault(change: impl FnOnce(&mut WindowSpec)) -> String {
    let mut changed = spec();
    change(&mut changed);
    Window::parse(changed).unwrap_err().to_string()
}

#[test]
fn times_are_two_digits_each_and_the_end_may_be_24() {
    let table = [
        ("00:00", "06:00", Some((0, 21_600))),
        ("00:00:00", "24:00:00", Some((0, 86_400))),
        ("23:59:59", "24:00", Some((86_399, 1))),
        ("22:00", "06:00:30", Some((79_200, 28_830))),
        ("22:00", "00:00", Some((79_200, 7_200))),
        ("22:00", "24:00", Some((79_200, 7_200))),
        ("24:00", "06:00", None),
        ("00:00", "24:00:01", None),
        ("00:00", "24:01", None),
        ("00:00", "25:00", None),
        ("00:60", "06:00", None),
        ("00:00:60", "06:00", None),
        ("9:00", "10:00", None),
        ("09:0", "10:00", None),
        ("009:00", "10:00", None),
        ("09", "10:00", None),
        ("09:00:", "10:00", None),
        ("09:00:00:00", "10:00", None),
        ("09:00:00.5", "10:00", None),
        (" 09:00", "10:00", None),
        ("+9:00", "10:00", None),
        ("-1:00", "10:00", None),
        ("٠٩:00", "10:00", None),
        ("09:00", "9 am", None),
        ("", "10:00", None),
        ("09:00", "", None),
        ("09:00", "09:00:00", None),
        ("00:00", "00:00", None),
    ];
    for (start, end, expected) in table {
        assert_eq!(hours(start, end).ok(), expected, "{start} to {end}");
    }
}

#[test]
fn a_refusal_says_where_and_what_to_write_instead() {
    assert_eq!(
        fault(|spec| spec.timezone = "Europe/Berlyn".into()),
        "`timezone` is Europe/Berlyn; allowed: a name of the IANA time zone database, such as Europe/Berlin or \
         America/New_York"
    );
    assert!(fault(|spec| spec.timezone = "Etc/Unknown".into()).starts_with("`timezone` is Etc/Unknown;"));
    assert!(fault(|spec| spec.timezone = String::new()).starts_with("`timezone` is missing;"));
    assert_eq!(
        fault(|spec| spec.quiet_start = "24:00".into()),
        "`quiet_start` is 24:00; allowed: HH:MM or HH:MM:SS, from 00:00 to 23:59:59"
    );
    assert_eq!(
        fault(|spec| spec.quiet_end = "6:00".into()),
        "`quiet_end` is 6:00; allowed: HH:MM or HH:MM:SS, from 00:00 to 24:00"
    );
    assert_eq!(
        fault(|spec| spec.quiet_end = "22:00:00".into()),
        "`quiet_end` is 22:00:00, the same as `quiet_start`; allowed: another time; a whole day is 00:00 to 24:00"
    );
    let days = |names: &[&str]| fault(|spec| spec.days = names.iter().map(|&name| name.into()).collect());
    assert_eq!(days(&["mon", "Tue"]), "`days[1]` is Tue; allowed: mon, tue, wed, thu, fri, sat, sun");
    assert_eq!(days(&["mon", "tue", "mon"]), "`days[2]` is mon; allowed: each day once");
    assert!(days(&[""]).starts_with("`days[0]` is missing;"));
    assert!(fault(|spec| spec.applies_to = vec!["a*".into()]).starts_with("`applies_to[0]` is a*;"));
    let many = |list: &mut Vec<String>| *list = vec!["a".into(); 101];
    assert!(
        fault(|spec| many(&mut spec.bypass_event_types)).starts_with("`bypass_event_types` is 101 patterns;")
    );
}

#[test]
fn zones_are_found_whatever_their_case_and_kept_as_written() {
    let window = Window::parse(WindowSpec { timezone: "europe/BERLIN".into(), ..spec() }).unwrap();
    assert!(window.is_zone_known());
    assert_eq!(window.spec().timezone, "europe/BERLIN");
}

#[test]
fn days_are_those_of_the_calendar() {
    let days =
        |names: &[&str]| Days::parse(&names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>()).unwrap();
    assert!(days(&["thu"]).contain(0) && days(&["wed"]).contain(-1) && days(&["fri"]).contain(1));
    assert!(!days(&["thu"]).contain(1) && days(&["thu"]).contain(7) && days(&["thu"]).contain(-7));
    assert_eq!(days(&[]), Days::EVERY);
    assert_eq!(days(&DAY_NAMES), Days::EVERY);
}

#[test]
fn the_next_start_is_at_most_a_week_away() {
    let on = |days: &[&str]| {
        Hours::parse(&WindowSpec { days: days.iter().map(|&d| d.into()).collect(), ..spec() }).unwrap()
    };
    let start = 22 * 3_600;
    assert_eq!(on(&["thu"]).until_start(0), start);
    assert_eq!(on(&["thu"]).until_start(start), 7 * DAY);
    assert_eq!(on(&["fri"]).until_start(0), DAY + start);
    assert_eq!(on(&[]).until_start(start), DAY);
    assert_eq!(on(&["wed"]).until_start(-1), 6 * DAY + start + 1);
}
