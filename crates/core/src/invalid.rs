//! What is wrong with a policy that someone wrote: the field, the value and what is allowed.

use std::fmt::{self, Display};

/// One refused field. The text is for the person who wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Invalid {
    /// Where: a path such as `rate_limit.max_per_minute` or `delivery_schedules[1].timezone`.
    pub field: String,
    /// What stood there, as written; `None` where it is missing.
    pub value: Option<String>,
    /// What may stand there.
    pub allowed: String,
}

impl Invalid {
    /// `field` holds `value`, where only `allowed` may stand.
    pub fn new(field: impl Into<String>, value: impl Display, allowed: impl Into<String>) -> Self {
        Self { field: field.into(), value: Some(shortened(&value.to_string())), allowed: allowed.into() }
    }
    /// `field` is missing.
    pub fn missing(field: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self { field: field.into(), value: None, allowed: allowed.into() }
    }
    /// The same fault, seen from the object that holds the field: `max` becomes `rate_limit.max`.
    #[must_use]
    pub fn under(mut self, parent: impl Display) -> Self {
        let dot = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        self.field = format!("{parent}{dot}{}", self.field);
        self
    }
    /// The same fault, seen from the list that holds the object: `timezone` becomes `[1].timezone`.
    #[must_use]
    pub fn at(self, index: usize) -> Self {
        self.under(format_args!("[{index}]"))
    }
}

impl Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "`{}` is {value}; allowed: {}", self.field, self.allowed),
            None => write!(f, "`{}` is missing; allowed: {}", self.field, self.allowed),
        }
    }
}

/// A number outside its range: `value` of `field` must lie in `least..=most`.
pub fn check_range<N: Copy + PartialOrd + Display>(
    field: &str,
    value: N,
    least: N,
    most: N,
) -> Result<N, Invalid> {
    if value < least || value > most {
        return Err(Invalid::new(field, value, format!("{least} to {most}")));
    }
    Ok(value)
}

/// A value is quoted in an error so that its writer finds it again: its beginning does.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 80;
    let safe: String = text
        .chars()
        .take(SHOWN)
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect();
    if text.chars().nth(SHOWN).is_some() { format!("{safe}…") } else { safe }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_field_value_and_what_is_allowed() {
        let fault = check_range("max", 0, 1, 600_000).unwrap_err().at(2).under("rates");
        assert_eq!(fault.to_string(), "`rates[2].max` is 0; allowed: 1 to 600000");
        assert_eq!(
            Invalid::missing("timezone", "an IANA zone").to_string(),
            "`timezone` is missing; allowed: an IANA zone"
        );
    }

    #[test]
    fn control_characters_and_length_of_a_value_are_tamed() {
        let fault = Invalid::new("name", format!("\u{1b}[31m{}", "x".repeat(500)), "less");
        assert!(!fault.to_string().contains('\u{1b}') && fault.to_string().len() < 200);
    }
}
