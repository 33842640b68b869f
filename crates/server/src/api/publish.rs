//! Publishing: events come in, one or many, and are answered once they are committed.
//!
//! ```text
//!   body ──► read (wire, payload) ──► build (routing, terms, deliveries) ──► warn ──► store.accept ──► answer
//! ```
//!
//! The path of every event: the body is parsed once, its parts are borrowed, and the payload stays the bytes that came in.
//! Awaited are the body, a look of the engine at events that expire, and the commit; in a cluster also that the event's number
//! is in the past on every node, and for a repeated `external_event_id` the event that came first.

mod answer;
mod build;
pub(crate) mod outbox;
pub(crate) mod payload;
pub(crate) mod wire;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tidegate_core::id::EventId;
use tidegate_core::pattern::EventType;
use tidegate_core::sequence::Sequence;
use tidegate_store::AccountNo;
use tidegate_store::event::{Accept, Accepted, IdempotencyKey, Item, NewEvent};
use tidegate_store::list::{EventFilter, PageQuery};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::answer::{BatchAnswer, Published, Shape};
use self::build::{Builder, Drafted};
use self::wire::{BatchBody, EventBody};
use super::error::ApiError;
use super::extract::{check_content_type, check_encoding, media_type, read_body, single_header};
use super::openapi::WriteRefusals;
use super::told::{self, Over};
use super::{App, Data};
use crate::auth::{Call, Caller, Publisher};

/// Events of a batch at most.
const MAX_BATCH: usize = 1_000;
/// The longest `Idempotency-Key`.
const MAX_KEY: usize = 255;
/// Many events in one body, one on each line.
const NDJSON: &str = "application/x-ndjson";

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(publish)).routes(routes!(publish_batch))
}

/// Publish an event.
///
/// Answered once it is committed. `payload` is sent byte for byte as it stands here; a JSON string is sent as its text.
#[utoipa::path(
    post,
    path = "/v1/outbound-events",
    tag = "publish",
    params(("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255,
            description = "The same key and body within 24 h give the first answer again.")),
    request_body(content = EventBody, content_type = "application/json"),
    responses((status = 202, description = "It is committed.", body = Data<Published>), WriteRefusals)
)]
async fn publish(
    State(app): State<App>,
    Call { caller, .. }: Call<Publisher>,
    request: Request,
) -> Result<Response, ApiError> {
    check_content_type(request.headers())?;
    let key = idempotency_key(request.headers())?;
    let body = take_in(&app, request, app.config.max_event_bytes).await?;
    let key = key.map(|key| keyed(&caller, Shape::Single, key, &body));
    let draft = || {
        let event = wire::read_event(&body)?;
        Ok(vec![Builder::new(&app, caller.account).draft(&event, &body)?])
    };
    let answered = match draft() {
        Ok(drafts) => accept(&app, &caller, drafts, key.clone(), Shape::Single).await,
        Err(refused) => Err(refused),
    };
    let answered = or_first_event(&app, &caller, &body, answered).await;
    or_first_answer(&app, key, answered).await
}

/// Publish up to 1,000 events: all of them, or none.
#[utoipa::path(
    post,
    path = "/v1/outbound-events/batch",
    tag = "publish",
    params(("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255,
            description = "It covers the whole batch.")),
    request_body(
        description = "A list, or one event on each line (NDJSON).",
        content((BatchBody = "application/json"), (String = "application/x-ndjson"))
    ),
    responses((status = 202, description = "All are committed.", body = Data<BatchAnswer>), WriteRefusals)
)]
async fn publish_batch(
    State(app): State<App>,
    Call { caller, .. }: Call<Publisher>,
    request: Request,
) -> Result<Response, ApiError> {
    let lines = media_type(request.headers()).as_deref() == Some(NDJSON);
    if lines {
        check_encoding(request.headers())?;
    } else {
        check_content_type(request.headers())?;
    }
    let key = idempotency_key(request.headers())?;
    let body = take_in(&app, request, app.config.max_batch_bytes).await?;
    let key = key.map(|key| keyed(&caller, Shape::Batch, key, &body));
    let answered = match draft_batch(&app, &caller, &body, lines) {
        Ok(drafts) => accept(&app, &caller, drafts, key.clone(), Shape::Batch).await,
        Err(refused) => Err(refused),
    };
    or_first_answer(&app, key, answered).await
}

