use super::*;
use crate::report::Picture;
use crate::series::{Series, Step};
use tidegate_core::time::Timestamp;

fn example(steps: usize, value: u32) -> Report {
    let start = Timestamp::parse("2026-03-07T18:00:00Z").unwrap();
    let mut series = Series::new(start, start + Millis::days(1), 96);
    let step = Step { arrived: value, sent: value, failed: value, held: [value; 11], ..Step::default() };
    series.steps = vec![step; steps];
    Report {
        scenario: "<script>alert(\"1\")</script> & 'more'\u{1b}".to_owned(),
        seed: 7,
        world: "A < B & C".to_owned(),
        deliveries: 1,
        attempts: 1,
        simulated_seconds: 1.0,
        findings: vec![Finding::check("a<b", "1 & 2", "\"none\"", false)],
        pictures: vec![Picture { title: "part <one>".to_owned(), series }],
    }
}

/// Every element that is opened is closed, in order, and no text holds what XML cannot.
fn check_well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg;
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'), "a stray > in {:?}", &rest[..start.min(80)]);
        let end = rest[start..].find('>').expect("a tag ends") + start;
        let tag = &rest[start + 1..end];
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        match (tag.starts_with('/'), tag.ends_with('/')) {
            (true, _) => assert_eq!(open.pop(), Some(name)),
            (false, true) => {}
            (false, false) => open.push(name),
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(!svg.chars().any(|letter| letter.is_control() && letter != '\n'));
}

#[test]
fn text_is_escaped_and_the_document_is_well_formed() {
    let svg = render(&example(96, 10));
    check_well_formed(&svg);
    assert!(!svg.contains("<script"));
    assert!(svg.contains("&lt;script&gt;") && svg.contains("part &lt;one&gt;") && svg.contains("seed 7"));
}

#[test]
fn any_number_of_steps_and_any_values_can_be_drawn() {
    for (steps, value) in [(0, 0), (1, 0), (1, u32::MAX), (7, 3), (299, 1), (5_000, u32::MAX)] {
        let svg = render(&example(steps, value));
        check_well_formed(&svg);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{steps} steps of {value}");
        assert!(svg.len() < 400_000);
    }
}

#[test]
fn every_hold_reason_is_named_in_words() {
    let svg = render(&example(96, 10));
    for reason in tidegate_core::delivery::HoldReason::ALL {
        assert!(svg.contains(&format!(">{reason} <tspan")), "{reason} is missing from the legend");
    }
}
