use axum::response::IntoResponse;
use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only what is refused matters")]
struct Outer {
    name: String,
    #[serde(default)]
    inner: Option<Inner>,
    #[serde(default)]
    list: Vec<Inner>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only what is refused matters")]
struct Inner {
    max: u32,
}

async fn refusal(body: &str) -> (u16, serde_json::Value) {
    let response = parse::<Outer>(body.as_bytes()).expect_err(body).into_response();
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn a_fault_is_answered_with_the_path_of_its_field() {
    for (body, field) in [
        (r#"{}"#, "name"),
        (r#"{"name": 5}"#, "name"),
        (r#"{"name": "a", "nmae": 1}"#, "nmae"),
        (r#"{"name": "a", "name": "b"}"#, "name"),
        (r#"{"name": "a", "inner": {}}"#, "inner.max"),
        (r#"{"name": "a", "inner": {"max": -1}}"#, "inner.max"),
        (r#"{"name": "a", "inner": {"max": 1, "min": 1}}"#, "inner.min"),
        (r#"{"name": "a", "list": [{"max": 1}, {"max": "x"}]}"#, "list[1].max"),
        (r#"{"name": "a", "list": [{"max": 1}, {"mix": 1}]}"#, "list[1].mix"),
        (r#"{"name": "a", "list": [1]}"#, "list[0]"),
        (r#"{"name": "a", "inner": {"max": 1e999}}"#, "inner.max"),
        (r#"{"name": "\ud800"}"#, "name"),
    ] {
        let (status, json) = refusal(body).await;
        assert_eq!((status, json["field"].as_str()), (422, Some(field)), "{body}: {json}");
    }
}

#[tokio::test]
async fn a_value_of_the_wrong_type_is_not_repeated() {
    for (body, kind) in [
        (r#"{"name": 12345}"#, "integer"),
        (r#"{"name": 123.45}"#, "floating point"),
        (r#"{"name": "a", "inner": "12345"}"#, "string"),
        (r#"{"name": "a", "inner": "12345, expected `12345` \", expected "}"#, "string"),
        (r#"{"name": "a", "inner": {"max": -12345}}"#, "integer"),
        (r#"{"name": "a", "inner": {"max": "12345"}}"#, "string"),
    ] {
        let (_, json) = refusal(body).await;
        let said = json["error"].as_str().unwrap();
        assert!(
            !said.contains("123") && said.contains(kind) && said.contains(", expected "),
            "{body}: {said}"
        );
    }
}

#[tokio::test]
async fn what_is_not_json_is_400() {
    let deep = format!(r#"{{"name": {}1{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
    for body in ["", "{", "nope", r#"{"name": "a"} x"#, r#"{"name": NaN}"#, &deep] {
        let (status, json) = refusal(body).await;
        let code = json["code"].as_str().unwrap().to_owned();
        assert!((status, code.as_str()) == (400, "invalid_json") || status == 422, "{body:.40}: {json}");
    }
    assert_eq!(refusal("{").await.0, 400);
}
