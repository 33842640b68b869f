//! What a PATCH says about one field.

use serde::{Deserialize, Deserializer};

/// A field that is absent stays as it is; `null` removes it; anything else replaces it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Change<T> {
    /// The field is absent.
    #[default]
    Keep,
    /// It is `null`.
    Remove,
    /// It is this.
    Set(T),
}

impl<T> Change<T> {
    /// Does to `field` what it says.
    pub(crate) fn apply(self, field: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Remove => *field = None,
            Self::Set(value) => *field = Some(value),
        }
    }
    /// Whether the field is absent.
    pub(crate) const fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }
}

/// Fields of this type need `#[serde(default)]`: a missing one is told from `null` by that alone.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(|value| value.map_or(Self::Remove, Self::Set))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Body {
        #[serde(default)]
        a: Change<u32>,
    }

    #[test]
    fn absent_null_and_a_value_are_three_things() {
        let read = |text| serde_json::from_str::<Body>(text).unwrap().a;
        assert_eq!(read("{}"), Change::Keep);
        assert_eq!(read(r#"{"a": null}"#), Change::Remove);
        assert_eq!(read(r#"{"a": 7}"#), Change::Set(7));
        let mut field = Some(1);
        Change::Keep.apply(&mut field);
        assert_eq!(field, Some(1));
        Change::Set(2).apply(&mut field);
        assert_eq!(field, Some(2));
        Change::Remove.apply(&mut field);
        assert_eq!(field, None);
    }
}
