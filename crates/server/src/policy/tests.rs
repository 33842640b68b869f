use serde_json::json;
use tidegate_core::order::Ordering;
use tidegate_core::rate::{Per, Quota, RateMode};
use tidegate_core::time::Millis;
use tidegate_core::timeout::TimeoutMode;

use super::*;

fn read<T: serde::de::DeserializeOwned>(json: serde_json::Value) -> T {
    serde_json::from_value(json).unwrap()
}

fn made(json: serde_json::Value) -> Result<Draft, Invalid> {
    read::<NewDestination>(json).build(false, [7; 32]).map(|(draft, _)| draft)
}

fn patched(draft: &Draft, json: serde_json::Value) -> Result<Draft, Invalid> {
    let mut next = draft.clone();
    read::<DestinationPatch>(json).apply(&mut next, false).map(|()| next)
}

fn policy(draft: &Draft) -> Policy {
    compile(&draft.document.policies, &Ground::default(), Reading::Stored).0
}

#[test]
fn a_url_is_enough() {
    let (draft, secret) =
        read::<NewDestination>(json!({"url": "https://hooks.example.com/in"})).build(true, [7; 32]).unwrap();
    assert_eq!(draft.document.name, "hooks.example.com");
    assert_eq!(draft.document.event_types, ["*"]);
    assert!(secret.unwrap().starts_with("whsec_"), "the server made one");
    assert_eq!(draft.secrets.signing.len(), 1);
    let policy = policy(&draft);
    assert_eq!(policy.max_concurrency.get(), 5);
    assert!(policy.rate_limit.is_none() && policy.quiet.is_empty() && policy.retry.is_none());
}

#[test]
fn the_example_of_the_contract_is_taken_as_it_stands() {
    let draft = made(json!({
        "name": "Order Fulfillment", "url": "https://example.com/x", "active": true, "event_types": ["order.*"],
        "max_concurrency": 20, "ordering": "none", "on_exhausted": "skip", "timeout_seconds": 5,
        "rate_limit": {"max_per_minute": 100, "burst_capacity": 250, "mode": "fixed"},
        "delivery_schedule": {"timezone": "America/Chicago", "quiet_start": "00:00", "quiet_end": "06:00",
                              "days": [], "applies_to": [], "bypass_event_types": ["payment.failed"]},
        "retry_policy": {"max_attempts": 5, "delays_seconds": [30, 120, 600, 3600], "jitter": "proportional"},
        "circuit_breaker": {"failure_ratio": 0.5, "min_attempts": 10, "window_seconds": 60,
                            "consecutive_failures": 5, "open_seconds": 30, "max_open_seconds": 600},
        "permanent_statuses": [], "envelope": "raw",
        "signing_secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "auth_config": {"type": "bearer", "token": "t0ken"}, "custom_headers": {}
    }))
    .unwrap();
    let policy = policy(&draft);
    assert_eq!(policy.rate_limit.unwrap().quota, Quota::new(100, Per::Minute, Some(250)).unwrap());
    assert_eq!(policy.timeout, TimeoutMode::Manual(Millis::seconds(5)));
    assert_eq!(policy.quiet.windows().len(), 1);
    let stored = draft.document.to_stored();
    assert!(!stored.contains("t0ken") && !stored.contains("whsec_"), "{stored}");
    assert_eq!(DestinationDocument::from_stored(&stored).unwrap(), draft.document);
    let (endpoint, faults) = endpoint::compile(&draft.document, &draft.secrets).unwrap();
    assert!(faults.is_empty());
    assert_eq!(endpoint.target.url(), "https://example.com/x");
    assert!(!format!("{endpoint:?}").contains("t0ken"));
}

