//! An event as it stands in a request: borrowed from the body, field by field.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::api::error::ApiError;
use crate::api::extract;

/// An event to publish.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an event: a JSON object")]
pub(crate) struct EventBody<'a> {
    /// What happened: segments of letters, digits, `_` and `-`, joined by dots.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 128, pattern = r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$", example = "order.created")]
    pub(crate) event_type: Cow<'a, str>,
    /// Any JSON value, sent byte for byte as it stands here. A string is sent as its text.
    #[serde(borrow)]
    #[schema(value_type = serde_json::Value)]
    pub(crate) payload: &'a RawValue,
    /// Your own id of the event, unique for 24 h per account and type.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255)]
    pub(crate) external_event_id: Option<Text<'a>>,
    /// When it happened, if not now.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) occurred_at: Option<Text<'a>>,
    /// Stale from then on.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) expires_at: Option<Text<'a>>,
    /// Stale this many seconds after its receipt.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 2_592_000)]
    pub(crate) ttl_seconds: Option<i64>,
    /// Not before then: at most 90 days ahead.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) deliver_at: Option<Text<'a>>,
    /// Events with the same key keep their order, where the destination asks for that.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 256)]
    pub(crate) ordering_key: Option<Text<'a>>,
    /// 1 critical … 4 bulk; 3 if not said.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 4)]
    pub(crate) priority: Option<u64>,
    /// Exactly these destinations, by id or external id, instead of those that match.
    #[serde(borrow, default)]
    #[schema(value_type = Option<Vec<String>>, min_items = 1, max_items = 1000)]
    pub(crate) destination_ids: Option<Vec<Text<'a>>>,
    /// What the payload is, if it is no `application/json` (a string: `text/plain`).
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, min_length = 3, max_length = 255)]
    pub(crate) content_type: Option<Text<'a>>,
}

/// Events to publish together.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchBody<'a> {
    /// 1 to 1,000 of them.
    #[serde(borrow)]
    #[schema(value_type = Vec<EventBody>, min_items = 1, max_items = 1000)]
    events: Vec<&'a RawValue>,
}

/// Text, borrowed where it has no escapes. (Inside an `Option` serde would copy a `Cow`.)
#[derive(Debug)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> serde::de::Visitor<'de> for Reader {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
            fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text)))
            }
        }
        deserializer.deserialize_str(Reader)
    }
}

/// Reads one event. Only what is refused is read a second time, to say where the fault lies.
pub(crate) fn read_event(body: &[u8]) -> Result<EventBody<'_>, ApiError> {
    extract::parse_quickly(body).or_else(|_| extract::parse(body))
}

/// The events of `{"events": […]}`, each still as its bytes.
pub(super) fn split_list(body: &[u8]) -> Result<Vec<&[u8]>, ApiError> {
    let batch: BatchBody<'_> = extract::parse(body)?;
    Ok(batch.events.into_iter().map(|event| event.get().as_bytes()).collect())
}

/// The lines that are not blank.
pub(super) fn split_lines(body: &[u8]) -> Vec<&[u8]> {
    body.split(|byte| *byte == b'\n').filter(|line| !line.iter().all(u8::is_ascii_whitespace)).collect()
}
