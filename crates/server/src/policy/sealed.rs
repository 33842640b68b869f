//! A destination's secrets: what signs its requests, and what opens its door. Encrypted at rest, never shown again.

use std::fmt;

use serde::{Deserialize, Serialize};
use tidegate_core::sign::Secret;
use tidegate_core::time::{Millis, Timestamp};
use utoipa::ToSchema;

/// Signatures that one request may carry: the current secret and two that are being phased out.
pub(crate) const MAX_LIVE_SECRETS: usize = 3;

/// All secrets of one destination, as they are encrypted.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DestinationSecrets {
    /// What its requests are signed with, the newest first.
    pub(crate) signing: Vec<SigningSecret>,
    /// Its `auth_config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) auth: Option<AuthConfig>,
}

/// One signing secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SigningSecret {
    /// `whsec_…` or `whsk_…`.
    pub(crate) secret: String,
    /// Until when it still signs, in milliseconds since 1970; `None`: it is the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) valid_until: Option<i64>,
}

impl SigningSecret {
    /// Until when it still signs; `None`: it is the current one.
    pub(crate) fn ends_at(&self) -> Option<Timestamp> {
        self.valid_until.map(Timestamp::from_millis)
    }
    /// Whether it signs at `now`.
    pub(crate) fn is_live(&self, now: Timestamp) -> bool {
        self.ends_at().is_none_or(|end| now < end)
    }
}

/// How requests authenticate themselves: `bearer` takes `token`, `header` takes `name` and `value`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuthConfig {
    /// Which way.
    #[serde(rename = "type")]
    pub(crate) kind: AuthKind,
    /// Of `bearer`: sent as `authorization: Bearer …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 4000, write_only)]
    pub(crate) token: Option<String>,
    /// Of `header`: its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub(crate) name: Option<String>,
    /// Of `header`: its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 4096, write_only)]
    pub(crate) value: Option<String>,
}

/// Ways of authenticating.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = AuthType)]
pub(crate) enum AuthKind {
    /// `authorization: Bearer …`.
    Bearer,
    /// A header of one's own.
    Header,
}

/// Says how many there are and nothing more.
impl fmt::Debug for DestinationSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} to sign with, auth: {})", self.signing.len(), self.auth.is_some())
    }
}

/// Says of which kind it is and nothing more.
impl fmt::Debug for AuthConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuthConfig({:?})", self.kind)
    }
}

impl DestinationSecrets {
    /// Reads what was decrypted. `None`: it is not ours.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
    /// What is to be encrypted.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers are JSON")
    }

    /// Signs with `secret` alone from now on.
    pub(crate) fn replace(&mut self, secret: &Secret) {
        self.signing = vec![SigningSecret { secret: secret.reveal(), valid_until: None }];
    }

    /// Signs with `secret` from now on, and for `overlap` with those before it as well, so that receivers can change over.
    /// Those that ended are dropped, and the oldest where there would be too many. Says until when the one before is
    /// valid.
    pub(crate) fn rotate(&mut self, now: Timestamp, secret: &Secret, overlap: Millis) -> Option<Timestamp> {
        let end = now + overlap;
        for older in &mut self.signing {
            older.valid_until = Some(older.valid_until.map_or(end.as_millis(), |at| at.min(end.as_millis())));
        }
        self.signing.insert(0, SigningSecret { secret: secret.reveal(), valid_until: None });
        self.signing.retain(|secret| secret.is_live(now));
        self.signing.truncate(MAX_LIVE_SECRETS);
        self.signing.get(1).and_then(SigningSecret::ends_at)
    }

    /// The public half of the current secret, `whpk_…`, where it has one.
    pub(crate) fn public_key(&self) -> Option<String> {
        self.signing.first().and_then(|current| Secret::parse(&current.secret).ok()?.public_key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn a_rotation_keeps_the_old_secret_for_the_overlap_and_three_at_most() {
        let secret = |n: u8| Secret::generate([n; 32]);
        let mut secrets = DestinationSecrets::default();
        secrets.replace(&secret(1));
        let day = Millis::days(1);
        assert_eq!(secrets.rotate(at(0), &secret(2), day), Some(at(86_400)));
        assert_eq!(secrets.rotate(at(10), &secret(3), day), Some(at(86_410)));
        assert_eq!(secrets.rotate(at(20), &secret(4), day), Some(at(86_420)));
        assert_eq!(secrets.signing.len(), MAX_LIVE_SECRETS, "the oldest is gone");
        let live = |now| secrets.signing.iter().filter(|s| s.is_live(now)).count();
        assert_eq!((live(at(30)), live(at(86_410)), live(at(86_420))), (3, 2, 1));
    }

    #[test]
    fn without_an_overlap_the_old_secret_ends_at_once_and_a_shorter_overlap_shortens() {
        let mut secrets = DestinationSecrets::default();
        secrets.replace(&Secret::generate([1; 32]));
        secrets.rotate(at(0), &Secret::generate([2; 32]), Millis::days(1));
        assert_eq!(secrets.rotate(at(1), &Secret::generate([3; 32]), Millis::ZERO), None);
        assert_eq!(secrets.signing.len(), 1);
    }

    #[test]
    fn no_secret_shows_in_debug_output() {
        let mut secrets = DestinationSecrets::default();
        secrets.replace(&Secret::generate([7; 32]));
        secrets.auth = Some(AuthConfig {
            kind: AuthKind::Bearer,
            token: Some("hidden".to_owned()),
            name: None,
            value: None,
        });
        let shown = format!("{secrets:?} {:?}", secrets.auth);
        assert!(!shown.contains("hidden") && !shown.contains("whsec_"), "{shown}");
        assert_eq!(DestinationSecrets::from_bytes(&secrets.to_bytes()), Some(secrets));
    }
}
