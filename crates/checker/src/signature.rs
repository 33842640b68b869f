//! Standard Webhooks signatures, verified as a receiver would: `v1,` and the HMAC-SHA256 of `id.timestamp.body`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The key in a `whsec_…`.
pub(crate) fn key(secret: &str) -> Option<Vec<u8>> {
    STANDARD.decode(secret.strip_prefix("whsec_").unwrap_or(secret)).ok().filter(|key| !key.is_empty())
}

/// Whether one of the signatures of the header was made with `key`.
pub(crate) fn is_signed_with(key: &[u8], id: &str, timestamp: i64, body: &[u8], header: &str) -> bool {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return false };
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    let right = mac.finalize().into_bytes();
    let ours = header.split(' ').filter_map(|one| one.strip_prefix("v1,"));
    ours.filter_map(|text| STANDARD.decode(text).ok()).any(|bytes| bytes == right.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vector_verifies_and_its_neighbours_do_not() {
        let key = key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let (id, at, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        let right = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert!(is_signed_with(&key, id, at, body, right));
        assert!(is_signed_with(&key, id, at, body, &format!("v1,AAAA {right}")));
        assert!(!is_signed_with(&key, id, at + 1, body, right));
        assert!(!is_signed_with(&key, id, at, br#"{"test": 2432232315}"#, right));
        for header in ["", "v1,", "v1a,AAAA", "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="] {
            assert!(!is_signed_with(&key, id, at, body, header), "{header:?}");
        }
    }
}
