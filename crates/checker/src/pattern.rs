//! Patterns of event types: segments joined by dots; `*` at the end stands for the rest, elsewhere for one segment.

/// Whether `event_type` is among the names that `pattern` stands for.
pub(crate) fn matches(pattern: &str, event_type: &str) -> bool {
    let (mut left, mut right) = (pattern.split('.').peekable(), event_type.split('.'));
    while let Some(segment) = left.next() {
        let Some(name) = right.next() else { return false };
        if segment == "*" && left.peek().is_none() {
            return true;
        }
        if segment != "*" && segment != name {
            return false;
        }
    }
    right.next().is_none()
}

/// Whether any of `patterns` matches.
pub(crate) fn any_matches(patterns: &[String], event_type: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, event_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_the_rest_at_the_end_and_one_segment_elsewhere() {
        for (pattern, event_type, expected) in [
            ("*", "order.created", true),
            ("order.*", "order.created", true),
            ("order.*", "order.line.added", true),
            ("order.*", "order", false),
            ("*.created", "order.created", true),
            ("*.created", "order.line.created", false),
            ("order.*.added", "order.line.added", true),
            ("order.created", "order.created", true),
            ("order.created", "order.created.twice", false),
            ("order", "orders", false),
        ] {
            assert_eq!(matches(pattern, event_type), expected, "{pattern} {event_type}");
        }
    }
}
