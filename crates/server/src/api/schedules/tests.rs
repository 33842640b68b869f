use serde_json::{Value, json};

use super::*;

const NOW: Timestamp = Timestamp::from_millis(0);

fn ask(body: Value) -> Result<Preview, Invalid> {
    work_out(&serde_json::from_value(body).unwrap(), NOW)
}

fn window(zone: &str, hours: &str) -> Value {
    let (start, end) = hours.split_once('-').unwrap();
    json!({"timezone": zone, "quiet_start": start, "quiet_end": end})
}

/// Worked out by brute force, second by second, over the IANA data.
#[test]
fn the_golden_vectors_hold() {
    for (zone, hours, at, release) in [
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
    ] {
        let preview = ask(json!({"delivery_schedule": window(zone, hours), "at": at})).unwrap();
        assert_eq!(preview.quiet, release.is_some(), "{zone} {hours} {at}");
        let expected = Timestamp::parse(release.unwrap_or(at)).unwrap();
        assert_eq!(preview.release_at, expected, "{zone} {hours} {at}");
    }
}

#[test]
fn several_windows_hold_together_and_must_leave_an_opening() {
    let chicago = |hours| window("America/Chicago", hours);
    let both = json!({"delivery_schedules": [chicago("00:00-06:00"), chicago("05:30-07:00")],
                      "at": "2026-05-01T05:30:00Z", "count": 1});
    let preview = ask(both).unwrap();
    assert_eq!(preview.release_at, Timestamp::parse("2026-05-01T12:00:00Z").unwrap());
    assert_eq!(preview.windows[0].start, Timestamp::parse("2026-05-01T05:00:00Z").unwrap());
    assert_eq!(preview.windows[0].end, preview.release_at, "windows that touch make one interval");
    let never = json!({"delivery_schedules": [chicago("00:00-12:00"), chicago("12:00-00:00")]});
    assert_eq!(ask(never).unwrap_err().field, "delivery_schedules");
}

#[test]
fn windows_for_some_types_count_for_these_only() {
    let mut quiet = window("UTC", "00:00-06:00");
    quiet["applies_to"] = json!(["order.*"]);
    let ask_for = |event_type: Value| {
        let body =
            json!({"delivery_schedule": quiet, "at": "2026-05-01T01:00:00Z", "event_type": event_type});
        ask(body).unwrap().quiet
    };
    assert!(ask_for(json!("order.paid")));
    assert!(!ask_for(json!("user.created")));
    assert!(!ask_for(Value::Null), "without a type they are left out");
}

#[test]
fn a_fault_is_named_as_it_was_written() {
    for (field, body) in [
        ("delivery_schedule", json!({})),
        ("delivery_schedule.timezone", json!({"delivery_schedule": window("Mars/Base", "00:00-01:00")})),
        (
            "delivery_schedules[0].timezone",
            json!({"delivery_schedules": [window("Mars/Base", "00:00-01:00")]}),
        ),
        ("at", json!({"delivery_schedule": window("UTC", "00:00-01:00"), "at": "yesterday"})),
        ("count", json!({"delivery_schedule": window("UTC", "00:00-01:00"), "count": 101})),
        ("event_type", json!({"delivery_schedule": window("UTC", "00:00-01:00"), "event_type": "a..b"})),
    ] {
        assert_eq!(ask(body.clone()).unwrap_err().field, field, "{body}");
    }
}
