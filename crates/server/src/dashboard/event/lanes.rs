//! The deliveries of an event as lanes on one time axis, with each wait named.

use maud::{Markup, html};
use tidegate_core::time::{Millis, Timestamp};

use super::Lane;
use crate::dashboard::chart::{TimeAxis, mark, px};
use crate::dashboard::visitor::{Clock, Visitor};
use crate::dashboard::wire::Moment;
use crate::dashboard::{ui, words};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 170.0;
const ROW: f64 = 34.0;
const TOP: f64 = 6.0;
/// A picture is never of less than this, so that milliseconds do not look like minutes.
const SHORTEST: Millis = Millis::seconds(2);

/// What a name takes.
const NAME: f64 = 84.0;
/// What began within this was found when the page was made.
const JUST_NOW: Millis = Millis::new(200);

/// The picture.
pub(super) fn draw(visitor: &Visitor, lanes: &[Lane]) -> Markup {
    let clock = &visitor.clock;
    let from = lanes.iter().map(|lane| lane.story.delivery.created_at.0).min().unwrap_or(clock.now);
    let to = lanes.iter().map(|lane| end(lane, clock.now)).max().unwrap_or(clock.now).max(from + SHORTEST);
    let axis = TimeAxis { from, to, left: LEFT, right: WIDTH - 12.0 };
    let bottom = TOP + ROW * lanes.len() as f64;
    html! {
        figure.chart tabindex="0" aria-label="Deliveries over time" {
            svg viewBox={ "0 0 " (WIDTH) " " (px(bottom + 18.0)) } role="img" aria-label={ (words::plural(lanes.len() as u64, "delivery", "deliveries")) " over " (words::span(to - from)) "; each is told below" } {
                (axis.ticks(clock, TOP, bottom))
                @for (place, lane) in lanes.iter().enumerate() {
                    (row(visitor, &axis, TOP + ROW * place as f64, lane))
                }
            }
        }
    }
}

/// Where the picture of a lane ends: with it, or now, or when it is expected to go if that is soon.
fn end(lane: &Lane, now: Timestamp) -> Timestamp {
    let delivery = &lane.story.delivery;
    if let Some(at) = delivery.finished_at {
        return at.0;
    }
    // A wait of hours would make a point of all that happened.
    let soon = (now - delivery.created_at.0).max(SHORTEST).scaled(2, 1);
    let expected = lane.explanation.as_ref().and_then(|explanation| explanation.estimated_at);
    expected.map(|at| at.0).filter(|at| *at - now < soon).map_or(now, |at| at.max(now))
}

fn row(visitor: &Visitor, axis: &TimeAxis, top: f64, lane: &Lane) -> Markup {
    let (clock, delivery) = (&visitor.clock, &lane.story.delivery);
    let middle = top + ROW / 2.0;
    let over = delivery.finished_at.map_or(clock.now, |at| at.0);
    let name = name(visitor, lane);
    let waits = waits(lane, over);
    html! {
        text.label x=(LEFT - 10.0) y=(px(middle + 4.0)) text-anchor="end" { (name) }
        line.way x1=(px(axis.x(delivery.created_at.0))) x2=(px(axis.x(over))) y1=(px(middle)) y2=(px(middle)) {}
        @for (place, wait) in waits.iter().enumerate() {
            // Where two names would stand on one another, the later says it, as it lies above.
            @let named = waits[place + 1..].iter().all(|after| axis.x(after.until) < axis.x(wait.from) || axis.x(wait.from) + NAME < axis.x(after.from));
            (draw_wait(clock, axis, middle, wait, named))
        }
        @for attempt in &lane.story.attempts {
            @let took = words::span(Millis::new(attempt.response_time_ms));
            @let words = format!("attempt {}: {} after {took}", attempt.number, attempt.outcome.replace('_', " "));
            (mark(&attempt.outcome, axis.x(attempt.started_at.0), middle, &words))
        }
        @if let Some(at) = delivery.finished_at {
            @let (shape, tone, word) = words::state(&delivery.status);
            text class={ "end " (tone.class()) } x=(px((axis.x(at.0) + 7.0).min(axis.right - 4.0))) y=(px(middle - 5.0)) text-anchor=(if axis.x(at.0) > axis.right - 90.0 { "end" } else { "start" }) {
                (shape) " " (word)
            }
        } @else if let Some(at) = lane.explanation.as_ref().and_then(|explanation| explanation.estimated_at) {
            line.expected x1=(px(axis.x(over))) x2=(px(axis.x(at.0))) y1=(px(middle)) y2=(px(middle)) {
                title { "expected " (ui::shown(clock, at.0, "%-d %b %H:%M:%S")) }
            }
        }
    }
}

/// A time in which it waited, and for what.
struct Wait<'a> {
    from: Timestamp,
    until: Timestamp,
    word: &'a str,
    detail: &'a str,
}

/// All that it waited for, in their order. What holds it now is drawn as it was so far; the rest is the line of what is expected.
fn waits(lane: &Lane, over: Timestamp) -> Vec<Wait<'_>> {
    let story = &lane.story;
    let of_moment = |moment: &'_ Moment| -> Option<Timestamp> {
        let until = moment.retry_at.map(|at| at.0).or(moment.lasts.then_some(over))?;
        (moment.at.0 < over - JUST_NOW || until <= over).then_some(until)
    };
    let told = story.timeline.iter().filter_map(|moment| {
        Some(Wait {
            from: moment.at.0,
            until: of_moment(moment)?,
            word: &moment.status,
            detail: &moment.detail,
        })
    });
    let last = story.attempts.last().filter(|_| story.delivery.status == "retry_scheduled");
    let own = last.map(|last| Wait {
        from: last.started_at.0 + Millis::new(last.response_time_ms),
        until: over,
        word: "retry_backoff",
        detail: "it waits for its next attempt",
    });
    let mut all: Vec<_> = own.into_iter().chain(told).collect();
    all.sort_by_key(|wait| wait.from);
    all
}

fn draw_wait(clock: &Clock, axis: &TimeAxis, middle: f64, wait: &Wait<'_>, named: bool) -> Markup {
    let (left, right) = (axis.x(wait.from), axis.x(wait.until));
    let (_, tone, word) = words::state(wait.word);
    html! {
        g class={ "band " (tone.class()) } {
            title {
                (word) " from " (ui::shown(clock, wait.from, "%H:%M:%S")) " to "
                (ui::shown(clock, wait.until, "%H:%M:%S")) ": " (wait.detail)
            }
            rect x=(px(left)) y=(px(middle - 9.0)) width=(px((right - left).max(1.0))) height="18" {}
            @if named && right - left > NAME { text.tick x=(px(left + 8.0)) y=(px(middle + 4.0)) { (word) } }
        }
    }
}

fn name(visitor: &Visitor, lane: &Lane) -> String {
    let id = lane.story.delivery.destination_id.as_deref().unwrap_or_default();
    let entry = visitor.dashboard.app.catalogue.find_destination(visitor.caller.account, id);
    let name = entry.map_or_else(|| "deleted".to_owned(), |entry| entry.spec.document.name.clone());
    let short: String = name.chars().take(20).collect();
    let short = if short == name { name } else { format!("{short}…") };
    if lane.story.delivery.replay_of.is_some() { format!("{short} (replay)") } else { short }
}
