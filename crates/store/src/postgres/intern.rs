//! Names and plans that many rows share: from name to number. New ones are stored before the group that needs them: a number
//! that nothing uses does no harm, and a group that is rolled back takes none away.

use std::collections::HashMap;

use tidegate_core::retry::RetryPlan;

use super::failure::Failure;
use super::link::{Asked, Link};
use super::sql;
use super::value::{Rows, row};
use crate::names::REMEMBERED;

/// What is known of them.
#[derive(Debug, Default)]
pub(super) struct Intern {
    types: HashMap<String, i64>,
    plans: HashMap<String, i64>,
}

impl Intern {
    /// Sees to it that all of these have their numbers.
    pub(super) fn learn<'a>(
        &mut self,
        link: &Link,
        types: impl Iterator<Item = &'a str>,
        plans: impl Iterator<Item = String>,
    ) -> Result<(), Failure> {
        if self.types.len() + self.plans.len() >= REMEMBERED {
            *self = Self::default();
        }
        let types = types.filter(|name| !self.types.contains_key(*name)).map(str::to_owned).collect();
        let plans = plans.filter(|plan| !self.plans.contains_key(plan)).collect();
        learn(link, &mut self.types, types, [sql::ADD_TYPE_NAMES, sql::FIND_TYPE_NAMES])?;
        learn(link, &mut self.plans, plans, [sql::ADD_RETRY_PLANS, sql::FIND_RETRY_PLANS])
    }

    pub(super) fn event_type(&self, name: &str) -> Result<i64, Failure> {
        self.types.get(name).copied().ok_or_else(|| unknown(name))
    }
    pub(super) fn plan(&self, plan: &RetryPlan) -> Result<i64, Failure> {
        let text = plan.to_text();
        self.plans.get(&text).copied().ok_or_else(|| unknown(&text))
    }
}

fn unknown(name: &str) -> Failure {
    Failure::Refused(format!("{name} has no number"))
}

fn learn(
    link: &Link,
    known: &mut HashMap<String, i64>,
    mut new: Vec<String>,
    [add, find]: [&'static str; 2],
) -> Result<(), Failure> {
    new.sort_unstable();
    new.dedup();
    if new.is_empty() {
        return Ok(());
    }
    let values = || {
        let mut names = Rows::of("t");
        new.iter().for_each(|name| names.push(row![name]));
        names.values()
    };
    let asked = [Asked { sql: add, values: values() }, Asked { sql: find, values: values() }];
    let found = link.send(&asked)?;
    for row in found.iter().flat_map(|answer| &answer.rows) {
        known.insert(row.get(1), row.get(0));
    }
    Ok(())
}
