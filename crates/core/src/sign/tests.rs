use ed25519_dalek::{Signature, VerifyingKey};
use proptest::prelude::*;

use super::*;

const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const BODY: &[u8] = br#"{"test": 2432232314}"#;
const SIGNED: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

#[test]
fn the_published_example_comes_out_with_and_without_the_prefix() {
    for text in [KEY, &KEY[6..]] {
        let secret = Secret::parse(text).unwrap();
        assert_eq!(signature([&secret], ID, 1_614_265_330, BODY), SIGNED);
    }
}

#[test]
fn one_header_carries_a_signature_for_each_secret_in_order() {
    let (old, new) = (Secret::parse(KEY).unwrap(), Secret::generate([7; 32]));
    let header = signature(&[new.clone(), old], ID, 1_614_265_330, BODY);
    let [first, second] = header.split(' ').collect::<Vec<_>>()[..] else { panic!("{header}") };
    assert_eq!(first, signature([&new], ID, 1_614_265_330, BODY));
    assert_eq!(second, SIGNED);
    assert_eq!(signature([], ID, 0, BODY), "");
}

#[test]
fn an_ed25519_signature_holds_under_the_public_key() {
    let secret = Secret::generate_ed25519([9; 32]);
    let header = signature([&secret], ID, 1_614_265_330, BODY);
    let bytes = STANDARD.decode(header.strip_prefix("v1a,").unwrap()).unwrap();
    let public = STANDARD.decode(secret.public_key().unwrap().strip_prefix("whpk_").unwrap()).unwrap();
    let key = VerifyingKey::from_bytes(public.as_slice().try_into().unwrap()).unwrap();
    let signed = [ID.as_bytes(), b".1614265330.", BODY].concat();
    key.verify_strict(&signed, &Signature::from_slice(&bytes).unwrap()).unwrap();
}

#[test]
fn an_ed25519_key_is_read_as_seed_or_as_pair() {
    let (seed, other) = ([9; 32], SigningKey::from_bytes(&[8; 32]));
    let short = Secret::parse(&format!("whsk_{}", STANDARD.encode(seed))).unwrap();
    assert_eq!(Secret::parse(&short.reveal()).unwrap().reveal(), short.reveal());
    assert_eq!(short.public_key(), Secret::generate_ed25519(seed).public_key());
    let mismatched = [seed, *other.verifying_key().as_bytes()].concat();
    assert!(Secret::parse(&format!("whsk_{}", STANDARD.encode(mismatched))).is_err());
}

#[test]
fn a_secret_of_another_length_or_alphabet_is_refused_and_not_quoted() {
    let of = |length| format!("whsec_{}", STANDARD.encode(vec![1; length]));
    assert!(Secret::parse(&of(24)).is_ok() && Secret::parse(&of(64)).is_ok());
    assert!(Secret::parse(of(32).trim_end_matches('=')).is_ok(), "the padding may be missing");
    for text in
        ["", "whsec_", &of(23), &of(65), "whsec_not base64!", "whsk_AAAA", &of(24).replace("whsec_", "whpk_")]
    {
        let fault = Secret::parse(text).unwrap_err().to_string();
        assert!(fault.starts_with("`signing_secret` is (not shown)"), "{fault}");
    }
}

#[test]
fn debug_text_tells_the_kind_and_nothing_more() {
    assert_eq!(format!("{:?}", Secret::parse(KEY).unwrap()), "Secret(shared)");
    assert_eq!(format!("{:?}", Secret::generate_ed25519([1; 32])), "Secret(ed25519)");
}

proptest! {
    #[test]
    fn reading_gives_back_what_was_revealed(random: [u8; 32], body: Vec<u8>, at: i64) {
        for secret in [Secret::generate(random), Secret::generate_ed25519(random)] {
            let again = Secret::parse(&secret.reveal()).unwrap();
            prop_assert_eq!(signature([&again], "evt_1", at, &body), signature([&secret], "evt_1", at, &body));
        }
    }

    #[test]
    fn a_changed_byte_changes_the_signature(random: [u8; 32], mut body in prop::collection::vec(any::<u8>(), 1..99)) {
        let secret = Secret::generate(random);
        let before = signature([&secret], "evt_1", 1, &body);
        body[0] ^= 1;
        prop_assert_ne!(signature([&secret], "evt_1", 1, &body), before);
    }
}
