//! Names and plans that many rows share: from name to number.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};
use tidegate_core::pattern::EventType;
use tidegate_core::retry::RetryPlan;

use super::sql;
use crate::names::REMEMBERED;

/// Plans that are compared one by one before their text is looked up.
const COMPARED: usize = 32;

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
