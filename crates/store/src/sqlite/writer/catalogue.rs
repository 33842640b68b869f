//! Changes of what owners asked for. All edits are checked as they are made; one that cannot be made undoes those before
//! it, by a savepoint: changes are rare.

use rusqlite::{CachedStatement, ErrorCode, Params, params};

use super::Writer;
use crate::catalogue::{
    Account, ApiKey, AuditEntry, Change, Changed, Destination, Edit, EventTypeRow, Route,
};
use crate::codec::{self, count, maybe_ms};
use crate::sqlite::failure::Failure;
use crate::sqlite::sql;
use crate::{AccountNo, DestinationNo};

/// What one edit gave.
enum Edited {
    Account(AccountNo),
    Destination(DestinationNo),
    Done,
    /// Nothing was done, and nothing of the whole change will be.
    Not(Changed),
}

impl Writer<'_> {
    pub(super) fn change(&self, change: &Change) -> Result<Changed, Failure> {
        self.connection.execute_batch("savepoint change")?;
        let changed = self.change_all(change);
        let undo = !matches!(changed, Ok(Changed::Done { .. }));
        if undo {
            self.connection.execute_batch("rollback to change")?;
        }
        self.connection.execute_batch("release change")?;
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
            Edit::DropKey(key) => self.drop_one(sql::DROP_KEY, [codec::bits(*key)]),
            Edit::AddDestination(destination) => self.add_destination(destination),
            Edit::SetDestination(destination) => self.set_destination(destination),
            Edit::DropDestination(destination) => {
                self.prepare(sql::DROP_ROUTES_OF_DESTINATION)?.execute([destination.0])?;
                self.drop_one(sql::DROP_DESTINATION, [destination.0])
            }
            Edit::AddRoute(route) => self.add_route(route),
            Edit::DropRoute(route) => self.drop_one(sql::DROP_ROUTE, [codec::bits(*route)]),
            Edit::SetEventType(row) => self.set_event_type(row),
            Edit::DropEventType { account, event_type } => {
                self.drop_one(sql::DROP_EVENT_TYPE, params![account.0, event_type])
            }
        }
    }

    fn prepare(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.connection.prepare_cached(sql)
    }

    fn drop_one(&self, sql: &str, params: impl Params) -> Result<Edited, Failure> {
        let changed = self.prepare(sql)?.execute(params)?;
        Ok(if changed == 0 { Edited::Not(Changed::Missing) } else { Edited::Done })
    }

    fn add_account(&self, account: &Account) -> Result<Edited, Failure> {
        let added = self.prepare(sql::ADD_ACCOUNT)?.insert(params![
            codec::bits(account.id),
            account.external_id,
            account.document,
            account.settings,
            count(account.version),
            account.created_at.as_millis()
        ]);
        numbered(added, |no| Edited::Account(AccountNo(no)))
    }

    fn set_account(&self, account: &Account) -> Result<Edited, Failure> {
        let changed = self.prepare(sql::SET_ACCOUNT)?.execute(params![
            account.no.0,
            account.external_id,
            account.document,
            account.settings,
            count(account.version)
        ]);
        self.updated(changed, sql::ACCOUNT_IS_THERE, [account.no.0])
    }

    fn drop_account(&self, account: AccountNo) -> Result<Edited, Failure> {
        for sql in [
            sql::DROP_KEYS_OF_ACCOUNT,
            sql::DROP_ROUTES_OF_ACCOUNT,
            sql::DROP_EVENT_TYPES_OF_ACCOUNT,
            sql::DROP_DESTINATIONS_OF_ACCOUNT,
        ] {
            self.prepare(sql)?.execute([account.0])?;
        }
        self.drop_one(sql::DROP_ACCOUNT, [account.0])
    }

    fn add_key(&self, key: &ApiKey) -> Result<Edited, Failure> {
        if !self.prepare(sql::ACCOUNT_IS_THERE)?.exists([key.account.0])? {
            return Ok(Edited::Not(Changed::Missing));
        }
        self.prepare(sql::ADD_KEY)?.execute(params![
            codec::bits(key.id),
            key.account.0,
            key.hash,
            key.document,
            key.created_at.as_millis(),
            maybe_ms(key.expires_at)
        ])?;
        Ok(Edited::Done)
    }

    fn add_destination(&self, destination: &Destination) -> Result<Edited, Failure> {
        if !self.prepare(sql::ACCOUNT_IS_THERE)?.exists([destination.account.0])? {
            return Ok(Edited::Not(Changed::Missing));
        }
        let added = self.prepare(sql::ADD_DESTINATION)?.insert(params![
            codec::bits(destination.id),
            destination.account.0,
            destination.external_id,
            destination.document,
            destination.secrets,
            count(destination.version),
            destination.created_at.as_millis(),
            destination.updated_at.as_millis()
        ]);
        numbered(added, |no| Edited::Destination(DestinationNo(no)))
    }

    fn set_destination(&self, destination: &Destination) -> Result<Edited, Failure> {
        let changed = self.prepare(sql::SET_DESTINATION)?.execute(params![
            destination.no.0,
            destination.external_id,
            destination.document,
            destination.secrets,
            count(destination.version),
            destination.updated_at.as_millis()
        ]);
        self.updated(changed, sql::DESTINATION_IS_THERE, [destination.no.0])
    }

    fn add_route(&self, route: &Route) -> Result<Edited, Failure> {
        if !self.prepare(sql::DESTINATION_IS_THERE)?.exists([route.destination.0])? {
            return Ok(Edited::Not(Changed::Missing));
        }
        self.prepare(sql::ADD_ROUTE)?.execute(params![
            codec::bits(route.id),
            route.account.0,
            route.destination.0,
            route.document,
            route.created_at.as_millis()
        ])?;
        Ok(Edited::Done)
    }

    fn set_event_type(&self, row: &EventTypeRow) -> Result<Edited, Failure> {
        let values = params![
            row.account.0,
            row.event_type,
            row.document,
            count(row.version),
            row.updated_at.as_millis()
        ];
        if row.version == 1 {
            let added = self.prepare(sql::ADD_EVENT_TYPE)?.execute(values)?;
            return Ok(if added == 0 { Edited::Not(Changed::Outdated) } else { Edited::Done });
        }
        let changed = self.prepare(sql::SET_EVENT_TYPE)?.execute(values);
        self.updated(changed, sql::EVENT_TYPE_IS_THERE, params![row.account.0, row.event_type])
    }

    /// What an update came to: if it changed nothing, the row is another version, or gone.
    fn updated(
        &self,
        changed: rusqlite::Result<usize>,
        is_there: &str,
        params: impl Params,
    ) -> Result<Edited, Failure> {
        match changed {
            Ok(0) if self.prepare(is_there)?.exists(params)? => Ok(Edited::Not(Changed::Outdated)),
            Ok(0) => Ok(Edited::Not(Changed::Missing)),
            Ok(_) => Ok(Edited::Done),
            Err(error) if is_taken(&error) => Ok(Edited::Not(Changed::Taken)),
            Err(error) => Err(error.into()),
        }
    }

    fn audit(&self, entry: &AuditEntry) -> Result<(), Failure> {
        self.prepare(sql::ADD_AUDIT_ENTRY)?.execute(params![
            entry.account.0,
            entry.at.as_millis(),
            entry.actor.map(codec::bits),
            entry.action,
            entry.subject,
            entry.detail
        ])?;
        Ok(())
    }
}

fn numbered(added: rusqlite::Result<i64>, edited: impl FnOnce(u32) -> Edited) -> Result<Edited, Failure> {
    match added {
        Ok(no) => u32::try_from(no)
            .map(edited)
            .map_err(|_| Failure::Refused("no number is left for another".to_owned())),
        Err(error) if is_taken(&error) => Ok(Edited::Not(Changed::Taken)),
        Err(error) => Err(error.into()),
    }
}

/// The one thing that can be taken is an external id: ids and hashes are chance.
fn is_taken(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}
