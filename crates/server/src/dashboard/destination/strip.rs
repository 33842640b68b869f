//! The next 24 hours: quiet windows, by their own clock and by the viewer's.

use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde_json::json;
use tidegate_core::time::{Millis, Timestamp};

use crate::dashboard::ask::{Api, Refused};
use crate::dashboard::chart::{TimeAxis, px};
use crate::dashboard::visitor::Clock;
use crate::dashboard::wire::{At, Interval, Quiet};
use crate::policy::schedule::ScheduleDocument;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 184.0;
const ROW: f64 = 34.0;
/// Quiet intervals that may begin within a day.
const MOST: u32 = 50;

/// What stands before the viewer's zone.
const YOURS: &str = "your time, ";
/// Letters that fit beside the strip.
const LONGEST: usize = 28;

/// Each window with its quiet intervals.
pub(super) struct Strip {
    rows: Vec<(ScheduleDocument, Vec<Interval>)>,
}

impl Strip {
    /// Asks when each window is quiet. One that is for some types only is asked as if it were for all.
    pub(super) async fn ask(api: &Api, clock: &Clock, windows: &[ScheduleDocument]) -> Result<Self, Refused> {
        let end = clock.now + Millis::hours(24);
        let mut rows = Vec::with_capacity(windows.len());
        for window in windows {
            let bare =
                ScheduleDocument { applies_to: Vec::new(), bypass_event_types: Vec::new(), ..window.clone() };
            let body = json!({"delivery_schedule": bare, "count": MOST});
            let quiet: Quiet = api.post("/v1/schedules/preview", &body).await?;
            let within = quiet.windows.into_iter().filter(|interval| interval.start.0 < end).collect();
            rows.push((window.clone(), within));
        }
        Ok(Self { rows })
    }

    /// The picture: a row for each window under its own clock, then the viewer's clock.
    pub(super) fn draw(&self, clock: &Clock) -> Markup {
        if self.rows.is_empty() {
            return html! { p { "No quiet hours: it may be sent to at any time." } };
        }
        let axis =
            TimeAxis { from: clock.now, to: clock.now + Millis::hours(24), left: LEFT, right: WIDTH - 8.0 };
        let bottom = 8.0 + ROW * self.rows.len() as f64;
        let viewer = short(clock.zone.iana_name().unwrap_or("UTC"), LONGEST - YOURS.len());
        html! {
            figure.chart tabindex="0" aria-label="Quiet windows" {
                svg viewBox={ "0 0 " (WIDTH) " " (bottom + 22.0) } role="img" aria-label=(self.summary(clock)) {
                    (axis.ticks(clock, 8.0, bottom))
                    @for (place, (window, intervals)) in self.rows.iter().enumerate() {
                        (row(&axis, 8.0 + ROW * place as f64, window, intervals))
                    }
                    text.label x=(LEFT - 8.0) y=(px(bottom + 12.0)) text-anchor="end" {
                        (YOURS) (viewer)
                    }
                }
                ul.plain {
                    @for (window, intervals) in &self.rows { li { (words_of(clock, window, intervals)) } }
                }
            }
        }
    }

    fn summary(&self, clock: &Clock) -> String {
        let quiet: usize = self
            .rows
            .iter()
            .map(|(_, intervals)| intervals.iter().filter(|one| one.end.0 > clock.now).count())
            .sum();
        format!(
            "{} windows, {quiet} quiet intervals in the next 24 hours; they are listed below",
            self.rows.len()
        )
    }
}

fn row(axis: &TimeAxis, top: f64, window: &ScheduleDocument, intervals: &[Interval]) -> Markup {
    let zone = TimeZone::get(&window.timezone).unwrap_or(TimeZone::UTC);
    let (band_top, band_height) = (top + 14.0, 14.0);
    let own = Clock { now: axis.from, zone: zone.clone() };
    html! {
        text.label x=(LEFT - 8.0) y=(px(band_top + 11.0)) text-anchor="end" {
            (short(&window.timezone, LONGEST))
        }
        rect.open x=(px(axis.left)) y=(px(band_top)) width=(px(axis.right - axis.left)) height=(band_height) {}
        @for interval in intervals {
            @let (from, to) = (axis.x(interval.start.0), axis.x(interval.end.0));
            rect.quiet x=(px(from)) y=(px(band_top)) width=(px((to - from).max(1.0))) height=(band_height) {
                title {
                    "Quiet from " (local(&own, interval.start)) " to " (local(&own, interval.end)) " ("
                    (window.timezone) ")"
                }
            }
        }
        @for hour in hours(axis, &zone) {
            text.tick x=(px(axis.x(hour))) y=(px(band_top - 3.0)) text-anchor="middle" {
                (hour.to_jiff().to_zoned(zone.clone()).strftime("%H:%M"))
            }
        }
        @for (at, words) in shifts(axis, &zone) {
            line.shift x1=(px(axis.x(at))) x2=(px(axis.x(at))) y1=(px(band_top - 2.0)) y2=(px(band_top + band_height + 2.0)) {
                title { (words) }
            }
            text.tick.shift x=(px(axis.x(at) + 3.0)) y=(px(band_top + 10.5)) { (words) }
        }
    }
}

