//! What other nodes have changed: read again, and put in the place of what was known.

use std::sync::Arc;

use super::apply::lane;
use super::load::{LoadError, read};
use super::{Catalogue, State};
use tidegate_engine::Engine;
use tidegate_store::StoreError;

/// Why it could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RefreshError {
    /// The store cannot.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A newer node has written what this one does not understand.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl Catalogue {
    /// Reads everything again. Changes of this node wait meanwhile, so that none is lost.
    pub(crate) async fn refresh(&self) -> Result<(), RefreshError> {
        let shared = &self.shared;
        let _turn = shared.changing.lock().await;
        let rows = shared.engine.store().catalogue().await?;
        let (state, revokes) = {
            let before = shared.read();
            let state = read(&shared.compiler, before.max_age, rows, Some(&before))?;
            inform(&shared.engine, &before, &state);
            let revokes = before.keys.keys().any(|hash| !state.keys.contains_key(hash));
            (state, revokes)
        };
        *shared.write() = state;
        if revokes {
            shared.revoked.send_replace(());
        }
        Ok(())
    }
}

/// Tells the engine what is different.
fn inform(engine: &Engine, before: &State, after: &State) {
    for (no, entry) in &after.destinations {
        match before.destinations.get(no) {
            None => engine.open(lane(entry, None)),
            Some(known) if !Arc::ptr_eq(known, entry) => {
                engine.adopt(*no, Arc::clone(&entry.policy), Arc::clone(&entry.endpoint));
            }
            Some(_) => {}
        }
    }
    for no in before.destinations.keys().filter(|no| !after.destinations.contains_key(no)) {
        engine.retire_here(*no);
    }
}
