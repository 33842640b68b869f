//! Changes of what owners asked for, edit by edit: changes are rare. One that cannot be made undoes those before it, by a
//! savepoint.

use crate::catalogue::{
    Account, ApiKey, AuditEntry, Change, Changed, Destination, Edit, EventTypeRow, Route,
};
use crate::codec::{self, count, maybe_ms};
use crate::job::Job;
use crate::source::{Sql, Value, params};
use crate::{AccountNo, DestinationNo, sql};

/// What a change needs of an engine, in the transaction of its group.
pub(crate) trait Editor {
    type Failure;

    /// Runs a statement; how many rows it has changed.
    fn execute(&self, sql: Sql, values: &[Value<'_>]) -> Unless<u64, Self::Failure>;
    /// Whether a statement finds a row.
    fn exists(&self, sql: Sql, values: &[Value<'_>]) -> Unless<bool, Self::Failure>;
    /// Adds a row; the number that it was given.
    fn insert(&self, sql: Sql, values: &[Value<'_>]) -> Unless<u32, Self::Failure>;
    /// Runs statements about savepoints.
    fn mark(&self, sql: &'static str) -> Result<(), Self::Failure>;
    /// The number of this node, where there are several: who works at a new job.
    fn node(&self) -> Option<i64> {
        None
    }
}

/// What a statement gave, unless it could not be run.
pub(crate) type Unless<T, F> = Result<T, Unmade<F>>;

/// Why a statement could not be run.
pub(crate) enum Unmade<F> {
    /// Another row has this unique value. It can only be an external id: ids and hashes are random.
    Taken,
    Failed(F),
}

impl<F> From<F> for Unmade<F> {
    fn from(failure: F) -> Self {
        Self::Failed(failure)
    }
}

/// What one edit gave.
enum Edited {
    Account(AccountNo),
    Destination(DestinationNo),
    Done,
    /// Nothing was done, and nothing of the whole change will be.
    Not(Changed),
}

/// Makes a change: all of it or nothing.
pub(crate) fn change<E: Editor>(editor: &E, change: &Change) -> Result<Changed, E::Failure> {
    editor.mark("savepoint change")?;
    let changed = match (Changing { editor }).change(change) {
        Ok(changed) => Ok(changed),
        Err(Unmade::Taken) => Ok(Changed::Taken),
        Err(Unmade::Failed(failure)) => Err(failure),
    };
    match changed {
        Ok(Changed::Done { .. }) => editor.mark("release change")?,
        _ => editor.mark("rollback to change; release change")?,
    }
    changed
}

/// A change in the making.
struct Changing<'e, E> {
    editor: &'e E,
}

impl<E: Editor> Changing<'_, E> {
    fn change(&self, change: &Change) -> Unless<Changed, E::Failure> {
        let (mut accounts, mut destinations) = (Vec::new(), Vec::new());
        for edit in &change.edits {
            match self.edit(edit, accounts.last().copied())? {
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

    /// `newest` is the account that the same change has added last.
    fn edit(&self, edit: &Edit, newest: Option<AccountNo>) -> Unless<Edited, E::Failure> {
        match edit {
            Edit::AddAccount(account) => self.add_account(account),
            Edit::SetAccount(account) => self.set_account(account),
            Edit::DropAccount(account) => self.drop_account(*account),
            Edit::AddKey(key) => self.add_key(key, key.account),
            Edit::AddFirstKey(key) => match newest {
                Some(account) => self.add_key(key, account),
                None => Ok(Edited::Not(Changed::Missing)),
            },
            Edit::DropKey(key) => self.drop_one(sql::DROP_KEY, params![codec::bits(*key)]),
            Edit::AddDestination(destination) => self.add_destination(destination),
            Edit::SetDestination(destination) => self.set_destination(destination),
            Edit::DropDestination(destination) => {
                self.editor.execute(sql::DROP_ROUTES_OF_DESTINATION, params![destination.0])?;
                self.drop_one(sql::DROP_DESTINATION, params![destination.0])
            }
            Edit::AddRoute(route) => self.add_route(route),
            Edit::DropRoute(route) => self.drop_one(sql::DROP_ROUTE, params![codec::bits(*route)]),
            Edit::SetEventType(row) => self.set_event_type(row),
            Edit::DropEventType { account, event_type } => {
                self.drop_one(sql::DROP_EVENT_TYPE, params![account.0, event_type])
            }
            Edit::AddJob(job) => self.add_job(job),
            Edit::StopJob { job, at } => {
                self.drop_one(sql::STOP_JOB, params![codec::bits(*job), at.as_millis()])
            }
        }
    }

    fn drop_one(&self, sql: Sql, values: &[Value<'_>]) -> Unless<Edited, E::Failure> {
        Ok(if self.editor.execute(sql, values)? == 0 { Edited::Not(Changed::Missing) } else { Edited::Done })
    }

    fn add_account(&self, account: &Account) -> Unless<Edited, E::Failure> {
        let values = params![
            codec::bits(account.id),
            account.external_id.as_ref(),
            &account.document,
            &account.settings,
            count(account.version),
            account.created_at.as_millis()
        ];
        Ok(Edited::Account(AccountNo(self.editor.insert(sql::ADD_ACCOUNT, values)?)))
    }

    fn set_account(&self, account: &Account) -> Unless<Edited, E::Failure> {
        let values = params![
            account.no.0,
            account.external_id.as_ref(),
            &account.document,
            &account.settings,
            count(account.version)
        ];
        let changed = self.editor.execute(sql::SET_ACCOUNT, values)?;
        self.updated(changed, sql::ACCOUNT_IS_THERE, params![account.no.0])
    }

    fn drop_account(&self, account: AccountNo) -> Unless<Edited, E::Failure> {
        for sql in [
            sql::DROP_KEYS_OF_ACCOUNT,
            sql::DROP_ROUTES_OF_ACCOUNT,
            sql::DROP_EVENT_TYPES_OF_ACCOUNT,
            sql::DROP_DESTINATIONS_OF_ACCOUNT,
        ] {
            self.editor.execute(sql, params![account.0])?;
        }
        self.drop_one(sql::DROP_ACCOUNT, params![account.0])
    }

    fn add_key(&self, key: &ApiKey, account: AccountNo) -> Unless<Edited, E::Failure> {
        if !self.editor.exists(sql::ACCOUNT_IS_THERE, params![account.0])? {
            return Ok(Edited::Not(Changed::Missing));
        }
        let values = params![
            codec::bits(key.id),
            account.0,
            key.hash,
            &key.document,
            key.created_at.as_millis(),
            maybe_ms(key.expires_at)
        ];
        self.editor.execute(sql::ADD_KEY, values)?;
        Ok(Edited::Done)
    }

    fn add_destination(&self, destination: &Destination) -> Unless<Edited, E::Failure> {
        if !self.editor.exists(sql::ACCOUNT_IS_THERE, params![destination.account.0])? {
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
        Ok(Edited::Destination(DestinationNo(self.editor.insert(sql::ADD_DESTINATION, values)?)))
    }

    fn set_destination(&self, destination: &Destination) -> Unless<Edited, E::Failure> {
        let values = params![
            destination.no.0,
            destination.external_id.as_ref(),
            &destination.document,
            &destination.secrets,
            count(destination.version),
            destination.updated_at.as_millis()
        ];
        let changed = self.editor.execute(sql::SET_DESTINATION, values)?;
        self.updated(changed, sql::DESTINATION_IS_THERE, params![destination.no.0])
    }

    fn add_route(&self, route: &Route) -> Unless<Edited, E::Failure> {
        if !self.editor.exists(sql::DESTINATION_IS_THERE, params![route.destination.0])? {
            return Ok(Edited::Not(Changed::Missing));
        }
        let values = params![
            codec::bits(route.id),
            route.account.0,
            route.destination.0,
            &route.document,
            route.created_at.as_millis()
        ];
        self.editor.execute(sql::ADD_ROUTE, values)?;
        Ok(Edited::Done)
    }

    fn set_event_type(&self, row: &EventTypeRow) -> Unless<Edited, E::Failure> {
        let values = params![
            row.account.0,
            &row.event_type,
            &row.document,
            count(row.version),
            row.updated_at.as_millis()
        ];
        if row.version == 1 {
            let added = self.editor.execute(sql::ADD_EVENT_TYPE, values)?;
            return Ok(if added == 0 { Edited::Not(Changed::Outdated) } else { Edited::Done });
        }
        let changed = self.editor.execute(sql::SET_EVENT_TYPE, values)?;
        self.updated(changed, sql::EVENT_TYPE_IS_THERE, params![row.account.0, &row.event_type])
    }

    fn add_job(&self, job: &Job) -> Unless<Edited, E::Failure> {
        let values = codec::job_columns(job).into_iter().chain(self.editor.node().map(Value::from));
        self.editor.execute(sql::PUT_JOB, &values.collect::<Vec<_>>())?;
        Ok(Edited::Done)
    }

    /// What an update came to: if it changed nothing, the row is another version, or gone.
    fn updated(&self, changed: u64, is_there: Sql, values: &[Value<'_>]) -> Unless<Edited, E::Failure> {
        match changed {
            0 if self.editor.exists(is_there, values)? => Ok(Edited::Not(Changed::Outdated)),
            0 => Ok(Edited::Not(Changed::Missing)),
            _ => Ok(Edited::Done),
        }
    }

    fn audit(&self, entry: &AuditEntry) -> Unless<(), E::Failure> {
        self.editor.execute(sql::ADD_AUDIT_ENTRY, &codec::audit_columns(entry)).map(|_| ())
    }
}
