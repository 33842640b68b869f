//! Changes of what owners asked for, edit by edit: changes are rare. One that cannot be made undoes those before it, by a
//! savepoint.

use super::Writer;
use crate::catalogue::{
    Account, ApiKey, AuditEntry, Change, Changed, Destination, Edit, EventTypeRow, Route,
};
use crate::codec::{self, count, maybe_ms};
use crate::postgres::failure::Failure;
use crate::postgres::sql;
use crate::postgres::value::typed;
use crate::source::{Value, params};
use crate::{AccountNo, DestinationNo};

/// What one edit gave.
enum Edited {
    Account(AccountNo),
    Destination(DestinationNo),
    Done,
    /// Nothing was done, and nothing of the whole change will be.
    Not(Changed),
}

impl Writer {
    pub(super) fn change(&self, change: &Change) -> Result<Changed, Failure> {
        self.link.batch("savepoint change")?;
        let changed = match self.change_all(change) {
            Err(Failure::Taken(_)) => Ok(Changed::Taken),
            changed => changed,
        };
        match changed {
            Ok(Changed::Done { .. }) => self.link.batch("release change")?,
            _ => self.link.batch("rollback to change; release change")?,
        }
        changed
    }

    fn change_all(&self, change: &Change) -> Result<Changed, Failure> {
        let (mut accounts, mut destinations) = (Vec::new(), Vec::new());
        for edit in &change.edits {
            match self.edit(edit)? {
                Edited::Account(no) => accounts.push(no),
                Edited::Destination(no) => destinations.push(no),
                Edited::Done => {}
                Edited::Not(why) => return Ok(why),
            }
        }
        if let Some(entry) = &change.audit {
            self.audit(entry)?;
        }
        Ok(Changed::Done { accounts, destinations })
    }

    fn edit(&self, edit: &Edit) -> Result<Edited, Failure> {
        match edit {
            Edit::AddAccount(account) => self.add_account(account),
            Edit::SetAccount(account) => self.set_account(account),
            Edit::DropAccount(account) => self.drop_account(*account),
            Edit::AddKey(key) => self.add_key(key),
            Edit::DropKey(key) => self.drop_one(sql::DROP_KEY, params![codec::bits(*key)]),
            Edit::AddDestination(destination) => self.add_destination(destination),
            Edit::SetDestination(destination) => self.set_destination(destination),
            Edit::DropDestination(destination) => {
                self.execute(sql::DROP_ROUTES_OF_DESTINATION, params![destination.0])?;
                self.drop_one(sql::DROP_DESTINATION, params![destination.0])
            }
            Edit::AddRoute(route) => self.add_route(route),
            Edit::DropRoute(route) => self.drop_one(sql::DROP_ROUTE, params![codec::bits(*route)]),
            Edit::SetEventType(row) => self.set_event_type(row),
            Edit::DropEventType { account, event_type } => {
                self.drop_one(sql::DROP_EVENT_TYPE, params![account.0, event_type])
            }
        }
    }

    /// How many rows a statement has changed.
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, Failure> {
        Ok(self.link.ask(sql, typed(values))?.changed)
    }

