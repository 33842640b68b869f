//! Names of event types, and the patterns that routes, destinations and windows select them with.
//!
//! A name is segments joined by dots: `order.line.added`. A pattern is the same with `*` as a segment: at the end it
//! stands for the rest, one segment or more (`order.*`); elsewhere for exactly one (`*.created`). `*` alone matches
//! every name. A pattern without `*` matches the one name that it spells.
//!
//! Where several patterns match a name, the most specific wins: [`Pattern::by_specificity`] has the rule. Which
//! source an event came from, and what a match is good for, is left to those who ask.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::invalid::Invalid;

/// The longest name or pattern, in characters (all of them ASCII).
const MAX_LENGTH: usize = 128;
/// What a name is made of, in the words of an error.
const NAME_RULE: &str = "1 to 128 characters: segments of A-Z, a-z, 0-9, _ and -, joined by dots";
/// What a pattern is made of, in the words of an error.
const PATTERN_RULE: &str =
    "1 to 128 characters: segments of A-Z, a-z, 0-9, _ and -, or a lone *, joined by dots";

/// The name of an event type, checked. Clones share one text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventType(Arc<str>);

impl EventType {
    /// Checks a name. The fault has no field yet: the caller names it with [`Invalid::under`].
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if is_well_formed(text, is_name_segment) {
            Ok(Self(text.into()))
        } else {
            Err(refusal(text, NAME_RULE))
        }
    }
    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl fmt::Debug for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// A selection of event types, checked. Clones share one text; two patterns are equal if they are spelt alike.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Pattern(Arc<str>);

