//! Signing secrets as people write them, and the header that comes of them.
//!
//! Laws: a secret that is read is kept and read again as the same; the header is plain text with one signature for each secret;
//! each verifies under its own key, by a verifier written down here, and neither under another key nor for another body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, VerifyingKey};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tidegate_core::sign::{Secret, signature};

use super::lines;

/// Input: two secrets, an id and a timestamp on a line each, then the body.
pub fn run(data: &[u8]) {
    let [first, second, id, timestamp, body] = lines(data);
    let (Ok(first), Ok(second), Ok(id)) = (str::from_utf8(first), str::from_utf8(second), str::from_utf8(id))
    else {
        return;
    };
    let timestamp =
        str::from_utf8(timestamp).ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default();
    let secrets: Vec<Secret> = [first, second].into_iter().filter_map(read).collect();
    let header = signature(&secrets, id, timestamp, body);
    assert!(header.bytes().all(|byte| (b' '..0x7f).contains(&byte)), "{header}");
    let parts: Vec<&str> = header.split(' ').filter(|part| !part.is_empty()).collect();
    assert_eq!(parts.len(), secrets.len());
    let signed = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
    let other = [&signed, b"!".as_slice()].concat();
    for (secret, part) in secrets.iter().zip(parts) {
        assert!(verifies(secret, part, &signed), "{header}");
        assert!(!verifies(secret, part, &other) && !verifies(secret, "v1,", &signed));
        assert!(!verifies(&Secret::generate(*b"a key that nobody else would use"), part, &signed));
    }
}

/// A secret, if it is one; then it can be revealed and read again.
fn read(text: &str) -> Option<Secret> {
    let fault = match Secret::parse(text) {
        Ok(secret) => {
            assert_eq!(Secret::parse(&secret.reveal()).expect("what we wrote").reveal(), secret.reveal());
            assert!(!format!("{secret:?}").contains(text), "nothing shows it");
            return Some(secret);
        }
        Err(fault) => fault.to_string(),
    };
    assert!(text.len() < 9 || !fault.contains(text), "a refusal does not quote it");
    None
}

/// As a receiver does it: with the secret it was given, or the public key.
fn verifies(secret: &Secret, part: &str, signed: &[u8]) -> bool {
    let Some((version, given)) = part.split_once(',') else { return false };
    let Ok(given) = STANDARD.decode(given) else { return false };
    match secret.public_key() {
        None if version == "v1" => {
            let key = STANDARD.decode(secret.reveal().trim_start_matches("whsec_")).expect("base64");
            let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key of any length");
            mac.update(signed);
            mac.verify_slice(&given).is_ok()
        }
        Some(public) if version == "v1a" => {
            let public = STANDARD.decode(public.trim_start_matches("whpk_")).expect("base64");
            let key =
                VerifyingKey::from_bytes(public.as_slice().try_into().expect("32 bytes")).expect("a key");
            Signature::from_slice(&given).is_ok_and(|signature| key.verify_strict(signed, &signature).is_ok())
        }
        _ => false,
    }
}
