//! The payload: kept as the bytes that came in.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;
use tidegate_store::event::Body;

use super::wire::Text;
use crate::api::error::ApiError;

/// How deep arrays and objects may be nested: what receivers' parsers commonly take.
const MAX_DEPTH: usize = 128;
/// The longest `content_type`.
const MAX_CONTENT_TYPE: usize = 255;

/// What is sent, out of what stands in `body`: a part of it where that saves a copy.
pub(crate) fn take(
    payload: &RawValue,
    content_type: Option<&Text<'_>>,
    body: &Bytes,
) -> Result<(Bytes, Body), ApiError> {
    let raw = payload.get();
    let content_type = content_type.map(|text| read_content_type(&text.0)).transpose()?;
    if raw.starts_with('"') {
        let text: Text<'_> = serde_json::from_str(raw).map_err(|_| {
            ApiError::invalid(
                "payload",
                "`payload` is a string with half a character in it: \\uD800 to \\uDFFF come in pairs",
            )
        })?;
        let bytes = match text.0 {
            Cow::Borrowed(text) => share(text.as_bytes(), body),
            Cow::Owned(text) => Bytes::from(text),
        };
        return Ok((bytes, Body::Text(content_type)));
    }
    if depth_exceeds(raw.as_bytes(), MAX_DEPTH) {
        let message = format!("`payload` is nested deeper than {MAX_DEPTH} levels");
        return Err(ApiError::invalid("payload", message));
    }
    let kind = content_type.map_or(Body::Json, Body::JsonAs);
    Ok((share(raw.as_bytes(), body), kind))
}

/// A part of the body without a copy, unless it would keep much more than itself in memory.
fn share(part: &[u8], body: &Bytes) -> Bytes {
    let within = body.as_ptr_range().contains(&part.as_ptr());
    if within && part.len() * 2 >= body.len() { body.slice_ref(part) } else { Bytes::copy_from_slice(part) }
}

fn read_content_type(text: &str) -> Result<Arc<str>, ApiError> {
    let fine = (3..=MAX_CONTENT_TYPE).contains(&text.len())
        && text.bytes().all(|byte| (b' '..0x7f).contains(&byte))
        && text.trim() == text
        && text.split_once('/').is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty());
    if fine {
        return Ok(text.into());
    }
    let message = "`content_type` must be a media type such as text/csv: 3 to 255 visible ASCII characters";
    Err(ApiError::invalid("content_type", message))
}

/// Whether JSON, known to be well-formed, is nested deeper than `most`.
fn depth_exceeds(json: &[u8], most: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                if depth > most {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn payloads_stay_as_they_are() {
        for json in [
            r#"{"b":1,"a":2,"b":3}"#,
            "123456789012345678901234567890.000",
            "1e400",
            r#"{"nul":"\u0000","odd":"\ud800"}"#,
            "[ 1 ,\t2 ]",
            "null",
        ] {
            let (bytes, kind) = take(&raw(json), None, &Bytes::new()).unwrap();
            assert_eq!((&bytes[..], kind), (json.as_bytes(), Body::Json));
        }
    }

    #[test]
    fn a_string_is_its_text() {
        let csv = Text("text/csv".into());
        let (bytes, kind) = take(&raw(r#""a;b\nü\u0000""#), Some(&csv), &Bytes::new()).unwrap();
        assert_eq!(&bytes[..], "a;b\nü\0".as_bytes());
        assert_eq!(kind, Body::Text(Some("text/csv".into())));
        assert!(take(&raw(r#""\ud800""#), None, &Bytes::new()).is_err());
    }

    #[test]
    fn nesting_is_bounded_and_brackets_in_strings_do_not_count() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(!depth_exceeds(nested(128).as_bytes(), 128));
        assert!(depth_exceeds(nested(129).as_bytes(), 128));
        assert!(!depth_exceeds(format!(r#"["{}\"["]"#, "[".repeat(500)).as_bytes(), 128));
        assert!(depth_exceeds(format!(r#"["\\", {}]"#, nested(128)).as_bytes(), 128));
    }

    #[test]
    fn a_large_payload_is_shared_with_the_body_a_small_one_copied() {
        let body = Bytes::from_static(br#"{"payload":[1,2,3,4,5,6,7,8,9,10,11,12]}"#);
        let part = &body[11..body.len() - 1];
        assert_eq!(share(part, &body).as_ptr(), part.as_ptr());
        assert_ne!(share(&body[11..13], &body).as_ptr(), part.as_ptr());
    }
}
