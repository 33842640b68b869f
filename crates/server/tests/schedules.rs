//! The preview of quiet hours, through the API.

mod kit;

use std::path::Path;

use kit::Server;
use serde_json::json;

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
