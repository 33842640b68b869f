//! The maps behind the catalogue, and how an edit changes them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use tidegate_core::id::{AccountId, DestinationId, KeyId, RouteId};
use tidegate_core::invalid::Invalid;
use tidegate_core::time::Millis;
use tidegate_store::catalogue::Deleted;
use tidegate_store::{AccountNo, DestinationNo};

use super::entry::{AccountEntry, DestinationEntry, EventTypeEntry, KeyEntry, RouteEntry};
use super::routing::Routing;
use super::settings::AccountSettings;

/// Types remembered for each account: a publisher that invents a type for each event only makes us forget.
const MOST_REMEMBERED: usize = 4_096;

/// All accounts.
#[derive(Default)]
pub(super) struct State {
    pub(super) accounts: HashMap<AccountNo, Arc<AccountEntry>>,
    pub(super) account_ids: HashMap<AccountId, AccountNo>,
    pub(super) account_names: HashMap<String, AccountNo>,
    pub(super) keys: HashMap<[u8; 32], Arc<KeyEntry>>,
    pub(super) destinations: HashMap<DestinationNo, Arc<DestinationEntry>>,
    /// The ids of destinations that were deleted: their deliveries are still there.
    pub(super) deleted: HashMap<DestinationNo, DestinationId>,
    pub(super) tenants: HashMap<AccountNo, Tenant>,
    /// How long deliveries are tried at most where the account does not say.
    pub(super) max_age: Option<Millis>,
    /// How often quiet hours were found whose time zone is unknown by now.
    pub(super) schedule_errors: u64,
}

/// What belongs to one account.
#[derive(Default)]
pub(super) struct Tenant {
    pub(super) settings: Arc<AccountSettings>,
    pub(super) max_age: Option<Millis>,
    pub(super) destinations: BTreeMap<DestinationId, Arc<DestinationEntry>>,
    /// Destinations that were deleted, for lists of what they got.
    pub(super) deleted: HashMap<DestinationId, DestinationNo>,
    pub(super) names: HashMap<String, DestinationId>,
    pub(super) routes: BTreeMap<RouteId, Arc<RouteEntry>>,
    pub(super) event_types: BTreeMap<String, Arc<EventTypeEntry>>,
    remembered: RwLock<HashMap<Box<str>, Arc<Routing>>>,
}

impl Tenant {
    /// Something changed: what was worked out before no longer counts.
    pub(super) fn forget(&mut self) {
        self.remembered.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn routing(&self, event_type: &str) -> Result<Arc<Routing>, Invalid> {
        let remembered = self.remembered.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(routing) = remembered.get(event_type) {
            return Ok(Arc::clone(routing));
        }
        drop(remembered);
        let routing = Arc::new(Routing::work_out(self, event_type)?);
        let mut remembered = self.remembered.write().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MOST_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(event_type.into(), Arc::clone(&routing));
        Ok(routing)
    }
}

impl State {
    pub(super) fn tenant(&self, account: AccountNo) -> Option<&Tenant> {
        self.tenants.get(&account)
    }

    pub(super) fn routing(&self, account: AccountNo, event_type: &str) -> Result<Arc<Routing>, Invalid> {
        match self.tenants.get(&account) {
            Some(tenant) => tenant.routing(event_type),
            None => Routing::work_out(&Tenant::default(), event_type).map(Arc::new),
        }
    }

    pub(super) fn find_destination(&self, account: AccountNo, name: &str) -> Option<Arc<DestinationEntry>> {
        let tenant = self.tenants.get(&account)?;
        let by_id = DestinationId::parse(name).ok().and_then(|id| tenant.destinations.get(&id));
        by_id.or_else(|| tenant.destinations.get(tenant.names.get(name)?)).cloned()
    }

    fn tenant_mut(&mut self, account: AccountNo) -> &mut Tenant {
        let max_age = self.max_age;
        let tenant = self.tenants.entry(account).or_insert_with(|| Tenant { max_age, ..Tenant::default() });
        tenant.forget();
        tenant
    }

