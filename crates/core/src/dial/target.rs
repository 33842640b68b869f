//! A destination's URL, read and checked: what is needed to connect, and to name it in a request.

use std::fmt;
use std::net::IpAddr;

use url::{Position, Url};

use crate::invalid::Invalid;

#[cfg(test)]
mod tests;

/// The longest URL, in characters: what browsers and proxies agree on.
const MAX_LENGTH: usize = 2_048;

/// Who is to be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A name, in lower case and ASCII (IDN names as `xn--…`), to be resolved for each connection.
    Name(String),
    /// An address, however it was spelt: `0x7f.1` and `2130706433` are 127.0.0.1.
    Address(IpAddr),
}

impl Host {
    /// Whether it names this machine, by the name that no name server is asked for (RFC 6761).
    pub fn is_localhost(&self) -> bool {
        let Self::Name(name) = self else { return false };
        let name = name.strip_suffix('.').unwrap_or(name);
        name == "localhost" || name.ends_with(".localhost")
    }
}

/// A destination's URL, checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    url: String,
    https: bool,
    host: Host,
    port: u16,
    authority: String,
    path_at: usize,
}

impl Target {
    /// Reads a URL: http or https (https alone with `https_only`), at most 2,048 characters, a host, and no user
    /// info. A fragment is refused, since it would never be sent; and so are blanks, control characters,
    /// backslashes and slashes too many or too few, which URL parsers drop, turn or add without a word.
    pub fn parse(url: &str, https_only: bool) -> Result<Self, Invalid> {
        let refuse = |allowed: &str| Err(Invalid::new("url", masked(url), allowed));
        if url.chars().nth(MAX_LENGTH).is_some() {
            return refuse("at most 2048 characters");
        }
        if url.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
            return refuse("a URL without blanks, control characters and backslashes");
        }
        let Some((parsed, authority)) = Url::parse(url).ok().zip(authority(url)) else {
            return refuse("an absolute URL such as https://example.com/hooks");
        };
        // It is kept in this form, and read again.
        if parsed.as_str().len() > MAX_LENGTH {
            return refuse("at most 2048 characters, counted as they are sent (ü as %C3%BC)");
        }
        let https = match parsed.scheme() {
            "https" => true,
            "http" if !https_only => false,
            "http" => return refuse("a URL that begins with https://"),
            _ => return refuse("a URL that begins with https:// or http://"),
        };
        if authority.contains('@') {
            return refuse("a URL without user info; put credentials into auth_config");
        }
        if parsed.fragment().is_some() {
            return refuse("a URL without a fragment (#…): it would never be sent");
        }
        let host = match parsed.host() {
            Some(url::Host::Domain(name)) => Host::Name(name.to_owned()),
            Some(url::Host::Ipv4(address)) => Host::Address(address.into()),
            Some(url::Host::Ipv6(address)) => Host::Address(address.into()),
            None => return refuse("a URL with a host"),
        };
        let Some(port) = parsed.port_or_known_default().filter(|port| *port != 0) else {
            return refuse("a port from 1 to 65535");
        };
        Ok(Self {
            authority: parsed[Position::BeforeHost..Position::AfterPort].to_owned(),
            path_at: parsed[..Position::BeforePath].len(),
            url: parsed.into(),
            https,
            host,
            port,
        })
    }

    /// The URL in its normal form.
    pub fn url(&self) -> &str {
        &self.url
    }
    /// Whether the connection is encrypted.
    pub fn is_https(&self) -> bool {
        self.https
    }
    /// Who is to be reached.
    pub fn host(&self) -> &Host {
        &self.host
    }
    /// The address, if the URL names one: it can be judged when it is written, before anything is resolved.
    pub fn literal(&self) -> Option<IpAddr> {
        match self.host {
            Host::Address(address) => Some(address),
            Host::Name(_) => None,
        }
    }
    /// The port, given or by the scheme.
    pub fn port(&self) -> u16 {
        self.port
    }
    /// Host and port as the `Host` header has them: the port only where it is not the scheme's own.
    pub fn authority(&self) -> &str {
        &self.authority
    }
    /// Path and query as the request line has them; at least `/`.
    pub fn path_and_query(&self) -> &str {
        &self.url[self.path_at..]
    }
}

/// Path and query often carry a token, so they are left out.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({}://{}/…)", if self.https { "https" } else { "http" }, self.authority)
    }
}

/// What stands between the two slashes and the path. Parsers also take fewer slashes, or more, and find a host in the path.
fn authority(url: &str) -> Option<&str> {
    let (_scheme, rest) = url.split_once(':')?;
    rest.strip_prefix("//")?.split(['/', '?', '#']).next().filter(|authority| !authority.is_empty())
}

/// What an error may quote of a refused URL: up to its query, and nothing where credentials may stand.
fn masked(url: &str) -> &str {
    let shown = url.split(['?', '#']).next().unwrap_or_default();
    if shown.contains('@') { "(not shown)" } else { shown }
}
