//! A session: the key that somebody signed in with, sealed for their browser.
//!
//! The server keeps nothing of one that is good. The cookie holds the key under the installation's own key for secrets, so
//! every node on the database opens it, also after a restart; each page asks the API with that key, so a session ends with its
//! key, at once and everywhere. It also ends by itself.
//!
//! Signing out takes the cookie away, and the node that is told remembers until the session's own end that it is good no
//! longer ([`Ended`]), so that a copy of the cookie is worth nothing there. Other nodes, and this one after a restart, do not know:
//! whoever fears for a copy revokes the key.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use tidegate_core::time::{Millis, Timestamp};
use zeroize::Zeroizing;

use crate::secrets::Secrets;

/// The cookie.
const COOKIE_NAME: &str = "tidegate_session";
/// What a session is sealed for.
const PURPOSE: &str = "dashboard session";
/// A working day: whoever comes back the next morning signs in again.
pub(super) const LASTS: Millis = Millis::hours(12);

/// Sessions that are remembered as ended: each is some 60 bytes.
const MAX_ENDED: usize = 10_000;

/// Who looks.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Session {
    /// The API key.
    #[serde(serialize_with = "write_key", deserialize_with = "read_key")]
    pub(super) key: Zeroizing<String>,
    /// The account that an operator looks into, if it is another than the key's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) account: Option<String>,
    /// What each form must bring back. No other session has the same.
    csrf: String,
    /// When it ends, in milliseconds since 1970.
    ends_at: i64,
}

impl Session {
    /// A new one for this key. `random` is what its forms bring back.
    pub(super) fn new(key: &str, now: Timestamp, random: [u8; 16]) -> Self {
        Self {
            key: Zeroizing::new(key.to_owned()),
            account: None,
            csrf: URL_SAFE_NO_PAD.encode(random),
            ends_at: (now + LASTS).as_millis(),
        }
    }

    /// The session of a request, if it has one that is still good.
    pub(super) fn of(headers: &HeaderMap, secrets: &Secrets, now: Timestamp) -> Option<Self> {
        let sealed = URL_SAFE_NO_PAD.decode(cookie(headers, COOKIE_NAME)?).ok()?;
        let plain = secrets.open_for(PURPOSE, &sealed).ok()?;
        let session: Self = serde_json::from_slice(&plain).ok()?;
        (now.as_millis() < session.ends_at).then_some(session)
    }

    /// What forms carry in their hidden field.
    pub(super) fn csrf(&self) -> &str {
        &self.csrf
    }

    /// Whether a form brought it back.
    pub(super) fn sent(&self, brought: &str) -> bool {
        self.csrf.as_bytes().ct_eq(brought.as_bytes()).into()
    }

    /// The `Set-Cookie` that gives it to a browser; `secure` where that came over TLS.
    pub(super) fn cookie(&self, secrets: &Secrets, secure: bool) -> Option<String> {
        let plain = Zeroizing::new(serde_json::to_vec(self).ok()?);
        let sealed = URL_SAFE_NO_PAD.encode(secrets.seal_for(PURPOSE, &plain).ok()?);
        Some(set_cookie(&sealed, LASTS, secure))
    }
}

/// Sessions of which somebody signed out here, until they would have ended by themselves.
#[derive(Default)]
pub(super) struct Ended(Mutex<HashMap<String, i64>>);

impl Ended {
    /// Somebody signs out.
    pub(super) fn end(&self, session: &Session, now: Timestamp) {
        let mut ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.len() >= MAX_ENDED {
            ended.retain(|_, ends_at| now.as_millis() < *ends_at);
        }
        // Only who has a key can sign out, but may do so again and again: the one goes that would have ended first.
        if ended.len() >= MAX_ENDED
            && let Some(first) =
                ended.iter().min_by_key(|(_, ends_at)| **ends_at).map(|(name, _)| name.clone())
        {
            ended.remove(&first);
        }
        ended.insert(session.csrf.clone(), session.ends_at);
    }

    /// Whether somebody signed out of it.
    pub(super) fn has(&self, session: &Session) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&session.csrf)
    }
}

fn write_key<S: serde::Serializer>(key: &Zeroizing<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(key)
}

fn read_key<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Zeroizing<String>, D::Error> {
    String::deserialize(deserializer).map(Zeroizing::new)
}

/// The `Set-Cookie` that takes it away again.
pub(super) fn no_cookie(secure: bool) -> String {
    set_cookie("", Millis::ZERO, secure)
}

fn set_cookie(value: &str, lasts: Millis, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    let seconds = lasts.get() / 1_000;
    format!("{COOKIE_NAME}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}

/// A cookie by its name.
pub(super) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 32 bytes in base64.
    fn secrets(letter: &str) -> Secrets {
        Secrets::from_text(&format!("{}A=", letter.repeat(42)), "a test").unwrap()
    }

    fn headers(cookie: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let pair = cookie.split(';').next().unwrap();
        headers.insert(COOKIE, format!("other=1; {pair}").parse().unwrap());
        headers
    }

    #[test]
    fn a_session_opens_until_it_ends_and_under_its_own_key_only() {
        let (now, ours) = (Timestamp::from_millis(1_000), secrets("A"));
        let session = Session::new("tg_key", now, [7; 16]);
        let cookie = session.cookie(&ours, true).unwrap();
        assert!(cookie.contains("HttpOnly; SameSite=Lax; Secure") && !cookie.contains("tg_key"));
        let opened = Session::of(&headers(&cookie), &ours, now).unwrap();
        assert_eq!(*opened.key, "tg_key");
        assert!(opened.sent(session.csrf()) && !opened.sent("") && !opened.sent("x"));
        assert!(Session::of(&headers(&cookie), &ours, now + LASTS).is_none());
        assert!(Session::of(&headers(&cookie), &secrets("B"), now).is_none());
        let changed = cookie.replacen("tidegate_session=", "tidegate_session=AAAA", 1);
        assert!(Session::of(&headers(&changed), &ours, now).is_none());
        assert!(Session::of(&HeaderMap::new(), &ours, now).is_none());
    }

    #[test]
    fn a_session_that_was_left_is_remembered_until_its_own_end() {
        let (now, ended) = (Timestamp::from_millis(1_000), Ended::default());
        let number = |number: usize| {
            let mut random = [0; 16];
            random[..8].copy_from_slice(&number.to_le_bytes());
            random
        };
        let (one, other) = (Session::new("tg_key", now, number(1)), Session::new("tg_key", now, number(2)));
        ended.end(&one, now);
        assert!(ended.has(&one) && !ended.has(&other));
        let later = now + LASTS;
        for more in 3..3 + MAX_ENDED {
            ended.end(&Session::new("tg_key", later, number(more)), later);
        }
        assert!(!ended.has(&one), "it ends by itself");
        assert!(ended.0.lock().unwrap().len() <= MAX_ENDED);
    }
}