    pub(super) fn put_account(&mut self, entry: AccountEntry) {
        let no = entry.row.no;
        if let Some(name) = self.accounts.get(&no).and_then(|old| old.row.external_id.clone()) {
            self.account_names.remove(&name);
        }
        if let Some(name) = &entry.row.external_id {
            self.account_names.insert(name.clone(), no);
        }
        self.account_ids.insert(entry.row.id, no);
        self.tenant_mut(no).settings = Arc::clone(&entry.settings);
        self.accounts.insert(no, Arc::new(entry));
    }

    /// Removes an account with all that belongs to it; gives back its destinations.
    pub(super) fn drop_account(&mut self, no: AccountNo) -> Vec<DestinationNo> {
        if let Some(entry) = self.accounts.remove(&no) {
            self.account_ids.remove(&entry.row.id);
            self.account_names.retain(|_, account| *account != no);
        }
        self.keys.retain(|_, key| key.account != no);
        let tenant = self.tenants.remove(&no).unwrap_or_default();
        let destinations: Vec<_> = tenant.destinations.values().map(|entry| entry.row.no).collect();
        for destination in &destinations {
            self.destinations.remove(destination);
        }
        destinations
    }

    pub(super) fn put_key(&mut self, hash: [u8; 32], entry: KeyEntry) {
        self.keys.insert(hash, Arc::new(entry));
    }

    pub(super) fn drop_key(&mut self, id: KeyId) {
        self.keys.retain(|_, key| key.id != id);
    }

    pub(super) fn put_destination(&mut self, entry: Arc<DestinationEntry>) {
        self.schedule_errors += entry.policy.quiet.unknown_zones().count() as u64;
        let tenant = self.tenant_mut(entry.row.account);
        if let Some(name) =
            tenant.destinations.get(&entry.row.id).and_then(|old| old.row.external_id.as_ref())
        {
            tenant.names.remove(name);
        }
        if let Some(name) = &entry.row.external_id {
            tenant.names.insert(name.clone(), entry.row.id);
        }
        tenant.destinations.insert(entry.row.id, Arc::clone(&entry));
        self.destinations.insert(entry.row.no, entry);
    }

    pub(super) fn drop_destination(&mut self, no: DestinationNo) {
        let Some(entry) = self.destinations.remove(&no) else { return };
        self.deleted.insert(no, entry.row.id);
        let tenant = self.tenant_mut(entry.row.account);
        tenant.destinations.remove(&entry.row.id);
        tenant.deleted.insert(entry.row.id, no);
        if let Some(name) = &entry.row.external_id {
            tenant.names.remove(name);
        }
        tenant.routes.retain(|_, route| route.row.destination != no);
    }

    /// One that was deleted in an earlier life of the server.
    pub(super) fn put_deleted(&mut self, deleted: &Deleted) {
        self.deleted.insert(deleted.no, deleted.id);
        if let Some(tenant) = self.tenants.get_mut(&deleted.account) {
            tenant.deleted.insert(deleted.id, deleted.no);
        }
    }

    pub(super) fn put_route(&mut self, entry: RouteEntry) {
        self.tenant_mut(entry.row.account).routes.insert(entry.row.id, Arc::new(entry));
    }

    pub(super) fn drop_route(&mut self, id: RouteId) {
        for tenant in self.tenants.values_mut() {
            if tenant.routes.remove(&id).is_some() {
                tenant.forget();
            }
        }
    }

    pub(super) fn put_event_type(&mut self, entry: EventTypeEntry) {
        let name = entry.row.event_type.clone();
        self.tenant_mut(entry.row.account).event_types.insert(name, Arc::new(entry));
    }

    pub(super) fn drop_event_type(&mut self, account: AccountNo, event_type: &str) {
        self.tenant_mut(account).event_types.remove(event_type);
    }
}
