//! Names and plans that many rows share, by number.
//!
//! The writer gives numbers ([`Intern`]), readers turn them back ([`Names`]). A number that was committed never changes, so
//! both remember what they have seen.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use rusqlite::{Connection, OptionalExtension, params};
use tidegate_core::pattern::EventType;
use tidegate_core::retry::RetryPlan;

use super::codec::strange;
use super::sql;

/// Names remembered at most: a publisher who makes one up for each event must not fill the memory.
const REMEMBERED: usize = 100_000;
/// Plans that are compared one by one before their text is looked up.
const COMPARED: usize = 32;

/// From number to name, shared by all readers.
#[derive(Debug, Default)]
pub(super) struct Names {
    types: RwLock<HashMap<i64, EventType>>,
    plans: RwLock<HashMap<i64, RetryPlan>>,
}

impl Names {
    /// The event type with this number.
    pub(super) fn event_type(&self, connection: &Connection, no: i64) -> rusqlite::Result<EventType> {
        remembered(&self.types, no, || {
            let name: String =
                connection.prepare_cached(sql::TYPE_NAME)?.query_row([no], |row| row.get(0))?;
            EventType::parse(&name).map_err(|_| strange("the event type", name))
        })
    }
    /// The plan with this number.
    pub(super) fn plan(&self, connection: &Connection, no: i64) -> rusqlite::Result<RetryPlan> {
        remembered(&self.plans, no, || {
            let text: String =
                connection.prepare_cached(sql::RETRY_PLAN)?.query_row([no], |row| row.get(0))?;
            RetryPlan::from_text(&text).ok_or_else(|| strange("the retry plan", text))
        })
    }
}

fn remembered<T: Clone>(
    known: &RwLock<HashMap<i64, T>>,
    no: i64,
    look: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    if let Some(value) = known.read().unwrap_or_else(PoisonError::into_inner).get(&no) {
        return Ok(value.clone());
    }
    let value = look()?;
    let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= REMEMBERED {
        known.clear();
    }
    known.insert(no, value.clone());
    Ok(value)
}

/// The number of a type's name, if any event ever had it.
pub(super) fn find_type(connection: &Connection, event_type: &EventType) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(sql::FIND_TYPE_NAME)?
        .query_row([event_type.as_str()], |row| row.get(0))
        .optional()
}

/// From name to number, for the writer alone. What a rolled back transaction gave out is forgotten with it.
#[derive(Debug, Default)]
pub(super) struct Intern {
    types: HashMap<EventType, i64>,
    plans: Vec<(RetryPlan, i64)>,
}

impl Intern {
    /// The number of an event type, given now if it has none.
    pub(super) fn event_type(
        &mut self,
        connection: &Connection,
        event_type: &EventType,
    ) -> rusqlite::Result<i64> {
        if let Some(no) = self.types.get(event_type) {
            return Ok(*no);
        }
        let no = number(connection, sql::FIND_TYPE_NAME, sql::ADD_TYPE_NAME, event_type.as_str())?;
        if self.types.len() >= REMEMBERED {
            self.types.clear();
        }
        self.types.insert(event_type.clone(), no);
        Ok(no)
    }

    /// The number of a plan, given now if it has none. Nearly all deliveries share a few plans: those are compared.
    pub(super) fn plan(&mut self, connection: &Connection, plan: &RetryPlan) -> rusqlite::Result<i64> {
        if let Some(place) = self.plans.iter().position(|(known, _)| known == plan) {
            if place > 0 {
                self.plans.swap(place, place - 1);
            }
            return Ok(self.plans[place.saturating_sub(1)].1);
        }
        let no = number(connection, sql::FIND_RETRY_PLAN, sql::ADD_RETRY_PLAN, &plan.to_text())?;
        self.plans.truncate(COMPARED - 1);
        self.plans.push((plan.clone(), no));
        Ok(no)
    }

    /// A transaction was rolled back.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

fn number(connection: &Connection, find: &str, add: &str, text: &str) -> rusqlite::Result<i64> {
    let found = connection.prepare_cached(find)?.query_row([text], |row| row.get(0)).optional()?;
    match found {
        Some(no) => Ok(no),
        None => connection.prepare_cached(add)?.insert(params![text]),
    }
}
