//! Signatures by Standard Webhooks 1.0, so that a receiver knows that we sent it, and when.
//!
//! Signed are `id.timestamp.body`, with `v1` (HMAC-SHA256 under a secret that both sides know) or `v1a` (Ed25519: the
//! receiver needs the public key only). While a secret is being changed the header carries one signature for each.
//! Which secrets are in force, and how they are kept, is decided elsewhere; random bytes are handed in.

use std::fmt;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use ed25519_dalek::{Signer as _, SigningKey};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::invalid::Invalid;

#[cfg(test)]
mod tests;

const SHARED_PREFIX: &str = "whsec_";
const PRIVATE_PREFIX: &str = "whsk_";
const PUBLIC_PREFIX: &str = "whpk_";
/// Bytes of a shared secret: below it could be guessed, above it HMAC would only hash it down.
const SHARED_LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;
const RULE: &str =
    "whsec_ and base64 of 24 to 64 bytes, or whsk_ and base64 of an Ed25519 key of 32 or 64 bytes";

/// Reads base64 with or without its padding: both are in use for secrets.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A key to sign with, made ready when it is read, so that signing decodes and derives nothing.
#[derive(Clone)]
pub struct Secret(Key);

#[derive(Clone)]
enum Key {
    Shared { bytes: Vec<u8>, keyed: Hmac<Sha256> },
    Private(Box<SigningKey>),
}

impl Secret {
    /// Reads `whsec_…` or `whsk_…`. Without a prefix it is base64 of a shared secret, as the published libraries read
    /// it. The fault has the field `signing_secret` and never quotes the value.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let refused = || Invalid::new("signing_secret", "(not shown)", RULE);
        let decode = |text: &str| LENIENT.decode(text).map_err(|_| refused());
        match text.strip_prefix(PRIVATE_PREFIX) {
            Some(key) => Self::private(&decode(key)?).ok_or_else(refused),
            None => {
                Self::shared(decode(text.strip_prefix(SHARED_PREFIX).unwrap_or(text))?).ok_or_else(refused)
            }
        }
    }
    /// A new shared secret out of 32 random bytes.
    pub fn generate(random: [u8; 32]) -> Self {
        Self::shared(random.into()).expect("32 lies between 24 and 64")
    }
    /// A new Ed25519 key out of 32 random bytes.
    pub fn generate_ed25519(random: [u8; 32]) -> Self {
        Self(Key::Private(Box::new(SigningKey::from_bytes(&random))))
    }

    fn shared(bytes: Vec<u8>) -> Option<Self> {
        if !SHARED_LENGTHS.contains(&bytes.len()) {
            return None;
        }
        let keyed = Hmac::new_from_slice(&bytes).ok()?;
        Some(Self(Key::Shared { bytes, keyed }))
    }

    /// 32 bytes are the seed; 64 the seed and the public key, which must belong together.
    fn private(bytes: &[u8]) -> Option<Self> {
        let key = match <[u8; 32]>::try_from(bytes) {
            Ok(seed) => SigningKey::from_bytes(&seed),
            Err(_) => SigningKey::from_keypair_bytes(bytes.try_into().ok()?).ok()?,
        };
        Some(Self(Key::Private(Box::new(key))))
    }

    /// The secret as text, to be encrypted and kept, or shown once. Never for a log.
    pub fn reveal(&self) -> String {
        match &self.0 {
            Key::Shared { bytes, .. } => format!("{SHARED_PREFIX}{}", STANDARD.encode(bytes)),
            Key::Private(key) => format!("{PRIVATE_PREFIX}{}", STANDARD.encode(key.to_keypair_bytes())),
        }
    }
    /// The public half, `whpk_…`, for receivers; `None` for a shared secret.
    pub fn public_key(&self) -> Option<String> {
        match &self.0 {
            Key::Shared { .. } => None,
            Key::Private(key) => {
                Some(format!("{PUBLIC_PREFIX}{}", STANDARD.encode(key.verifying_key().as_bytes())))
            }
        }
    }

    fn sign(&self, id: &str, timestamp: &str, body: &[u8], header: &mut String) {
        match &self.0 {
            Key::Shared { keyed, .. } => {
                let mut mac = keyed.clone();
                for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
                    mac.update(part);
                }
                header.push_str("v1,");
                STANDARD.encode_string(mac.finalize().into_bytes(), header);
            }
            Key::Private(key) => {
                let signed = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat();
                header.push_str("v1a,");
                STANDARD.encode_string(key.sign(&signed).to_bytes(), header);
            }
        }
    }
}

/// Says of which kind it is and nothing more.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Key::Shared { .. } => "Secret(shared)",
            Key::Private(_) => "Secret(ed25519)",
        })
    }
}

/// The value of `webhook-signature`: one signature for each secret, in their order, separated by spaces.
pub fn signature<'a>(
    secrets: impl IntoIterator<Item = &'a Secret>,
    id: &str,
    timestamp_seconds: i64,
    body: &[u8],
) -> String {
    let timestamp = timestamp_seconds.to_string();
    let mut header = String::with_capacity(64);
    for secret in secrets {
        if !header.is_empty() {
            header.push(' ');
        }
        secret.sign(id, &timestamp, body, &mut header);
    }
    header
}
