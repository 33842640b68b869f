//! An account and its destinations, as the server stores them.

use tidegate_core::id::{AccountId, DestinationId};
use tidegate_engine::Engine;
use tidegate_store::catalogue::{Account, Change, Changed, Destination, Edit};
use tidegate_store::{AccountNo, DestinationNo};

/// An account with so many destinations.
pub(crate) async fn furnish(engine: &Engine, count: u128) -> (AccountNo, Vec<DestinationNo>) {
    let now = engine.now().wall;
    let account = Account {
        no: AccountNo(0),
        id: AccountId::from_bits(1),
        external_id: None,
        document: "{}".into(),
        settings: "{}".into(),
        version: 1,
        created_at: now,
    };
    let added = engine.store().change(Change { edits: vec![Edit::AddAccount(account)], audit: None }).await;
    let Changed::Done { accounts, .. } = added.unwrap() else { panic!("not added") };
    let destination = |number| Destination {
        no: DestinationNo(0),
        id: DestinationId::from_bits(number),
        account: accounts[0],
        external_id: None,
        document: "{}".into(),
        secrets: Vec::new(),
        version: 1,
        created_at: now,
        updated_at: now,
    };
    let edits = (1..=count).map(|number| Edit::AddDestination(destination(number))).collect();
    let added = engine.store().change(Change { edits, audit: None }).await;
    let Changed::Done { destinations, .. } = added.unwrap() else { panic!("not added") };
    (accounts[0], destinations)
}