#[test]
fn what_is_wrong_is_named_by_its_path() {
    let window = |zone: &str, start: &str, end: &str| json!({"timezone": zone, "quiet_start": start, "quiet_end": end});
    for (field, body) in [
        ("url", json!({})),
        ("url", json!({"url": null})),
        ("url", json!({"url": "ftp://example.com"})),
        ("name", json!({"name": "x".repeat(201)})),
        ("external_id", json!({"external_id": "a/b"})),
        ("external_id", json!({"external_id": "dst_01KPXTQ4Z0E9GZ3V8QH5X7N2RD"})),
        ("active", json!({"active": null})),
        ("event_types[1]", json!({"event_types": ["a.*", "a..b"]})),
        ("max_concurrency", json!({"max_concurrency": 1001})),
        ("timeout_seconds", json!({"timeout_seconds": 121})),
        ("timeout", json!({"timeout_seconds": 5, "timeout": {"mode": "adaptive"}})),
        ("rate_limit.max_per_minute", json!({"rate_limit": {}})),
        ("rate_limit.max_per_minute", json!({"rate_limit": {"max_per_minute": 600_001}})),
        ("rate_limit.burst_capacity", json!({"rate_limit": {"max_per_minute": 1, "burst_capacity": 0}})),
        ("rate_limit.max", json!({"rate_limit": {"max": 0, "per": "minute"}})),
        ("rate_limit.max", json!({"rate_limit": {"max": 10_001, "per": "second"}})),
        ("rate_limit.per", json!({"rate_limit": {"max": 1}})),
        ("rate_limit.max", json!({"rate_limit": {"max_per_minute": 1, "max": 1, "per": "day"}})),
        ("delivery_schedule.timezone", json!({"delivery_schedule": window("Mars/Base", "00:00", "01:00")})),
        ("delivery_schedule.quiet_end", json!({"delivery_schedule": window("UTC", "00:00", "25:00")})),
        (
            "delivery_schedules[1].timezone",
            json!({"delivery_schedules": [window("UTC", "00:00", "01:00"), window("Nowhere", "00:00", "01:00")]}),
        ),
        (
            "delivery_schedules",
            json!({"delivery_schedules": [window("UTC", "00:00", "12:00"), window("UTC", "12:00", "00:00")]}),
        ),
        (
            "delivery_schedules",
            json!({"delivery_schedule": window("UTC", "00:00", "01:00"), "delivery_schedules": []}),
        ),
        ("delivery_schedules", json!({"delivery_schedules": vec![window("UTC", "00:00", "01:00"); 21]})),
        ("retry_policy.max_attempts", json!({"retry_policy": {"max_attempts": 51}})),
        ("retry_policy.delays_seconds[1]", json!({"retry_policy": {"delays_seconds": [1, 0]}})),
        ("circuit_breaker.failure_ratio", json!({"circuit_breaker": {"failure_ratio": 0.0}})),
        (
            "circuit_breaker.max_open_seconds",
            json!({"circuit_breaker": {"open_seconds": 60, "max_open_seconds": 5}}),
        ),
        ("permanent_statuses[0]", json!({"permanent_statuses": [429]})),
        ("signing_secret", json!({"signing_secret": "whsec_c2hvcnQ="})),
        ("auth_config.token", json!({"auth_config": {"type": "bearer"}})),
        ("auth_config.token", json!({"auth_config": {"type": "bearer", "token": "a\r\nb"}})),
        ("auth_config.value", json!({"auth_config": {"type": "bearer", "token": "a", "value": "b"}})),
        ("auth_config.name", json!({"auth_config": {"type": "header", "value": "b"}})),
        ("auth_config.name", json!({"auth_config": {"type": "header", "name": "host", "value": "b"}})),
        ("custom_headers.content-length", json!({"custom_headers": {"content-length": "3"}})),
        (
            "custom_headers.x-key",
            json!({"custom_headers": {"X-Key": "3"}, "auth_config": {"type": "header", "name": "x-key", "value": "b"}}),
        ),
    ] {
        let mut whole = body.clone();
        if field != "url" {
            whole["url"] = json!("https://example.com");
        }
        let fault = made(whole).expect_err(&body.to_string());
        assert_eq!(fault.field, field, "{body}: {fault}");
    }
}

