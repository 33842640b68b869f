use super::*;

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap()
}

fn name(text: &str) -> EventType {
    EventType::parse(text).unwrap()
}

/// All texts of one to `most` of these segments.
fn texts(segments: &[&str], most: usize) -> Vec<String> {
    let mut all: Vec<String> = segments.iter().map(|&s| s.to_owned()).collect();
    let mut longest = all.clone();
    for _ in 1..most {
        longest =
            longest.iter().flat_map(|head| segments.iter().map(move |s| format!("{head}.{s}"))).collect();
        all.extend(longest.iter().cloned());
    }
    all
}

/// Patterns of up to three segments, and names of up to four: `z` stands for what no pattern spells.
fn small_world() -> (Vec<Pattern>, Vec<EventType>) {
    let patterns = texts(&["a", "b", "*"], 3).iter().map(|text| pattern(text)).collect();
    (patterns, texts(&["a", "b", "z"], 4).iter().map(|text| name(text)).collect())
}

#[test]
fn names_are_dotted_segments_of_plain_characters() {
    let longest = "x".repeat(128);
    for good in ["a", "order.created", "A-1_b.c.0", longest.as_str()] {
        assert_eq!(name(good).as_str(), good);
    }
    let too_long = "x".repeat(129);
    for bad in ["", ".", "a.", ".a", "a..b", "a b", "a.*", "*", "ä", "a/b", "a\n", "a\0", too_long.as_str()]
    {
        let fault = EventType::parse(bad).unwrap_err();
        assert_eq!((fault.field.as_str(), fault.allowed.as_str()), ("", NAME_RULE), "{bad:?}");
    }
    let fault = EventType::parse("a b").unwrap_err().under("event_type").to_string();
    assert!(fault.starts_with("`event_type` is a b; allowed: 1 to 128 characters"), "{fault}");
}

#[test]
fn a_star_stands_for_whole_segments_only() {
    assert_eq!(Pattern::any(), pattern("*"));
    for good in ["*", "*.*", "a.*.b", "*.b", "a.b"] {
        assert_eq!(pattern(good).as_str(), good);
    }
    for bad in ["", "a*", "*a", "**", "a.**", "a.*.", ".*", "a.?", "[a]"] {
        assert!(Pattern::parse(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_last_star_takes_the_rest_and_another_takes_one() {
    let table = [
        ("*", "order", true),
        ("*", "order.line.added", true),
        ("order.*", "order.created", true),
        ("order.*", "order.line.added", true),
        ("order.*", "order", false),
        ("order.*", "orders.created", false),
        ("*.created", "order.created", true),
        ("*.created", "order.line.created", false),
        ("*.created", "created", false),
        ("order.*.added", "order.line.added", true),
        ("order.*.added", "order.added", false),
        ("order.*.added", "order.line.item.added", false),
        ("order.*.*", "order.line", false),
        ("order.*.*", "order.line.added", true),
        ("order.*.*", "order.line.item.added", true),
        ("order.created", "order.created", true),
        ("order.created", "Order.created", false),
        ("order.created", "order.created.late", false),
    ];
    for (text, event_type, expected) in table {
        assert_eq!(pattern(text).matches(&name(event_type)), expected, "{text} and {event_type}");
    }
}

#[test]
fn the_most_specific_of_those_that_match_is_always_one() {
    let widest_first =
        ["*", "*.*", "*.*.*", "*.line.*", "order.*", "order.*.*", "order.*.added", "order.line.*"];
    for pair in widest_first.windows(2) {
        assert_eq!(pattern(pair[0]).by_specificity(&pattern(pair[1])), Ordering::Less, "{pair:?}");
    }
    assert_eq!(pattern("*.created").by_specificity(&pattern("order.*")), Ordering::Less);

    let (patterns, names) = small_world();
    for event_type in &names {
        let matching: Vec<_> = patterns.iter().filter(|p| p.matches(event_type)).collect();
        for a in &matching {
            for b in &matching {
                assert_eq!(a.by_specificity(b) == Ordering::Equal, a == b, "{a} and {b} for {event_type}");
            }
            assert!(!pattern(event_type.as_str()).by_specificity(a).is_lt(), "the name itself beats {a}");
        }
    }
}

#[test]
fn a_wider_pattern_is_less_specific_and_inclusion_means_what_it_says() {
    let (patterns, names) = small_world();
    for wide in &patterns {
        for narrow in &patterns {
            let includes = names.iter().all(|n| wide.matches(n) || !narrow.matches(n));
            assert_eq!(wide.includes(narrow), includes, "{wide} includes {narrow}");
            assert!(!includes || wide.by_specificity(narrow).is_le(), "{wide} is wider than {narrow}");
        }
    }
}

#[test]
fn a_meet_matches_what_both_match() {
    let (patterns, names) = small_world();
    for a in &patterns {
        for b in &patterns {
            let met = a.meet(b);
            for n in &names {
                let both = a.matches(n) && b.matches(n);
                assert_eq!(met.as_ref().is_some_and(|m| m.matches(n)), both, "{a} and {b} at {n}: {met:?}");
            }
        }
    }
}

#[test]
fn a_list_matches_if_one_does_and_has_at_most_a_hundred() {
    let list = Patterns::parse(&["order.*", "payment.failed"]).unwrap();
    assert!(list.any_match(&name("payment.failed")) && !list.any_match(&name("payment.made")));
    assert!(!Patterns::default().any_match(&name("order.created")));
    assert!(Patterns::parse(&["a"; 100]).is_ok());
    let fault = Patterns::parse(&["a"; 101]).unwrap_err().under("applies_to").to_string();
    assert_eq!(fault, "`applies_to` is 101 patterns; allowed: at most 100 patterns");
    assert_eq!(Patterns::parse(&["a", "b*"]).unwrap_err().under("applies_to").field, "applies_to[1]");
}
