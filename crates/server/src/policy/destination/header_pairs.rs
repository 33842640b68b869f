//! Custom headers as they stand in a request, a name that stands there twice included: it is refused and not overwritten.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// Names and values, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderPairs(pub(super) Vec<(String, String)>);

impl<'de> Deserialize<'de> for HeaderPairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Pairs)
    }
}

struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = HeaderPairs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of header names and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<HeaderPairs, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(HeaderPairs(pairs))
    }
}