#[test]
fn a_patch_changes_what_it_names_and_nothing_else() {
    let before = made(json!({
        "url": "https://example.com", "external_id": "shop-1", "timeout_seconds": 5,
        "rate_limit": {"max": 7, "per": "hour"}, "ordering": "fifo", "auth_config": {"type": "bearer", "token": "t"}
    }))
    .unwrap();
    let same = patched(&before, json!({})).unwrap();
    assert_eq!(same, before);
    let after = patched(
        &before,
        json!({"rate_limit": null, "timeout_seconds": null, "auth_config": null, "external_id": null, "name": "New"}),
    )
    .unwrap();
    assert_eq!((after.external_id.as_ref(), after.secrets.auth.as_ref()), (None, None));
    assert_eq!(after.document.name, "New");
    let policy = policy(&after);
    assert_eq!((policy.rate_limit, policy.timeout), (None, TimeoutMode::Adaptive));
    assert_eq!(policy.ordering, Ordering::Fifo);
    let unpinned = patched(&before, json!({"timeout": {"mode": "default"}})).unwrap();
    assert_eq!(
        super::compile(&unpinned.document.policies, &Ground::default(), Reading::Stored).0.timeout,
        TimeoutMode::Default
    );
    // What a client was shown of it, and sends back.
    assert_eq!(patched(&unpinned, json!({"timeout_seconds": null})).unwrap(), unpinned, "nothing was pinned");
    let silent = patched(&unpinned, json!({"timeout": null})).unwrap();
    assert_eq!(self::policy(&silent).timeout, TimeoutMode::Adaptive);
}

#[test]
fn where_a_destination_says_nothing_its_account_does() {
    let ground = Ground {
        defaults: read(json!({
            "max_concurrency": 9, "rate_limit": {"max_per_minute": 60, "mode": "adaptive"},
            "delivery_schedules": [{"timezone": "UTC", "quiet_start": "00:00", "quiet_end": "01:00"}],
            "retry_policy": {"max_attempts": 2}
        })),
        ..Ground::default()
    };
    let own = |json| compile(&read::<PolicyDocument>(json), &ground, Reading::Written).0;
    let silent = own(json!({}));
    assert_eq!(silent.max_concurrency.get(), 9);
    assert_eq!(silent.rate_limit.unwrap().mode, RateMode::Adaptive);
    assert_eq!(silent.quiet.windows().len(), 1);
    assert!(silent.retry.is_none(), "the account's retry policy comes after the plan for a short life");
    let own = own(json!({"max_concurrency": 2, "delivery_schedules": []}));
    assert_eq!((own.max_concurrency.get(), own.quiet.is_empty()), (2, true));
}

#[test]
fn a_zone_that_vanished_is_told_by_the_windows_and_stops_nothing() {
    let own: PolicyDocument = read(json!({
        "max_concurrency": 3,
        "delivery_schedules": [{"timezone": "Atlantis/Capital", "quiet_start": "00:00", "quiet_end": "01:00"}]
    }));
    let (policy, faults) = compile(&own, &Ground::default(), Reading::Stored);
    assert!(faults.is_empty());
    assert_eq!(policy.quiet.unknown_zones().collect::<Vec<_>>(), ["Atlantis/Capital"]);
    assert_eq!(policy.max_concurrency.get(), 3);
}

#[test]
fn a_stored_part_that_is_wrong_by_now_is_left_out_and_told() {
    let own: PolicyDocument = read(json!({"max_concurrency": 5_000, "timeout_seconds": 7}));
    let (policy, faults) = compile(&own, &Ground::default(), Reading::Stored);
    assert_eq!((policy.max_concurrency.get(), faults.len()), (5, 1));
    assert_eq!(policy.timeout, TimeoutMode::Manual(Millis::seconds(7)));
}

#[test]
fn unknown_fields_are_refused_at_every_level() {
    for body in [
        json!({"url": "https://a.example", "metadata": {}}),
        json!({"url": "https://a.example", "rate_limit": {"max_per_minute": 1, "burst": 2}}),
        json!({"url": "https://a.example", "circuit_breaker": {"threshold": 1}}),
        json!({"url": "https://a.example", "auth_config": {"type": "bearer", "token": "a", "scope": "b"}}),
    ] {
        assert!(serde_json::from_value::<NewDestination>(body.clone()).is_err(), "{body}");
    }
}
