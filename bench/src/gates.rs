//! Gate decisions per second on one core.

use std::hint::black_box;
use std::sync::Arc;

use tidegate_core::delivery::Delivery;
use tidegate_core::gate::{Question, decide, explain};
use tidegate_core::id::DeliveryId;
use tidegate_core::lane::LaneState;
use tidegate_core::order::Turn;
use tidegate_core::pattern::EventType;
use tidegate_core::policy::Policy;
use tidegate_core::quiet::{QuietHours, Window, WindowSpec};
use tidegate_core::rate::{Per, Quota, RateLimit, RateMode};
use tidegate_core::settle::{Incoming, Terms, accept};
use tidegate_core::time::Now;

use crate::row::{Bound, Row};
use crate::stopwatch::per_second;

/// 2026-05-01T05:30:00Z: half past midnight in Chicago.
const NIGHT: Now = Now::at(1_777_613_400_000);

pub(crate) fn measure() -> Vec<Row> {
    let limit = per_second(|| {
        black_box(opaque(black_box(&NIGHT)));
    });
    let plain = Policy::default();
    let shaped = Policy { rate_limit: Some(rate()), ..Policy::default() };
    let quiet = Policy { quiet: night(1), rate_limit: Some(rate()), ..Policy::default() };
    let many = Policy { quiet: night(20), rate_limit: Some(rate()), ..Policy::default() };
    let cases = [
        ("every gate open", plain),
        ("with a rate limit", shaped),
        ("in quiet hours, one window", quiet),
        ("in quiet hours, 20 windows", many),
    ];
    let mut rows: Vec<Row> = cases
        .iter()
        .map(|(name, policy)| Row {
            what: format!("gate decisions, {name}"),
            measured: questions(policy, decide),
            unit: "/s",
            required: Some(Bound::AtLeast(1_000_000.0)),
            limit: Some((limit, "calls that read the clock value")),
        })
        .collect();
    rows.push(Row {
        what: "explanations, in quiet hours".into(),
        measured: questions(&cases[2].1, explain),
        unit: "/s",
        required: None,
        limit: None,
    });
    rows
}

/// How often `ask` can be asked about one delivery and one idle destination.
fn questions<T>(policy: &Policy, ask: impl Fn(&Question<'_>) -> T) -> f64 {
    let (delivery, lane) = (delivery(policy), LaneState::new(policy, NIGHT));
    let quiet = policy.quiet.mask_for(&delivery.event_type);
    per_second(|| {
        let now = black_box(NIGHT);
        let question = Question { now, delivery: &delivery, turn: Turn::Its, quiet, policy, lane: &lane };
        black_box(ask(black_box(&question)));
    })
}

#[inline(never)]
fn opaque(now: &Now) -> i64 {
    now.wall.as_millis() ^ now.mono.as_millis()
}

fn rate() -> RateLimit {
    RateLimit { quota: Quota::new(100, Per::Minute, Some(250)).expect("a valid rate"), mode: RateMode::Fixed }
}

fn night(windows: usize) -> QuietHours {
    let window = |index: usize| WindowSpec {
        timezone: "America/Chicago".into(),
        quiet_start: "00:00".into(),
        quiet_end: format!("06:{index:02}"),
        days: vec![],
        applies_to: vec![],
        bypass_event_types: vec!["payment.*".into()],
    };
    let windows = (0..windows).map(|index| Window::parse(window(index)).expect("a valid window")).collect();
    QuietHours::new(windows).expect("open by day")
}

fn delivery(policy: &Policy) -> Delivery {
    let event_type = EventType::parse("order.created").expect("a valid type");
    let incoming = Incoming {
        ordering_key: Some(Arc::from("order-1")),
        ..Incoming::new(DeliveryId::from_bits(1), 1, event_type)
    };
    accept(NIGHT.wall, incoming, policy, &Terms::default())
}
