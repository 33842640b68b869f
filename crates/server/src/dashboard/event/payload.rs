//! What is sent: laid out, as it came in, and to copy.

use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::wire::{Event, Payload};
use crate::dashboard::words;

/// Above this a payload is not laid out anew, only shown.
const MAX_LAID_OUT: usize = 512 * 1024;

/// The payload. It is text, whatever stands in it.
pub(super) fn draw(event: &Event, payload: &Payload) -> Markup {
    let raw = payload.payload.get();
    let text = match serde_json::from_str::<Value>(raw) {
        // What is no JSON stands as a string in the answer.
        Ok(Value::String(text)) if !event.content_type.contains("json") => text,
        _ => raw.to_owned(),
    };
    let pretty = laid_out(raw).filter(|_| event.content_type.contains("json"));
    html! {
        p.under { (event.content_type) " · " (words::bytes(event.payload_size)) }
        @if let Some(pretty) = &pretty { pre.payload data-copies { (pretty) } }
        details open[pretty.is_none()] {
            summary { "As it came in, byte for byte" } pre.payload data-copies { (text) }
        }
    }
}

/// Laid out for reading: blanks and line ends between the parts, and every part as it came in, long numbers and double keys too.
fn laid_out(raw: &str) -> Option<String> {
    if raw.len() > MAX_LAID_OUT || !raw.starts_with(['{', '[']) {
        return None;
    }
    let mut text = String::with_capacity(raw.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut letters = raw.chars().filter(|letter| *letter != '\r').peekable();
    while let Some(letter) = letters.next() {
        if in_string {
            text.push(letter);
            in_string = escaped || letter != '"';
            escaped = letter == '\\' && !escaped;
            continue;
        }
        match letter {
            '"' => {
                in_string = true;
                text.push(letter);
            }
            '{' | '[' => {
                text.push(letter);
                while letters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                if let Some(end) = letters.next_if(|next| matches!(next, '}' | ']')) {
                    text.push(end);
                } else {
                    depth += 1;
                    new_line(&mut text, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut text, depth);
                text.push(letter);
            }
            ',' => {
                text.push(letter);
                new_line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            letter if letter.is_ascii_whitespace() => {}
            letter => text.push(letter),
        }
    }
    Some(text)
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth.min(40)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laying_out_changes_blanks_alone() {
        let raw = r#"{"a":[1.000000000000000000001,{},[ ]],"a":"x\"{,:\\","b":{"c":null}}"#;
        let pretty = laid_out(raw).unwrap();
        let expected = "{\n  \"a\": [\n    1.000000000000000000001,\n    {},\n    []\n  ],\n  \"a\": \"x\\\"{,:\\\\\",\n  \"b\": {\n    \"c\": null\n  }\n}";
        assert_eq!(pretty, expected);
        assert!(laid_out("7").is_none());
    }
}