    fn exists(&self, sql: &str, values: &[Value<'_>]) -> Result<bool, Failure> {
        Ok(!self.link.ask(sql, typed(values))?.rows.is_empty())
    }

    /// The number that a new row was given.
    fn numbered(&self, sql: &str, values: &[Value<'_>]) -> Result<u32, Failure> {
        let added = self.link.ask(sql, typed(values))?;
        let number = added.rows.first().and_then(|row| u32::try_from(row.get::<_, i32>(0)).ok());
        number.ok_or_else(|| Failure::Refused("no number is left for another".to_owned()))
    }

    fn drop_one(&self, sql: &str, values: &[Value<'_>]) -> Result<Edited, Failure> {
        Ok(if self.execute(sql, values)? == 0 { Edited::Not(Changed::Missing) } else { Edited::Done })
    }

    fn add_account(&self, account: &Account) -> Result<Edited, Failure> {
        let values = params![
            codec::bits(account.id),
            account.external_id.as_ref(),
            &account.document,
            &account.settings,
            count(account.version),
            account.created_at.as_millis()
        ];
        Ok(Edited::Account(AccountNo(self.numbered(sql::ADD_ACCOUNT, values)?)))
    }

    fn set_account(&self, account: &Account) -> Result<Edited, Failure> {
        let values = params![
            account.no.0,
            account.external_id.as_ref(),
            &account.document,
            &account.settings,
            count(account.version)
        ];
        let changed = self.execute(sql::SET_ACCOUNT, values)?;
        self.updated(changed, sql::ACCOUNT_IS_THERE, params![account.no.0])
    }

    fn drop_account(&self, account: AccountNo) -> Result<Edited, Failure> {
        for sql in [
            sql::DROP_KEYS_OF_ACCOUNT,
            sql::DROP_ROUTES_OF_ACCOUNT,
            sql::DROP_EVENT_TYPES_OF_ACCOUNT,
            sql::DROP_DESTINATIONS_OF_ACCOUNT,
        ] {
            self.execute(sql, params![account.0])?;
        }
        self.drop_one(sql::DROP_ACCOUNT, params![account.0])
    }

    fn add_key(&self, key: &ApiKey) -> Result<Edited, Failure> {
        if !self.exists(sql::ACCOUNT_IS_THERE, params![key.account.0])? {
            return Ok(Edited::Not(Changed::Missing));
        }
        let values = params![
            codec::bits(key.id),
            key.account.0,
            key.hash,
            &key.document,
            key.created_at.as_millis(),
            maybe_ms(key.expires_at)
        ];
        self.execute(sql::ADD_KEY, values)?;
        Ok(Edited::Done)
    }

    fn add_destination(&self, destination: &Destination) -> Result<Edited, Failure> {
        if !self.exists(sql::ACCOUNT_IS_THERE, params![destination.account.0])? {
            return Ok(Edited::Not(Changed::Missing));
        }
        let values = params![
            codec::bits(destination.id),
            destination.account.0,
            destination.external_id.as_ref(),
            &destination.document,
            &destination.secrets,
            count(destination.version),
            destination.created_at.as_millis(),
            destination.updated_at.as_millis()
        ];
        Ok(Edited::Destination(DestinationNo(self.numbered(sql::ADD_DESTINATION, values)?)))
    }

    fn set_destination(&self, destination: &Destination) -> Result<Edited, Failure> {
        let values = params![
            destination.no.0,
            destination.external_id.as_ref(),
            &destination.document,
            &destination.secrets,
            count(destination.version),
            destination.updated_at.as_millis()
        ];
        let changed = self.execute(sql::SET_DESTINATION, values)?;
        self.updated(changed, sql::DESTINATION_IS_THERE, params![destination.no.0])
    }

    fn add_route(&self, route: &Route) -> Result<Edited, Failure> {
        if !self.exists(sql::DESTINATION_IS_THERE, params![route.destination.0])? {
            return Ok(Edited::Not(Changed::Missing));
        }
        let values = params![
            codec::bits(route.id),
            route.account.0,
            route.destination.0,
            &route.document,
            route.created_at.as_millis()
        ];
        self.execute(sql::ADD_ROUTE, values)?;
        Ok(Edited::Done)
    }

    fn set_event_type(&self, row: &EventTypeRow) -> Result<Edited, Failure> {
        let values = params![
            row.account.0,
            &row.event_type,
            &row.document,
            count(row.version),
            row.updated_at.as_millis()
        ];
        if row.version == 1 {
            let added = self.execute(sql::ADD_EVENT_TYPE, values)?;
            return Ok(if added == 0 { Edited::Not(Changed::Outdated) } else { Edited::Done });
        }
        let changed = self.execute(sql::SET_EVENT_TYPE, values)?;
        self.updated(changed, sql::EVENT_TYPE_IS_THERE, params![row.account.0, &row.event_type])
    }

    /// What an update came to: if it changed nothing, the row is another version, or gone.
    fn updated(&self, changed: u64, is_there: &str, values: &[Value<'_>]) -> Result<Edited, Failure> {
        match changed {
            0 if self.exists(is_there, values)? => Ok(Edited::Not(Changed::Outdated)),
            0 => Ok(Edited::Not(Changed::Missing)),
            _ => Ok(Edited::Done),
        }
    }

    fn audit(&self, entry: &AuditEntry) -> Result<(), Failure> {
        let values = params![
            entry.account.0,
            entry.at.as_millis(),
            entry.actor.map(codec::bits),
            &entry.action,
            &entry.subject,
            &entry.detail
        ];
        self.execute(sql::ADD_AUDIT_ENTRY, values).map(|_| ())
    }
}
