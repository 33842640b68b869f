//! Which destinations get which event types. Types are few, events are many: each type is looked up once.

use std::collections::HashMap;

use super::{Destination, Expect};
use crate::names::{Name, Names};
use crate::pattern;

/// The destinations of each type.
#[derive(Debug, Default)]
pub(super) struct Routing {
    types: HashMap<Name, Vec<(u32, Expect)>>,
}

impl Routing {
    pub(super) fn new(
        names: &Names,
        destinations: &[Destination],
        types: impl IntoIterator<Item = Name>,
    ) -> Self {
        let mut routing = Self::default();
        for name in types {
            routing.types.entry(name).or_insert_with(|| recipients(destinations, names.text(name)));
        }
        routing
    }

    pub(super) fn of_type(&self, event_type: Name) -> &[(u32, Expect)] {
        self.types.get(&event_type).map_or(&[], Vec::as_slice)
    }
}

/// A destination whose patterns are changed during the run may get what only some of them match.
fn recipients(destinations: &[Destination], event_type: &str) -> Vec<(u32, Expect)> {
    let expect = |destination: &Destination| {
        let mut phases = destination.timeline.phases().iter();
        let gets = |policy: &crate::history::Policy| pattern::any_matches(&policy.event_types, event_type);
        let some = phases.clone().any(|phase| gets(&phase.policy));
        let all = phases.all(|phase| gets(&phase.policy));
        some.then_some(if all { Expect::Yes } else { Expect::Maybe })
    };
    let all = (0..).zip(destinations);
    all.filter_map(|(index, destination)| Some((index, expect(destination)?))).collect()
}
