//! Making, hashing and describing API keys.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Role;

/// How keys begin, so that scanners find them in places where they should not be.
pub(crate) const PREFIX: &str = "tg_";
/// What is shown of a key in lists: the prefix and a few characters.
const SHOWN: usize = 10;
/// A key that somebody brings along has at least so many characters behind the prefix.
const LEAST: usize = 32;
/// And at most so many.
const MOST: usize = 200;

/// What is stored of a key beside its hash.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KeyDocument {
    /// What its owner calls it.
    pub(crate) name: String,
    /// What it may do.
    pub(crate) role: Role,
    /// How it begins.
    pub(crate) prefix: String,
}

/// The hash that a key is kept and found by.
pub(crate) fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// A new key out of 32 random bytes.
pub(crate) fn make(random: [u8; 32]) -> String {
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random))
}

/// What may be shown of a key.
pub(crate) fn shown(key: &str) -> String {
    key.chars().take(SHOWN).collect()
}

/// Whether a key that somebody brings along is one: `tg_` and 32 to 200 URL-safe characters.
pub(crate) fn is_well_formed(key: &str) -> bool {
    let url_safe = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    key.strip_prefix(PREFIX)
        .is_some_and(|rest| (LEAST..=MOST).contains(&rest.len()) && rest.bytes().all(url_safe))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_has_43_url_safe_characters_behind_its_prefix() {
        let key = make([0xfb; 32]);
        assert_eq!(key.len(), 46);
        assert!(is_well_formed(&key) && shown(&key).len() == 10);
        for bad in [
            "",
            "tg_",
            "tg_short",
            "xx_0123456789012345678901234567890123456789",
            "tg_01234567890123456789012345678901/",
        ] {
            assert!(!is_well_formed(bad), "{bad}");
        }
    }
}
