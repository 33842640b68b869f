use proptest::prelude::*;

use super::*;

fn one(name: &str, value: &str) -> Result<CustomHeaders, Invalid> {
    CustomHeaders::parse([(name, value)])
}

#[test]
fn ordinary_headers_are_taken_with_their_names_in_lower_case() {
    let headers =
        CustomHeaders::parse([("X-Api-Key", "k1"), ("Authorization", "Basic eA=="), ("X-Empty", "")])
            .unwrap();
    let pairs: Vec<_> = headers.iter().collect();
    assert_eq!(pairs, [("x-api-key", "k1"), ("authorization", "Basic eA=="), ("x-empty", "")]);
}

#[test]
fn names_that_are_ours_or_steer_the_connection_are_refused() {
    for name in [
        "webhook-id",
        "Webhook-Signature",
        "tidegate-attempt",
        "TIDEGATE-ANYTHING",
        "Host",
        "Content-Length",
        "content-type",
        "Content-Encoding",
        "Transfer-Encoding",
        "Connection",
        "Keep-Alive",
        "TE",
        "Trailer",
        "Upgrade",
        "Expect",
        "Proxy-Authorization",
        "proxy-connection",
        "Forwarded",
        "X-Forwarded-For",
        "x-forwarded-host",
        "Cookie",
        "Metadata",
        "Metadata-Flavor",
        "X-aws-ec2-metadata-token",
        "X-Google-Metadata-Request",
        "x-amz-security-token",
        "X-Azure-Anything",
        "User-Agent",
        "Accept-Encoding",
    ] {
        let fault = one(name, "x").unwrap_err();
        assert_eq!(fault.field, format!("custom_headers.{name}"));
    }
}

#[test]
fn what_is_no_token_is_no_name() {
    for name in ["", "a b", "a:", "a\r\nb", "ä", "a\0", "(x)", "x\u{7f}", &"x".repeat(257)] {
        assert!(one(name, "x").is_err(), "{name:?}");
    }
    assert!(one(&"x".repeat(256), "x").is_ok());
}

#[test]
fn a_value_cannot_end_its_line() {
    for value in ["a\r\nb", "a\nb", "a\rb", "a\0b", "a\x1bb", "a\x7f", " a", "a ", "\ta", &"x".repeat(4_097)]
    {
        let fault = one("x-key", value).unwrap_err();
        assert_eq!(
            (fault.field.as_str(), fault.value.as_deref()),
            ("custom_headers.x-key", Some("(not shown)"))
        );
    }
    for value in ["a b", "a\tb", "ä", &"x".repeat(4_096)] {
        assert!(one("x-key", value).is_ok(), "{value:?}");
    }
}

#[test]
fn a_name_comes_once_and_there_are_32_at_most() {
    let twice = CustomHeaders::parse([("X-Key", "1"), ("x-kEY", "2")]).unwrap_err();
    assert_eq!(twice.field, "custom_headers.x-kEY");
    let many = |count| CustomHeaders::parse((0..count).map(|n| (format!("x-{n}"), "")));
    assert!(many(32).is_ok());
    assert_eq!(many(33).unwrap_err().field, "custom_headers");
}

#[test]
fn a_content_type_is_a_media_type_on_one_line() {
    for text in ["text/csv", "application/json; charset=utf-8", "application/cloudevents+json"] {
        assert_eq!(check_content_type(text), Ok(()));
    }
    for text in [
        "",
        "/",
        "text",
        "text/",
        "/csv",
        "te xt/csv",
        "text/ csv",
        "text/csv\r\nx: y",
        "text/ä",
        &"x/".repeat(200),
    ] {
        assert_eq!(check_content_type(text).unwrap_err().field, "content_type", "{text:?}");
    }
}

#[test]
fn debug_text_has_no_values() {
    assert_eq!(format!("{:?}", one("x-key", "s3cret").unwrap()), r#"{"x-key"}"#);
}

proptest! {
    #[test]
    fn what_is_taken_cannot_break_out_of_its_line(name in ".{0,20}|[a-z-]{1,12}", value in ".{0,20}|[ -~\r\n]{0,20}") {
        if let Ok(headers) = CustomHeaders::parse([(&name, &value)]) {
            for (name, value) in headers.iter() {
                prop_assert!(!name.contains(|c: char| c.is_control() || c == ':' || c == ' '));
                prop_assert!(!value.contains(['\r', '\n', '\0']));
            }
        }
    }
}