/// The whole body of a call that publishes. A server that stops takes in nothing more, also of calls whose body was still on
/// its way: asked only before the body, it would accept for as long as bodies take.
async fn take_in(app: &App, request: Request, limit: usize) -> Result<Bytes, ApiError> {
    let body = read_body(request, limit).await?;
    if *app.leaving.borrow() {
        return Err(ApiError::unavailable("the server is shutting down: nothing was accepted"));
    }
    Ok(body)
}

fn draft_batch(app: &App, caller: &Caller, body: &Bytes, lines: bool) -> Result<Vec<Drafted>, ApiError> {
    let builder = Builder::new(app, caller.account);
    let draft = |part: &[u8]| {
        let event = wire::read_event(part)?;
        if part.len() > app.config.max_event_bytes {
            return Err(ApiError::too_large(app.config.max_event_bytes).field("payload"));
        }
        // One small payload must not keep the whole batch in memory.
        builder.draft(&event, &Bytes::new())
    };
    let parts = split(body, lines)?;
    let drafts = parts.iter().enumerate();
    drafts.map(|(index, part)| draft(part).map_err(|error| error.within("events", index))).collect()
}

fn keyed(caller: &Caller, shape: Shape, key: String, body: &Bytes) -> IdempotencyKey {
    let (account, endpoint) = (caller.account, shape.endpoint());
    IdempotencyKey { account, endpoint, key, body_hash: Sha256::digest(body).into() }
}

/// What is refused now may have been accepted the first time, before a quota was reached or a destination deleted: whoever
/// asks again with the same key is told what was answered then.
async fn or_first_answer(
    app: &App,
    key: Option<IdempotencyKey>,
    answered: Result<Response, ApiError>,
) -> Result<Response, ApiError> {
    let (Some(key), true) = (key, answered.is_err()) else { return answered };
    match app.engine.store().answered(key, app.engine.now().wall).await {
        Ok(Some(Accepted::Again(bytes))) => Ok(again(bytes)),
        Ok(_) | Err(_) => answered,
    }
}

/// The same for a repeated `external_event_id`, which needs no room and goes nowhere anew.
async fn or_first_event(
    app: &App,
    caller: &Caller,
    body: &Bytes,
    answered: Result<Response, ApiError>,
) -> Result<Response, ApiError> {
    match &answered {
        // Of its type it may have been said since that its events go stale earlier: before its `deliver_at`.
        Err(refused) if refused.is_of_the_moment() || refused.is_about("deliver_at") => {
            first_event(app, caller.account, body).await.unwrap_or(answered)
        }
        _ => answered,
    }
}

/// The answer where an event was accepted before under the same name: whether it is the same, or another.
async fn first_event(app: &App, account: AccountNo, body: &Bytes) -> Option<Result<Response, ApiError>> {
    let event = wire::read_event(body).ok()?;
    let filter = EventFilter {
        event_type: Some(EventType::parse(&event.event_type).ok()?),
        from: Some(app.engine.now().wall - tidegate_store::event::REMEMBERED),
        external_event_id: Some(event.external_event_id?.0.as_ref().into()),
        ..EventFilter::default()
    };
    let page = PageQuery { account, before: None, limit: 1, oldest_first: false };
    let first = app.engine.store().events(page, filter).await.ok()?.items.pop()?;
    let (payload, _) = payload::take(event.payload, event.content_type.as_ref(), body).ok()?;
    let item = Item::Duplicate { first: first.message.id, routed: Some(first.routed) };
    let answer = Published::new(first.message.id, first.routed as usize, false);
    if first.message.payload != payload {
        return Some(Err(name_taken(&first.message.id.to_string())));
    }
    Some(Ok(answer::json(answer::render(Shape::Single, vec![answer], &[item]))))
}

/// 409 for a name that another event has.
fn name_taken(owner: &str) -> ApiError {
    let message = format!("this external_event_id belongs to {owner}, which has another payload");
    ApiError::conflict("external_event_id_taken", message).field("external_event_id")
}

/// What was answered the first time.
fn again(bytes: Vec<u8>) -> Response {
    ([("idempotency-replayed", "true")], answer::json(bytes)).into_response()
}

/// The events of a batch, each still as its bytes.
pub(crate) fn split(body: &[u8], lines: bool) -> Result<Vec<&[u8]>, ApiError> {
    let parts = if lines { wire::split_lines(body) } else { wire::split_list(body)? };
    if parts.is_empty() || parts.len() > MAX_BATCH {
        let message = format!("`events` holds {}; allowed: 1 to {MAX_BATCH}", parts.len());
        return Err(ApiError::invalid("events", message));
    }
    Ok(parts)
}

