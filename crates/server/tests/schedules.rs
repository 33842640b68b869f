//! The preview of quiet hours, through the API.

mod kit;

use kit::Server;
use serde_json::json;

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