impl Pattern {
    /// Checks a pattern. The fault has no field yet: the caller names it with [`Invalid::under`].
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let fine = is_well_formed(text, |segment| segment == "*" || is_name_segment(segment));
        if fine { Ok(Self(text.into())) } else { Err(refusal(text, PATTERN_RULE)) }
    }
    /// `*`, which matches every name.
    pub fn any() -> Self {
        Self("*".into())
    }
    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// Whether it spells one name, without any `*`.
    pub fn is_name(&self) -> bool {
        !self.0.contains('*')
    }
    /// Whether `event_type` is among the names that it stands for.
    pub fn matches(&self, event_type: &EventType) -> bool {
        holds(Segments(Some(&self.0)), Segments(Some(&event_type.0)))
    }

    /// Compares how narrowly two patterns select; the greater is the more specific.
    ///
    /// Segment by segment from the left, the first difference decides: a written segment is more specific than a
    /// `*` for one segment, and that more than a `*` for the rest. So a name beats every pattern that matches it, a
    /// pattern beats every wider one, and of `order.*` and `*.created` the first wins. Two different patterns that
    /// match one name are never equal under this rule. Those that have no name in common may be.
    pub fn by_specificity(&self, other: &Self) -> Ordering {
        let rank = |segment| match segment {
            Segment::Rest => 0,
            Segment::One => 1,
            Segment::Written(_) => 2,
        };
        Segments(Some(&self.0)).map(rank).cmp(Segments(Some(&other.0)).map(rank))
    }

    /// Whether every name that `other` matches is matched by this one, too.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        holds(Segments(Some(&self.0)), Segments(Some(&other.0)))
    }

    /// The pattern of the names that both match; `None` where there are none. The language of patterns is closed under
    /// this. The result may be longer than a pattern that a user may write.
    pub(crate) fn meet(&self, other: &Self) -> Option<Self> {
        let (mut ours, mut theirs) = (Segments(Some(&self.0)), Segments(Some(&other.0)));
        let mut met: Vec<&str> = Vec::new();
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => break,
                (None, Some(_)) | (Some(_), None) => return None,
                (Some(Segment::Rest), Some(narrower)) => {
                    met.push(narrower.as_str());
                    met.extend(theirs.0);
                    break;
                }
                (Some(narrower), Some(Segment::Rest)) => {
                    met.push(narrower.as_str());
                    met.extend(ours.0);
                    break;
                }
                (Some(Segment::One), Some(one)) | (Some(one), Some(Segment::One)) => met.push(one.as_str()),
                (Some(Segment::Written(a)), Some(Segment::Written(b))) if a == b => met.push(a),
                (Some(Segment::Written(_)), Some(Segment::Written(_))) => return None,
            }
        }
        Some(Self(met.join(".").into()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// A list of patterns that somebody wrote: any of them may match.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Patterns(Box<[Pattern]>);

impl Patterns {
    /// The longest list, so that the cost of one match is bounded.
    pub const MAX: usize = 100;

    /// Checks a list. The fault's field is the place in the list, `[3]`, or empty where the list is too long: the
    /// caller names the list with [`Invalid::under`].
    pub fn parse<S: AsRef<str>>(texts: &[S]) -> Result<Self, Invalid> {
        if texts.len() > Self::MAX {
            let allowed = format!("at most {} patterns", Self::MAX);
            return Err(Invalid::new("", format_args!("{} patterns", texts.len()), allowed));
        }
        let parsed: Result<_, _> = texts
            .iter()
            .enumerate()
            .map(|(i, text)| Pattern::parse(text.as_ref()).map_err(|e| e.at(i)))
            .collect();
        Ok(Self(parsed?))
    }
    /// Whether the list is empty. What an empty list means is for its owner to say: it matches nothing here.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The patterns, in the order in which they were written.
    pub fn iter(&self) -> std::slice::Iter<'_, Pattern> {
        self.0.iter()
    }
    /// Whether one of them matches.
    pub fn any_match(&self, event_type: &EventType) -> bool {
        self.0.iter().any(|pattern| pattern.matches(event_type))
    }
    /// The patterns as text, as they were written.
    pub fn to_strings(&self) -> Vec<String> {
        self.0.iter().map(Pattern::to_string).collect()
    }
}

impl<'a> IntoIterator for &'a Patterns {
    type Item = &'a Pattern;
    type IntoIter = std::slice::Iter<'a, Pattern>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One segment of a pattern; of a name, all are written.
enum Segment<'a> {
    Written(&'a str),
    /// `*` before the end: exactly one segment.
    One,
    /// `*` at the end: one segment or more.
    Rest,
}

impl<'a> Segment<'a> {
    fn as_str(&self) -> &'a str {
        match self {
            Segment::Written(text) => text,
            Segment::One | Segment::Rest => "*",
        }
    }
}

/// The segments of a name or pattern; holds the text that is still to come.
struct Segments<'a>(Option<&'a str>);

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;
    fn next(&mut self) -> Option<Segment<'a>> {
        let text = self.0.take()?;
        // Segments are a few bytes long: a plain scan beats the general search for a character.
        let Some(dot) = text.bytes().position(|byte| byte == b'.') else {
            return Some(if text == "*" { Segment::Rest } else { Segment::Written(text) });
        };
        let segment = &text[..dot];
        self.0 = Some(&text[dot + 1..]);
        Some(if segment == "*" { Segment::One } else { Segment::Written(segment) })
    }
}

/// Whether all that `narrow` stands for, a name or a pattern, is among what `wide` stands for.
fn holds(mut wide: Segments<'_>, mut narrow: Segments<'_>) -> bool {
    loop {
        match (wide.next(), narrow.next()) {
            (None, None) => return true,
            (Some(Segment::Rest), Some(_)) => return true,
            (Some(Segment::One), Some(Segment::Written(_) | Segment::One)) => {}
            (Some(Segment::Written(a)), Some(Segment::Written(b))) if a == b => {}
            _ => return false,
        }
    }
}

fn is_well_formed(text: &str, segment: impl Fn(&str) -> bool) -> bool {
    (1..=MAX_LENGTH).contains(&text.len()) && text.split('.').all(segment)
}

fn is_name_segment(segment: &str) -> bool {
    !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

fn refusal(text: &str, rule: &str) -> Invalid {
    if text.is_empty() { Invalid::missing("", rule) } else { Invalid::new("", text, rule) }
}

#[cfg(test)]
mod tests;
