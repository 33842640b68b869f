//! Colours and patterns, for light and dark viewers.
//!
//! A fill is a colour with ink over it, so that areas can be told apart without their colours. Classes instead of CSS
//! variables, since not every program that shows SVG knows these.

use tidegate_core::delivery::HoldReason;

/// One kind of area.
pub(super) struct Fill {
    /// Its word in the legend, and its class.
    pub(super) word: &'static str,
    light: &'static str,
    dark: &'static str,
    ink: Ink,
}

/// What is drawn over the colour.
#[derive(Clone, Copy)]
enum Ink {
    Nothing,
    Rising,
    Falling,
    Crossed,
    Upright,
    Level,
    Dots,
    Bricks,
}

const fn fill(word: &'static str, light: &'static str, dark: &'static str, ink: Ink) -> Fill {
    Fill { word, light, dark, ink }
}

/// What waits with nothing holding its destination.
pub(super) const IN_LINE: Fill = fill("next in line", "#b9c2ce", "#4a5563", Ink::Nothing);
/// What came in.
pub(super) const ARRIVED: Fill = fill("arrived", "#a9c3df", "#46719c", Ink::Nothing);
/// What is in flight.
pub(super) const IN_FLIGHT: Fill = fill("in flight", "#7fb2a8", "#3d8578", Ink::Nothing);
/// Answers 2xx.
pub(super) const SUCCESS: Fill = fill("success", "#5fa777", "#3d7f55", Ink::Nothing);
/// Answers 429.
pub(super) const LIMITED: Fill = fill("429", "#e5a53a", "#b97f1c", Ink::Rising);
/// All other answers, and none.
pub(super) const FAILED: Fill = fill("failed", "#cf4a56", "#c2505c", Ink::Crossed);

/// The area of a hold.
pub(super) const fn hold(reason: HoldReason) -> Fill {
    let word = reason.word();
    match reason {
        HoldReason::Disabled => fill(word, "#4b5563", "#8b97a6", Ink::Crossed),
        HoldReason::Paused => fill(word, "#a27a5f", "#9c7a63", Ink::Upright),
        HoldReason::Scheduled => fill(word, "#8c9db3", "#62748a", Ink::Dots),
        HoldReason::RetryBackoff => fill(word, "#b565a4", "#a2588f", Ink::Level),
        HoldReason::CircuitOpen => fill(word, "#cf4a56", "#c2505c", Ink::Crossed),
        HoldReason::Throttled => fill(word, "#e5a53a", "#b97f1c", Ink::Rising),
        HoldReason::Unavailable => fill(word, "#dd7440", "#bd6234", Ink::Falling),
        HoldReason::QuietHours => fill(word, "#6a6fce", "#5f64b8", Ink::Dots),
        HoldReason::OrderBlocked => fill(word, "#8a9a3c", "#76852f", Ink::Bricks),
        HoldReason::AtCapacity => fill(word, "#4a8fc7", "#3c7bae", Ink::Upright),
        HoldReason::RateLimited => fill(word, "#2fa394", "#25897c", Ink::Falling),
    }
}

fn all() -> Vec<Fill> {
    let mut fills: Vec<Fill> = HoldReason::ALL.into_iter().map(hold).collect();
    fills.extend([IN_LINE, ARRIVED, IN_FLIGHT, SUCCESS, LIMITED, FAILED]);
    fills
}

impl Fill {
    /// Its name in the document.
    pub(super) fn id(&self) -> String {
        let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        format!("f-{}", self.word.chars().map(letter).collect::<String>())
    }

