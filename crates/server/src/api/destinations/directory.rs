//! Finding destinations among many: by what they are called, by how they do, in the order that a person wants.
//!
//! Most of it is in memory: the catalogue, the kept counts, the lanes. What must be read for each one is read for those of the
//! page alone; an order by it goes by the account's [sheet](crate::api::survey).

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tidegate_core::gate::{self, Hold};
use tidegate_core::time::Timestamp;
use tidegate_store::lane::Of;
use tidegate_store::stats::Tally;
use tidegate_store::{AccountNo, DestinationNo};
use utoipa::{IntoParams, ToSchema};

use crate::api::App;
use crate::api::error::ApiError;
use crate::api::page::{Cursor, ListAnswer, PageParams, Total, page_of};
use crate::api::survey::{self, Sheet};
use crate::catalogue::DestinationEntry;

/// Whoever wants an order that must be read waits for it this long, the first time.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct DirectoryQuery {
    /// Whose name, URL or external id contains this, or whose id begins so, whatever its case.
    search: Option<String>,
    /// With this status now.
    #[param(inline)]
    status: Option<StatusWord>,
    /// In which order: `newest` if not said.
    #[param(inline)]
    sort: Option<Sort>,
    /// Items of a page: 25 if not said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// Whether to count all of them.
    total: Option<bool>,
}

/// An order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Sort {
    /// The newest first.
    Newest,
    /// By name.
    Name,
    /// Those that need a person first, then those that wait, the longest queue first.
    Attention,
    /// The longest queue first.
    Queued,
    /// The most requests in flight first.
    Inflight,
    /// The longest timeout first.
    Timeout,
    /// The one first whose oldest queued delivery was accepted first. With many destinations the order is seconds old.
    Oldest,
    /// The lowest success rate first, those without attempts last. With many destinations the order is seconds old.
    SuccessRate,
}

impl Sort {
    const fn needs_sheet(self) -> bool {
        matches!(self, Self::Oldest | Self::SuccessRate)
    }
}

/// How a destination does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum StatusWord {
    /// Switched off.
    Disabled,
    /// A person paused it, or its line stands until a person resumes it.
    Paused,
    /// Too many attempts failed.
    CircuitOpen,
    /// It answered 429.
    Throttled,
    /// It asked us to wait.
    Unavailable,
    /// Its night.
    QuietHours,
    /// Its rate is spent.
    RateLimited,
    /// All slots are taken.
    AtCapacity,
    /// Nothing holds it.
    Active,
}

impl StatusWord {
    const fn word(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Paused => "paused",
            Self::CircuitOpen => "circuit_open",
            Self::Throttled => "throttled",
            Self::Unavailable => "unavailable",
            Self::QuietHours => "quiet_hours",
            Self::RateLimited => "rate_limited",
            Self::AtCapacity => "at_capacity",
            Self::Active => "active",
        }
    }
}

/// What an order needs to know of a lane.
#[derive(Clone, Copy, Debug)]
struct Look {
    status: &'static str,
    urgency: i64,
    inflight: u32,
    timeout_ms: i64,
}

/// What a destination is sorted by: a number or a name; the least comes first, and the newest of equals.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    number: i64,
    name: String,
    id: Reverse<u128>,
}

/// A cursor carries the key that the last one had: the next page begins behind it, wherever that one is by now, so that whoever
/// goes on comes to an end.
impl Key {
    fn to_text(&self) -> String {
        format!("{} {} {}", self.number, self.id.0, self.name)
    }
    fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        let number = parts.next()?.parse().ok()?;
        let id = Reverse(parts.next()?.parse().ok()?);
        Some(Self { number, name: parts.next()?.to_owned(), id })
    }
}

/// A page of the destinations that fit.
pub(super) async fn page(
    app: &App,
    account: AccountNo,
    query: &DirectoryQuery,
) -> Result<ListAnswer<Arc<DestinationEntry>>, ApiError> {
    let sort = query.sort.unwrap_or(Sort::Newest);
    let by_key = query.status.is_some() || sort != Sort::Newest;
    let list = Cursor { list: if by_key { "destinations by key" } else { "destinations" }, account };
    let by_number = query.cursor.as_deref().filter(|_| !by_key);
    let params = PageParams::new(list, query.limit, by_number, query.total)?;
    let mut entries = app.catalogue.destinations(account);
    if let Some(search) = query.search.as_deref().map(str::trim).filter(|search| !search.is_empty()) {
        let search = search.to_lowercase();
        entries.retain(|entry| contains(entry, &search));
    }
    if !by_key {
        return Ok(page_of(entries, |entry| entry.row.id.to_bits(), params, list, |entry| entry));
    }
    let sheet = if sort.needs_sheet() { Some(asked_sheet(app, account).await?) } else { None };
    let last = query.cursor.as_deref().map(|text| list.decode_name(text)).transpose()?;
    let last = last.as_deref().and_then(Key::from_text);
    let looks = look(app, account, &entries).await?;
    let mut keyed: Vec<(Key, Arc<DestinationEntry>)> = entries
        .into_iter()
        .zip(looks)
        .filter(|(_, look)| query.status.is_none_or(|status| status.word() == look.status))
        .map(|(entry, look)| (key(app, sort, sheet.as_deref(), &entry, look), entry))
        .collect();
    keyed.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let total = if params.total { Total::counted(keyed.len() as u64) } else { Total::Unasked };
    let from = last.map_or(0, |last| keyed.partition_point(|(key, _)| *key <= last));
    let more = keyed.len() > from + params.limit;
    let page = || keyed.iter().skip(from).take(params.limit);
    let next_cursor = page().next_back().filter(|_| more).map(|(key, _)| list.encode_name(&key.to_text()));
    let items = page().map(|(_, entry)| Arc::clone(entry)).collect();
    Ok(ListAnswer { items, next_cursor, total })
}

