//! The preview of quiet hours, through the API.

mod kit;

use std::path::Path;

use kit::Server;
use serde_json::{Value, json};

/// Goal: what time it is somewhere does not hang on the time zones of the machine.
/// Method: a zone database in which New York is rubbish, and every other zone missing.
#[tokio::test]
async fn broken_time_zones_of_the_machine_change_no_quiet_hours() {
    let zones = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("zones-{}", std::process::id()));
    std::fs::create_dir_all(zones.join("America")).expect("the build's directory is ours");
    std::fs::write(zones.join("America/New_York"), b"TZif2 rubbish").expect("it can be written");
    let server = Server::start_in(&[("TZDIR", &zones.display().to_string())], &[]).await;
    for (zone, opens) in
        [("America/New_York", "09:00"), ("Asia/Kathmandu", "23:15"), ("Australia/Lord_Howe", "18:00")]
    {
        let window = json!({"timezone": zone, "quiet_start": "23:00", "quiet_end": "05:00"});
        let at = "2026-03-08T12:00:00Z";
        let body = json!({"delivery_schedule": window, "at": at, "count": 1});
        let preview = server.post("/v1/schedules/preview", body).await.expect(200);
        let end = preview["windows"][0]["end"].as_str().unwrap_or_default();
        assert!(end.contains(&format!("T{opens}:00")), "{zone}: {preview}");
    }
    let _ = std::fs::remove_dir_all(zones);
}

#[tokio::test]
async fn a_schedule_can_be_tried_out_before_it_is_set() {
    let server = Server::start(&[]).await;
    let window = json!({"timezone": "America/New_York", "quiet_start": "23:00", "quiet_end": "05:00"});
    let body = json!({"delivery_schedule": window, "at": "2026-03-08T04:30:00Z", "count": 2});
    let preview = server.post("/v1/schedules/preview", body).await.expect(200);
    assert_eq!(
        preview,
        json!({"quiet": true, "release_at": "2026-03-08T09:00:00.000Z", "windows": [
            {"start": "2026-03-08T04:00:00.000Z", "end": "2026-03-08T09:00:00.000Z"},
            {"start": "2026-03-09T03:00:00.000Z", "end": "2026-03-09T09:00:00.000Z"}
        ]})
    );
    let refused = server.post("/v1/schedules/preview", json!({"delivery_schedules": [window, {"timezone": "Mars/Base", "quiet_start": "00:00", "quiet_end": "01:00"}]})).await;
    assert_eq!(refused.expect_error(422, "invalid_field")["field"], "delivery_schedules[1].timezone");
    server.post("/v1/schedules/preview", json!([])).await.expect_error(422, "invalid_field");
}

/// Goal: quiet hours that never end are refused when they are written, wherever that is, and change nothing.
#[tokio::test]
async fn windows_that_leave_no_moment_open_are_refused() {
    let server = Server::start(&[]).await;
    let window =
        |start: &str, end: &str| json!({"timezone": "Europe/Berlin", "quiet_start": start, "quiet_end": end});
    let with = |mut window: Value, field: &str, value: Value| {
        window[field] = value;
        window
    };
    let halves = |day: &str| {
        ["00:00", "12:00"].map(|start| {
            let end = if start == "00:00" { "12:00" } else { "00:00" };
            with(window(start, end), "days", json!([day]))
        })
    };
    let week = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let days: Vec<_> = week.into_iter().flat_map(halves).collect();
    let abroad = with(window("11:30", "00:30"), "timezone", json!("UTC"));
    let orders = with(window("12:00", "00:00"), "applies_to", json!(["order.*"]));
    let bypass = |window| with(window, "bypass_event_types", json!(["payment.failed"]));
    let kept = json!([window("01:00", "02:00")]);
    let body = json!({"url": "https://example.com/", "external_id": "d", "delivery_schedules": kept});
    server.post("/v1/destinations", body).await.expect(201);
    for (windows, opens) in [
        (json!([window("00:00", "12:00"), window("12:00", "00:00")]), false),
        (json!([window("00:00", "12:01"), window("12:00", "23:59")]), true),
        (json!([window("08:00", "20:00"), window("18:00", "09:00")]), false),
        // In winter it is an hour later in Berlin than in UTC, in summer two.
        (json!([window("00:00", "14:00"), abroad]), false),
        (json!(days), false),
        (json!(days[..13]), true),
        (json!(days[1..]), true),
        // For some types only.
        (json!([window("00:00", "12:00"), orders]), false),
        (json!([with(window("00:00", "12:00"), "applies_to", json!(["payment.*"])), orders]), true),
        (json!([bypass(window("00:00", "12:00")), bypass(window("12:00", "00:00"))]), false),
    ] {
        let fields = json!({"delivery_schedules": windows});
        let mut body = fields.clone();
        body["url"] = json!("https://example.com/");
        let made = server.post("/v1/destinations", body).await;
        let tried = server.post("/v1/schedules/preview", fields.clone()).await;
        if opens {
            made.expect(201);
            tried.expect(200);
            continue;
        }
        let changed = server.patch("/v1/destinations/d", fields.clone()).await;
        for refused in [made, tried, changed] {
            let refused = refused.expect_error(422, "invalid_field");
            assert_eq!(refused["field"], "delivery_schedules", "{windows}: {refused}");
        }
        let settings = server.patch("/v1/settings", json!({"defaults": fields})).await;
        let refused = settings.expect_error(422, "invalid_field");
        assert_eq!(refused["field"], "defaults.delivery_schedules", "{windows}: {refused}");
    }
    let whole =
        server.post("/v1/schedules/preview", json!({"delivery_schedule": window("00:00", "00:00")})).await;
    let refused = whole.expect_error(422, "invalid_field");
    assert!(
        refused["field"].as_str().is_some_and(|field| field.starts_with("delivery_schedule")),
        "{refused}"
    );
    let shown = server.get("/v1/destinations/d").await.expect(200);
    assert_eq!(shown["delivery_schedules"][0]["quiet_start"], "01:00", "{shown}");
    assert_eq!(shown["delivery_schedules"].as_array().map(Vec::len), Some(1));
}
