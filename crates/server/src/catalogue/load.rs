//! The catalogue as it is at start, from the rows of the store.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use tidegate_core::invalid::Invalid;
use tidegate_core::time::Millis;
use tidegate_engine::Engine;
use tidegate_store::DestinationNo;
use tidegate_store::catalogue::Catalogue as Rows;
use tidegate_store::lane::StoredLane;
use tokio::sync::watch;

use super::entry::{AccountEntry, DestinationEntry, EventTypeEntry, KeyEntry, RouteEntry};
use super::state::State;
use super::{Catalogue, Shared, apply};
use crate::policy::Compiler;

/// A stored row that this binary cannot use: better not to start than to leave it out.
#[derive(Debug, thiserror::Error)]
#[error("{what} in the store cannot be used: {fault}")]
pub(crate) struct LoadError {
    what: String,
    fault: Invalid,
}

impl Catalogue {
    /// Reads all rows, and opens the lane of each destination as it was last stored.
    pub(crate) fn load(
        engine: Engine,
        compiler: Compiler,
        max_age: Option<Millis>,
        rows: Rows,
        lanes: Vec<StoredLane>,
    ) -> Result<Self, LoadError> {
        let state = read(&compiler, max_age, rows, None)?;
        let mut lanes: HashMap<DestinationNo, StoredLane> =
            lanes.into_iter().map(|lane| (lane.destination, lane)).collect();
        for entry in state.destinations.values() {
            engine.open(apply::lane(entry, lanes.remove(&entry.row.no)));
        }
        let shared = Shared {
            engine,
            compiler,
            state: RwLock::new(state),
            changing: Arc::default(),
            revoked: watch::Sender::new(()),
        };
        Ok(Self { shared: Arc::new(shared) })
    }
}

/// What is the same as `before` is taken from there.
pub(super) fn read(
    compiler: &Compiler,
    max_age: Option<Millis>,
    rows: Rows,
    before: Option<&State>,
) -> Result<State, LoadError> {
    let mut state = State { max_age, ..State::default() };
    for row in rows.accounts {
        let what = row.id.to_string();
        state.put_account(AccountEntry::new(row).map_err(|fault| LoadError { what, fault })?);
    }
    for row in &rows.keys {
        let entry = KeyEntry::new(row).map_err(|fault| LoadError { what: row.id.to_string(), fault })?;
        state.put_key(row.hash, entry);
    }
    for row in rows.destinations {
        // The account of a row that outlived it is gone, and the row with it.
        let Some(account) = state.accounts.get(&row.account).cloned() else { continue };
        let same_account = before.and_then(|before| before.accounts.get(&row.account));
        let same = before.filter(|_| same_account.is_some_and(|before| before.row == account.row));
        let same = same.and_then(|before| before.destinations.get(&row.no)).filter(|known| known.row == row);
        if let Some(known) = same {
            state.put_destination(Arc::clone(known));
            continue;
        }
        let compiled = compiler
            .compile(&row, &account)
            .map_err(|fault| LoadError { what: format!("destination {}", row.id), fault })?;
        state.put_destination(Arc::new(DestinationEntry::new(row, compiled)));
    }
    for deleted in &rows.deleted {
        state.put_deleted(deleted);
    }
    for row in rows.routes {
        let what = row.id.to_string();
        let entry = RouteEntry::new(row).map_err(|fault| LoadError { what, fault })?;
        if state.destinations.contains_key(&entry.row.destination) {
            state.put_route(entry);
        }
    }
    for row in rows.event_types {
        let what = format!("event type {}", row.event_type);
        state.put_event_type(EventTypeEntry::new(row).map_err(|fault| LoadError { what, fault })?);
    }
    Ok(state)
}
