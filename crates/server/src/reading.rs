//! What strangers write, read as the server reads it, without a server around it.
//!
//! The fuzz targets (`fuzz/`) throw bytes at these. Each calls the reader of its endpoint; none has a rule of its own.

use bytes::Bytes;
use tidegate_core::quiet::QuietHours;
use tidegate_store::AccountNo;
use tidegate_store::event::Body;

use crate::api::error::ApiError;
use crate::api::page::Cursor;
use crate::api::schedules::PreviewBody;
use crate::api::{extract, publish};
use crate::config::{Config, Layers};

/// Why something was refused.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status that the caller is answered.
    pub status: u16,
    /// The sentence.
    pub message: String,
}

/// An event, as far as it can be read without knowing the account.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened, not yet checked.
    pub event_type: String,
    /// What is sent.
    pub payload: Bytes,
    /// Whether it is JSON; else it is the text of a JSON string.
    pub is_json: bool,
}

/// Reads the body of `POST /v1/outbound-events`.
pub fn event(body: &Bytes) -> Result<Event, Refusal> {
    let event = publish::wire::read_event(body).map_err(refusal)?;
    let (payload, kind) =
        publish::payload::take(event.payload, event.content_type.as_ref(), body).map_err(refusal)?;
    let is_json = matches!(kind, Body::Json | Body::JsonAs(_));
    Ok(Event { event_type: event.event_type.into_owned(), payload, is_json })
}

/// Reads the body of `POST /v1/outbound-events/batch` into its events, each still as its bytes.
pub fn batch(body: &[u8], lines: bool) -> Result<Vec<&[u8]>, Refusal> {
    publish::split(body, lines).map_err(refusal)
}

/// Reads a `cursor` of a list of an account: the place in the list.
pub fn cursor(list: &'static str, account: u32, text: &str) -> Result<u128, Refusal> {
    Cursor { list, account: AccountNo(account) }.decode(text).map_err(refusal)
}

/// The `next_cursor` for a place in such a list.
pub fn cursor_at(list: &'static str, account: u32, position: u128) -> String {
    Cursor { list, account: AccountNo(account) }.encode(position)
}

/// Reads the schedule in the body of `POST /v1/schedules/preview`.
pub fn schedule(body: &[u8]) -> Result<QuietHours, Refusal> {
    let body: PreviewBody = extract::parse(body).map_err(refusal)?;
    body.hours().map_err(refusal)
}

/// Reads the text of a `tidegate.toml`: every setting and its value, or all that is wrong.
pub fn file_settings(text: &str) -> Result<String, String> {
    settings(|layers| layers.add_text(std::path::Path::new("tidegate.toml"), text))
}

/// Reads variables of the environment likewise.
pub fn environment_settings(variables: Vec<(String, String)>) -> Result<String, String> {
    settings(|layers| layers.add_environment(variables))
}

fn settings(add: impl FnOnce(&mut Layers)) -> Result<String, String> {
    let mut layers = Layers::defaults();
    add(&mut layers);
    Config::new(&layers).map(|config| format!("{config:#?}")).map_err(|problems| problems.to_string())
}

fn refusal(error: impl Into<ApiError>) -> Refusal {
    let error = error.into();
    Refusal { status: error.status().as_u16(), message: error.to_string() }
}