fn contains(entry: &DestinationEntry, search: &str) -> bool {
    let document = &entry.spec.document;
    document.name.to_lowercase().contains(search)
        || document.url.to_lowercase().contains(search)
        || entry.row.external_id.as_deref().is_some_and(|id| id.to_lowercase().contains(search))
        // Only who brings the beginning of an id means one.
        || search.starts_with("dst_") && entry.row.id.to_string().to_lowercase().starts_with(search)
}

async fn asked_sheet(app: &App, account: AccountNo) -> Result<Arc<Sheet>, ApiError> {
    let sheet = survey::sheet(app, account, PATIENCE).await?;
    sheet.ok_or_else(|| ApiError::unavailable("the destinations are still being looked over: try again"))
}

fn key(app: &App, sort: Sort, sheet: Option<&Sheet>, entry: &DestinationEntry, look: Look) -> Key {
    let waiting = || app.engine.store().waiting(Of::Destination(entry.row.no)).deliveries;
    let queued = || i64::try_from(waiting().saturating_sub(u64::from(look.inflight))).unwrap_or(i64::MAX);
    let surveyed = || sheet.map(|sheet| sheet.of(entry.row.no)).unwrap_or_default();
    let number = match sort {
        Sort::Newest | Sort::Name => 0,
        Sort::Attention => look.urgency - queued().min(MAX_URGENCY - 1),
        Sort::Queued => -queued(),
        Sort::Inflight => -i64::from(look.inflight),
        Sort::Timeout => -look.timeout_ms,
        Sort::Oldest => surveyed().oldest_open.map_or(i64::MAX, Timestamp::as_millis),
        Sort::SuccessRate => success_permyriad(&surveyed().tally),
    };
    let name = if sort == Sort::Name { entry.spec.document.name.to_lowercase() } else { String::new() };
    Key { number, name, id: Reverse(entry.row.id.to_bits()) }
}

/// Successes of ten thousand attempts; without attempts more than all.
fn success_permyriad(tally: &Tally) -> i64 {
    let rate = tally.successes.saturating_mul(10_000).checked_div(tally.attempts);
    rate.and_then(|rate| i64::try_from(rate).ok()).unwrap_or(i64::MAX)
}

/// Steps between two urgencies: queues that are longer count as this long.
const MAX_URGENCY: i64 = 1 << 40;

/// The less, the sooner a person should look.
fn urgency(status: &str) -> i64 {
    let rank = match status {
        "disabled" => 0,
        "circuit_open" => 1,
        "throttled" | "unavailable" => 3,
        "paused" => 4,
        "active" => 6,
        _ => 5,
    };
    rank * MAX_URGENCY
}

async fn look(
    app: &App,
    account: AccountNo,
    entries: &[Arc<DestinationEntry>],
) -> Result<Vec<Look>, ApiError> {
    let all: Vec<DestinationNo> = entries.iter().map(|entry| entry.row.no).collect();
    let see = |view: &tidegate_engine::View<'_>, no: DestinationNo| match view.lane(no) {
        None => Look { status: "active", urgency: urgency("active"), inflight: 0, timeout_ms: 0 },
        Some(lane) => {
            let holds = lane.holds(view.now);
            let status = gate::status(&holds).word();
            // Some ordering keys stand, and others go: it is active, and a person must look all the same.
            let asks = if holds.iter().any(Hold::is_for_a_person) { urgency("paused") } else { i64::MAX };
            let timeout = lane.state().timeout(lane.policy(), None);
            let inflight = view.in_flight_of(no);
            Look { status, urgency: urgency(status).min(asks), inflight, timeout_ms: timeout.get() }
        }
    };
    survey::look_over(app, account, all, see).await
}