    fn pattern(&self) -> String {
        let strokes = match self.ink {
            Ink::Nothing => "",
            Ink::Rising => "M-2 2L2 -2M0 8L8 0M6 10L10 6",
            Ink::Falling => "M-2 6L2 10M0 0L8 8M6 -2L10 2",
            Ink::Crossed => "M0 8L8 0M0 0L8 8",
            Ink::Upright => "M2 0V8M6 0V8",
            Ink::Level => "M0 2H8M0 6H8",
            Ink::Dots => "M2 2h.01M6 6h.01",
            Ink::Bricks => "M0 4H8M0 8H8M2 0V4M6 4V8",
        };
        let class = if matches!(self.ink, Ink::Dots) { "ink dots" } else { "ink" };
        let strokes = if strokes.is_empty() {
            String::new()
        } else {
            format!(r#"<path class="{class}" d="{strokes}"/>"#)
        };
        format!(
            "<pattern id=\"{id}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">\
             <rect class=\"{id}\" width=\"8\" height=\"8\"/>{strokes}</pattern>\n",
            id = self.id(),
        )
    }
}

/// Styles and patterns, for the head of the document.
pub(super) fn style() -> String {
    let fills = all();
    let rules = |colour: fn(&Fill) -> &'static str| -> String {
        fills.iter().map(|fill| format!(".{}{{fill:{}}}", fill.id(), colour(fill))).collect()
    };
    let patterns: String = fills.iter().map(Fill::pattern).collect();
    format!(
        "<style>{SHAPE}{LIGHT}{light}@media (prefers-color-scheme:dark){{{DARK}{dark}}}</style>\n<defs>\n{patterns}</defs>\n",
        light = rules(|fill| fill.light),
        dark = rules(|fill| fill.dark),
    )
}

const SHAPE: &str = concat!(
    "text{font-family:ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;",
    "font-variant-numeric:tabular-nums}",
    ".title{font-size:22px;font-weight:650;letter-spacing:-.01em}",
    ".part{font-size:16px;font-weight:650}",
    ".about{font-size:13px}.muted{font-size:12px}.small{font-size:12px}",
    ".holds,.fails{font-size:12px;font-weight:650}",
    ".heading{font-size:12.5px;font-weight:650}.tick{font-size:11px}.date{font-size:11px;font-weight:650}",
    ".end{text-anchor:end}.middle{text-anchor:middle}",
    ".name{font-size:11.5px;font-weight:650;paint-order:stroke;stroke-width:3.5px;stroke-linejoin:round;text-anchor:middle}",
    ".grid{stroke-width:1;fill:none;shape-rendering:crispEdges}.day{stroke-width:1;fill:none;shape-rendering:crispEdges}",
    ".base{stroke-width:1;fill:none;shape-rendering:crispEdges}",
    ".ink{fill:none;stroke-width:1.1}.dots{stroke-width:2.2;stroke-linecap:round}",
    ".edge{fill:none;stroke-width:1;stroke-linejoin:round}.sent{fill:none;stroke-width:1.7;stroke-linejoin:round}",
    ".box{fill:none;stroke-width:1}",
);

const LIGHT: &str = concat!(
    ".paper{fill:#fff}text{fill:#1b2430}.muted,.tick{fill:#5b6775}.about{fill:#35414e}",
    ".holds{fill:#1f7a46}.fails{fill:#b3202f}.grid{stroke:#e7eaef}.day{stroke:#c9d0d9}.base{stroke:#9aa5b1}",
    ".ink{stroke:#fff;stroke-opacity:.42}.edge{stroke:#fff;stroke-opacity:.7}.sent{stroke:#12395f}",
    ".box{stroke:#000;stroke-opacity:.14}.name{stroke:#fff;stroke-opacity:.85}",
);

const DARK: &str = concat!(
    ".paper{fill:#10151b}text{fill:#e6ebf1}.muted,.tick{fill:#97a4b2}.about{fill:#c2ccd6}",
    ".holds{fill:#6fcf97}.fails{fill:#ff8b94}.grid{stroke:#1f2831}.day{stroke:#36424e}.base{stroke:#5d6a77}",
    ".ink{stroke:#0b0f14;stroke-opacity:.38}.edge{stroke:#10151b;stroke-opacity:.7}.sent{stroke:#9fd0ff}",
    ".box{stroke:#fff;stroke-opacity:.18}.name{stroke:#10151b;stroke-opacity:.85}",
);
