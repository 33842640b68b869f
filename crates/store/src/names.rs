//! Names and plans that many rows share, by number.
//!
//! The writer gives numbers, readers turn them back ([`Names`]). A number that was committed never changes, so
//! both remember what they have seen.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use tidegate_core::pattern::EventType;
use tidegate_core::retry::RetryPlan;

use crate::codec::strange;
use crate::source::{Result, Source, params};
use crate::sql;

/// Names remembered at most: a publisher who makes one up for each event must not fill the memory.
pub(crate) const REMEMBERED: usize = 100_000;

/// From number to name, shared by all readers.
#[derive(Debug, Default)]
pub(crate) struct Names {
    types: RwLock<HashMap<i64, EventType>>,
    plans: RwLock<HashMap<i64, RetryPlan>>,
}

impl Names {
    /// The event type with this number.
    pub(crate) fn event_type(&self, source: &Source, no: i64) -> Result<EventType> {
        remembered(&self.types, no, || {
            let name: Option<String> = source.one(sql::TYPE_NAME, params![no], |row| row.get(0))?;
            let name = name.ok_or_else(|| strange("the number of a type", no))?;
            EventType::parse(&name).map_err(|_| strange("the event type", name))
        })
    }
    /// The plan with this number.
    pub(crate) fn plan(&self, source: &Source, no: i64) -> Result<RetryPlan> {
        remembered(&self.plans, no, || {
            let text: Option<String> = source.one(sql::RETRY_PLAN, params![no], |row| row.get(0))?;
            let text = text.ok_or_else(|| strange("the number of a plan", no))?;
            RetryPlan::from_text(&text).ok_or_else(|| strange("the retry plan", text))
        })
    }
}

fn remembered<T: Clone>(
    known: &RwLock<HashMap<i64, T>>,
    no: i64,
    look: impl FnOnce() -> Result<T>,
) -> Result<T> {
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
pub(crate) fn find_type(source: &Source, event_type: &EventType) -> Result<Option<i64>> {
    source.one(sql::FIND_TYPE_NAME, params![event_type.as_str()], |row| row.get(0))
}