/// A zone as far as there is room: of a long one, its place.
fn short(zone: &str, most: usize) -> String {
    match zone.rsplit_once('/') {
        Some((_, place)) if zone.len() > most => place.replace('_', " "),
        _ => zone.to_owned(),
    }
}

/// Every fourth hour of a zone.
fn hours(axis: &TimeAxis, zone: &TimeZone) -> Vec<Timestamp> {
    let whole = axis.from.as_millis() / 900_000 + 1;
    let quarters = (0..96).map(|number| Timestamp::from_millis((whole + number) * 900_000));
    let shown = |at: &Timestamp| {
        let local = at.to_jiff().to_zoned(zone.clone());
        local.minute() == 0
            && local.hour() % 4 == 0
            && axis.x(*at) > axis.left + 12.0
            && axis.x(*at) < axis.right - 12.0
    };
    quarters.filter(shown).collect()
}

/// Where the clocks of a zone are set within the strip.
fn shifts(axis: &TimeAxis, zone: &TimeZone) -> Vec<(Timestamp, String)> {
    let following = zone.following(axis.from.to_jiff()).map(|shift| shift.timestamp());
    let within =
        following.map(|at| Timestamp::from_millis(at.as_millisecond())).take_while(|at| *at < axis.to);
    let before = |at: Timestamp| zone.to_offset((at - Millis::new(1)).to_jiff()).seconds();
    let words = |at: Timestamp| {
        let minutes = (zone.to_offset(at.to_jiff()).seconds() - before(at)) / 60;
        (at, format!("clocks {} {} min", if minutes < 0 { "back" } else { "forward" }, minutes.abs()))
    };
    within.filter(|at| before(*at) != zone.to_offset(at.to_jiff()).seconds()).map(words).collect()
}

fn local(own: &Clock, at: At) -> String {
    crate::dashboard::ui::shown(own, at.0, "%a %H:%M")
}

fn words_of(clock: &Clock, window: &ScheduleDocument, intervals: &[Interval]) -> Markup {
    let days = if window.days.is_empty() { "every day".to_owned() } else { window.days.join(", ") };
    let zone = TimeZone::get(&window.timezone).unwrap_or(TimeZone::UTC);
    let own = Clock { now: clock.now, zone };
    html! {
        strong { (window.quiet_start) "–" (window.quiet_end) " " (window.timezone) } ", " (days)
        @if !window.applies_to.is_empty() { ", only " code { (window.applies_to.join(" ")) } }
        @if !window.bypass_event_types.is_empty() {
            ", not for " code { (window.bypass_event_types.join(" ")) }
        }
        @match intervals.iter().find(|interval| interval.end.0 > clock.now) {
            Some(next) if next.start.0 <= clock.now => { ": quiet now, until " (local(&own, next.end)) " there, " (local(clock, next.end)) " your time" },
            Some(next) => { ": next from " (local(&own, next.start)) " to " (local(&own, next.end)) " there, " (local(clock, next.start)) " to " (local(clock, next.end)) " your time" },
            None => ": not within the next 24 hours",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_night_on_which_clocks_are_set_is_marked() {
        let from = Timestamp::parse("2026-03-08T02:00:00Z").unwrap();
        let axis = TimeAxis { from, to: from + Millis::hours(24), left: 0.0, right: 100.0 };
        let shifts = shifts(&axis, &TimeZone::get("America/Chicago").unwrap());
        assert_eq!(
            shifts,
            [(Timestamp::parse("2026-03-08T08:00:00Z").unwrap(), "clocks forward 60 min".to_owned())]
        );
        assert!(super::shifts(&axis, &TimeZone::UTC).is_empty());
    }

    #[test]
    fn a_zone_whose_name_is_long_is_called_by_its_place() {
        assert_eq!(short("America/Chicago", 28), "America/Chicago");
        assert_eq!(short("America/Argentina/Buenos_Aires", 28), "Buenos Aires");
    }
}