/// The highest number that belongs to an event.
fn last_number(event: &NewEvent) -> Sequence {
    let last = event.deliveries.iter().map(|(_, delivery)| delivery.id.sequence()).max();
    last.unwrap_or(event.message.id.sequence())
}

/// Commits the events and answers.
async fn accept(
    app: &App,
    caller: &Caller,
    drafts: Vec<Drafted>,
    key: Option<IdempotencyKey>,
    shape: Shape,
) -> Result<Response, ApiError> {
    let (events, mut answers): (Vec<NewEvent>, Vec<Published>) =
        drafts.into_iter().map(|draft| (draft.event, draft.answer)).unzip();
    check_quota(app, caller.account, &events)?;
    let events = answer::warn(app, events, &mut answers).await?;
    let idempotency = key.map(|key| {
        let answers = answers.clone();
        let render: tidegate_store::event::RenderAnswer =
            Box::new(move |items| answer::render(shape, answers.clone(), items));
        (key, render)
    });
    let ids: Vec<EventId> = match shape {
        Shape::Single => Vec::new(),
        Shape::Batch => events.iter().map(|event| event.message.id).collect(),
    };
    let over: Vec<(usize, Over)> = events.iter().enumerate().flat_map(over).collect();
    let now = app.engine.now().wall;
    let last = events.iter().map(last_number).max();
    match app.engine.store().accept(Accept { now, events, idempotency, outbox: None }).await? {
        Accepted::Stored(items) => {
            if let Some(last) = last {
                app.engine.past(last).await;
            }
            let is_new = |index: usize| matches!(items.get(index), Some(Item::New(_)));
            let over = over.into_iter().filter(|(index, _)| is_new(*index)).map(|(_, over)| over);
            told::tell_over(app, caller.account, over);
            Ok(answer::json(answer::render(shape, answers, &items)))
        }
        Accepted::Again(bytes) => Ok(again(bytes)),
        Accepted::KeyReused => {
            let message = "this Idempotency-Key was used for another body: use a new key for a new request";
            Err(ApiError::invalid("Idempotency-Key", message).code("idempotency_key_reused"))
        }
        Accepted::Conflict { index, first } => {
            // One of the same batch was not stored, and has no id that anybody could look up.
            let owner = match ids.iter().position(|id| *id == first) {
                Some(other) => format!("events[{other}]"),
                None => first.to_string(),
            };
            let error = name_taken(&owner);
            Err(if shape == Shape::Batch { error.within("events", index) } else { error })
        }
        Accepted::Taken => unreachable!("a request does not come from the outbox"),
    }
}

/// The deliveries of an event that are over before they began, with its place in the request.
fn over((index, event): (usize, &NewEvent)) -> impl Iterator<Item = (usize, Over)> {
    let over =
        event.deliveries.iter().filter_map(|(destination, delivery)| told::over(*destination, delivery));
    over.map(move |over| (index, over))
}

/// 429 where more would wait than the account may have.
fn check_quota(app: &App, account: AccountNo, events: &[NewEvent]) -> Result<(), ApiError> {
    /// A queue that is full drains in seconds or in hours: asking twice a minute is enough.
    const RETRY_SECONDS: u32 = 30;
    let Some(entry) = app.catalogue.account(account) else { return Err(ApiError::unauthorized()) };
    let settings = &entry.settings.document;
    if settings.max_queued_events.is_none() && settings.max_queued_bytes.is_none() {
        return Ok(());
    }
    let waiting = app.engine.store().waiting(tidegate_store::lane::Of::Account(account));
    let (mut deliveries, mut bytes) = (waiting.deliveries, waiting.bytes);
    for event in events {
        let count = event.deliveries.len() as u64;
        deliveries += count;
        bytes = bytes.saturating_add(count.saturating_mul(event.message.payload.len() as u64));
    }
    let over = |limit: Option<u64>, value: u64| limit.is_some_and(|limit| value > limit);
    let what = if over(settings.max_queued_events, deliveries) {
        "max_queued_events"
    } else if over(settings.max_queued_bytes, bytes) {
        "max_queued_bytes"
    } else {
        return Ok(());
    };
    let message = format!("too much of this account waits already: its {what} would be passed");
    Err(ApiError::quota(message, RETRY_SECONDS))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = single_header(headers, "Idempotency-Key")? else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=MAX_KEY).contains(&key.len()));
    let message = format!("`Idempotency-Key` must be 1 to {MAX_KEY} visible ASCII characters");
    key.map(|key| Some(key.to_owned())).ok_or_else(|| ApiError::invalid("Idempotency-Key", message))
}
