//! The nodes of the installation: this one, or all that share a database.

use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tidegate_core::sequence::Sequence;
use tidegate_core::slots::{NodeNo, Slot};
use tidegate_core::time::{Millis, Timestamp};
use tidegate_engine::Seen;
use tidegate_store::{AccountNo, DestinationNo};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::openapi::Refusals;
use super::page::{Cursor, ListAnswer, ListQuery, page_of};
use super::{App, Data, ok};
use crate::auth::{Call, Operator};

/// The name of a node that was given none, where there is only one.
pub(crate) const THIS_NODE: &str = "single";

/// The name of this node.
fn own_name(app: &App) -> String {
    app.config.node_name.clone().unwrap_or_else(|| THIS_NODE.to_owned())
}

/// The node that gave this number at that time. One that has left since is known by its seat.
pub(crate) fn name_of(app: &App, number: Sequence, at: Timestamp) -> String {
    let Some(seen) = app.engine.cluster() else { return own_name(app) };
    let Some(seat) = number.seat() else { return String::new() };
    let sat = |row: &&tidegate_store::cluster::NodeRow| row.seat == seat && row.started_at <= at;
    let row = seen.nodes.iter().find(sat);
    row.map_or_else(|| format!("seat-{}", seat.get()), |row| row.identity.name.clone())
}

/// The node that works a destination.
pub(crate) fn worker_of(app: &App, destination: DestinationNo) -> Option<String> {
    let seen = app.engine.cluster()?;
    let holder = (*seen.holders.get(Slot::of(destination.0).index())?)?;
    seen.nodes.iter().find(|row| row.no == holder).map(|row| row.identity.name.clone())
}

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

/// A node.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct NodeView {
    /// Its name.
    id: String,
    /// `active`, `leaving`, or `gone`: its lease has ended.
    #[schema(value_type = String)]
    status: &'static str,
    /// Which version of Tidegate.
    version: String,
    /// Where it listens.
    address: Option<String>,
    /// Since when it is there.
    started_at: Option<String>,
    /// Until when its lease holds, unless it is renewed; `null`: there is no other node.
    lease_until: Option<String>,
    /// Slots that it works, of 256, as ranges: `0-84,170`.
    slots: String,
    /// How many these are.
    slot_count: usize,
    /// Destinations that it serves.
    destinations: usize,
    /// Requests in flight; `null`: ask that node.
    inflight: Option<u32>,
    /// Requests in flight at most; `null`: ask that node.
    max_in_flight: Option<u32>,
    /// Why slots moved, of the node that answers: the last of them last.
    moves: Vec<MoveView>,
}

/// Slots that moved.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct MoveView {
    /// When.
    at: String,
    /// `claimed`, `passing` (it has more than its share, or leaves), `given back`, `lost` (another took them when its lease ended).
    #[schema(value_type = String)]
    what: &'static str,
    /// How many.
    slots: usize,
}

/// List the nodes.
#[utoipa::path(
    get, path = "/v1/nodes", tag = "observing", params(ListQuery),
    responses((status = 200, description = "All nodes.", body = Data<ListAnswer<NodeView>>), Refusals)
)]
async fn list(
    State(app): State<App>,
    Call { query, .. }: Call<Operator, ListQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let list = Cursor { list: "nodes", account: AccountNo(0) };
    let page = query.page(list)?;
    let look = app.engine.look(|view| {
        (view.lanes().map(|(destination, _)| destination).collect::<Vec<_>>(), view.in_flight())
    });
    let (destinations, inflight) = look.await?;
    let own = NodeView {
        id: own_name(&app),
        status: if *app.leaving.borrow() { "leaving" } else { "active" },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        address: None,
        started_at: None,
        lease_until: None,
        slots: "0-255".to_owned(),
        slot_count: 256,
        destinations: destinations.len(),
        inflight: Some(inflight),
        max_in_flight: Some(app.config.max_in_flight),
        moves: Vec::new(),
    };
    let nodes = match app.engine.cluster() {
        None => vec![own],
        Some(seen) => of_cluster(&app, &seen, &destinations, &own),
    };
    let position = |(place, _): &(usize, NodeView)| u128::MAX - *place as u128;
    Ok(ok(page_of(nodes.into_iter().enumerate(), position, page, list, |(_, node)| node)))
}

/// All nodes that the last renewal showed. Of the others, only what they tell of themselves is known here.
fn of_cluster(app: &App, seen: &Seen, destinations: &[DestinationNo], own: &NodeView) -> Vec<NodeView> {
    let now = app.engine.now().wall;
    let mut nodes = Vec::with_capacity(seen.nodes.len());
    for row in &seen.nodes {
        let held = slots_of(seen, row.no);
        let mine = seen.me == Some(row.no);
        let served = |no: &&DestinationNo| held.contains(&Slot::of(no.0));
        nodes.push(NodeView {
            id: row.identity.name.clone(),
            status: match () {
                () if row.lease_left <= Millis::ZERO => "gone",
                () if row.leaving => "leaving",
                () => "active",
            },
            version: row.identity.version.clone(),
            address: Some(row.identity.address.clone()),
            started_at: Some(row.started_at.to_string()),
            lease_until: Some((now + row.lease_left).to_string()),
            slots: ranges(&held),
            slot_count: held.len(),
            destinations: destinations.iter().filter(served).count(),
            inflight: own.inflight.filter(|_| mine),
            max_in_flight: own.max_in_flight.filter(|_| mine),
            moves: if mine { moves(seen) } else { Vec::new() },
        });
    }
    nodes.sort_by(|a, b| a.id.cmp(&b.id));
    nodes
}

fn slots_of(seen: &Seen, node: NodeNo) -> Vec<Slot> {
    let held = Slot::all().zip(&seen.holders).filter(|(_, holder)| **holder == Some(node));
    held.map(|(slot, _)| slot).collect()
}

fn moves(seen: &Seen) -> Vec<MoveView> {
    let view = |(at, what, slots): &(tidegate_core::time::Timestamp, &'static str, usize)| MoveView {
        at: at.to_string(),
        what,
        slots: *slots,
    };
    seen.moves.iter().map(view).collect()
}

/// Numbers in a row as ranges.
fn ranges(slots: &[Slot]) -> String {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for slot in slots {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(slot.get()) => *last = slot.get(),
            _ => runs.push((slot.get(), slot.get())),
        }
    }
    let text = |(first, last): (u8, u8)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    runs.into_iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_ranges() {
        let slots = |numbers: &[u8]| numbers.iter().map(|number| Slot::new(*number)).collect::<Vec<_>>();
        assert_eq!(ranges(&slots(&[0, 1, 2, 7, 254, 255])), "0-2,7,254-255");
        assert_eq!(ranges(&[]), "");
    }
}
