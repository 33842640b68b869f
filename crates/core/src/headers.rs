//! The headers that a customer adds to each request: few, well formed, and none that is ours or the connection's.
//!
//! A header can do more than carry a token: it can end the head early, change how a proxy reads the request, or open
//! a cloud's metadata service. So names go through a list, values through a character check, when they are written
//! and once more when they are built into a request.

use std::fmt;

use crate::invalid::Invalid;

#[cfg(test)]
mod tests;

/// Headers a destination may have: more than any receiver was seen to need.
const MAX_HEADERS: usize = 32;
/// The longest name, in characters.
const MAX_NAME: usize = 256;
/// The longest value, in bytes: long enough for a signed token.
const MAX_VALUE: usize = 4_096;
/// The object that holds them, in errors.
const FIELD: &str = "custom_headers";

/// Names that are refused as they stand.
const REFUSED: [&str; 15] = [
    "accept-encoding", // ours: answers are never decompressed
    "alt-used",
    "connection",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent", // ours: receivers know us by it
    "via",
];
/// Beginnings that are refused: ours, the body's, the proxies', and what opens the metadata service of a cloud.
const REFUSED_PREFIXES: [&str; 10] = [
    "webhook-",
    "tidegate-",
    "content-",
    "proxy-",
    "x-forwarded-",
    "metadata",
    "x-aws-ec2-",
    "x-google-",
    "x-amz-",
    "x-azure-",
];

/// Headers to send besides ours, checked. Names are in lower case.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CustomHeaders(Vec<(String, String)>);

impl CustomHeaders {
    /// Checks names and values. A fault names the header (`custom_headers.NAME`) and never quotes a value, which may
    /// be a credential.
    pub fn parse<N: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, Invalid> {
        let mut checked: Vec<(String, String)> = Vec::new();
        for (name, value) in pairs {
            let (written, value) = (name.as_ref(), value.as_ref());
            let name = written.to_ascii_lowercase();
            check_name(written, &name)?;
            check_value(value).map_err(|rule| refusal(written, "(not shown)", rule))?;
            if checked.iter().any(|(known, _)| *known == name) {
                return Err(refusal(written, written, "each name once, whatever its case"));
            }
            if checked.len() == MAX_HEADERS {
                return Err(Invalid::new(
                    FIELD,
                    format_args!("more than {MAX_HEADERS}"),
                    "at most 32 headers",
                ));
            }
            checked.push((name, value.to_owned()));
        }
        Ok(Self(checked))
    }

    /// Names and values, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// The names alone: a value may be a credential.
impl fmt::Debug for CustomHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

/// Checks an event's `content_type`: a media type that can stand in a header.
pub fn check_content_type(text: &str) -> Result<(), Invalid> {
    let (kind, rest) = text.split_once('/').unwrap_or_default();
    let plain = text.len() <= MAX_NAME && text.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    if plain && !kind.is_empty() && kind.bytes().all(is_token) && rest.bytes().next().is_some_and(is_token) {
        return Ok(());
    }
    Err(Invalid::new("content_type", text, "a media type of at most 256 characters, such as text/csv"))
}

fn check_name(written: &str, name: &str) -> Result<(), Invalid> {
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_token) {
        let rule = "a header name: 1 to 256 letters, digits and !#$%&'*+-.^_`|~";
        return Err(refusal(written, written, rule));
    }
    if REFUSED.contains(&name) || REFUSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return Err(refusal(
            written,
            written,
            "a name that is not Tidegate's, the connection's or a proxy's",
        ));
    }
    Ok(())
}

/// Visible characters with single blanks and tabs among them, but not at the ends, where they would be lost.
fn check_value(value: &str) -> Result<(), &'static str> {
    if value.len() > MAX_VALUE {
        return Err("at most 4096 bytes");
    }
    if value.trim_matches([' ', '\t']).len() != value.len() {
        return Err("no blank at the beginning or end");
    }
    match value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f)) {
        true => Ok(()),
        false => Err("no control characters"),
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The name is the customer's own text, so the path shows no more of it than a name may have.
fn refusal(name: &str, value: &str, rule: &str) -> Invalid {
    let shown: String = name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect();
    Invalid::new(shown, value, rule).under(FIELD)
}
