use super::*;
use proptest::prelude::*;

fn read(url: &str) -> Target {
    Target::parse(url, false).unwrap_or_else(|fault| panic!("{fault}"))
}

#[test]
fn a_url_is_taken_apart_as_a_request_needs_it() {
    for (url, https, authority, port, path) in [
        ("https://example.com", true, "example.com", 443, "/"),
        ("HTTPS://Example.COM:443/Hook?A=b", true, "example.com", 443, "/Hook?A=b"),
        ("http://example.com:8080/a/../b?", false, "example.com:8080", 8080, "/b?"),
        ("http://example.com:80/", false, "example.com", 80, "/"),
        ("https://bücher.example/ü?q=ä", true, "xn--bcher-kva.example", 443, "/%C3%BC?q=%C3%A4"),
        ("http://[2606:4700::1]:81/x", false, "[2606:4700::1]:81", 81, "/x"),
        ("http://example.com./x", false, "example.com.", 80, "/x"),
    ] {
        let target = read(url);
        assert_eq!(
            (target.is_https(), target.authority(), target.port(), target.path_and_query()),
            (https, authority, port, path),
            "{url}"
        );
    }
}

#[test]
fn an_address_is_known_by_its_bits_in_every_spelling() {
    for (url, address) in [
        ("http://127.0.0.1/", Some("127.0.0.1")),
        ("http://2130706433/", Some("127.0.0.1")),
        ("http://0x7f.1/", Some("127.0.0.1")),
        ("http://0177.0.0.1/", Some("127.0.0.1")),
        ("http://127.1/", Some("127.0.0.1")),
        ("http://127.0.0.1./", Some("127.0.0.1")),
        ("http://0/", Some("0.0.0.0")),
        ("http://１２７.0.0.1/", Some("127.0.0.1")),
        ("http://127。0。0。1/", Some("127.0.0.1")),
        ("http://[::ffff:127.0.0.1]/", Some("::ffff:127.0.0.1")),
        ("http://[::127.0.0.1]/", Some("::127.0.0.1")),
        ("http://[0:0::1]/", Some("::1")),
        ("http://localhost/", None),
        ("http://127.0.0.1.nip.io/", None),
    ] {
        assert_eq!(read(url).literal(), address.map(|text| text.parse().unwrap()), "{url}");
    }
}

#[test]
fn what_cannot_be_sent_to_is_refused_with_the_field_named() {
    let long = format!("https://example.com/{}", "x".repeat(2_029));
    for url in [
        "",
        "example.com/hook",
        "//example.com/",
        "/hook",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "https://",
        "https:///",
        "https://user@example.com/",
        "https://user:pass@example.com/",
        "https://:pass@example.com/",
        "https://@example.com/",
        "https://:@example.com/",
        "https://example.com/#part",
        "https://example.com/#",
        "https://example.com:0/",
        "https://example.com:65536/",
        "https://exa mple.com/",
        "https://exa\tmple.com/",
        " https://example.com/",
        "https://example.com/\n",
        "https://example.com\\@evil.example/",
        "https://[example.com]/",
        "https://[fe80::1%25eth0]/",
        "https://1.2.3.4.5/",
        "https://256.1.1.1/",
        long.as_str(),
    ] {
        let fault = Target::parse(url, false).unwrap_err();
        assert_eq!(fault.field, "url", "{url}");
    }
    assert!(Target::parse(&long[..2_048], false).is_ok());
    // What was accepted is kept as it is sent, and must be accepted again.
    let escaped = |letters: usize| format!("https://example.com/{}", "ü".repeat(letters));
    assert!(Target::parse(&escaped(338), false).is_ok_and(|target| target.url().len() == 2_048));
    assert!(Target::parse(&escaped(339), false).is_err());
    assert!(Target::parse("http://example.com/", true).unwrap_err().to_string().contains("https://"));
    assert!(Target::parse("https://example.com/", true).is_ok());
}

#[test]
fn neither_error_nor_debug_text_tells_a_credential() {
    for url in
        ["https://user:s3cret@example.com/", "https://example.com/?token=s3cret#x", "https://u@h:0/?s3cret"]
    {
        assert!(!Target::parse(url, false).unwrap_err().to_string().contains("s3cret"), "{url}");
    }
    assert!(!format!("{:?}", read("https://example.com/s3cret?s3cret")).contains("s3cret"));
}

proptest! {
    #[test]
    fn reading_the_normal_form_again_gives_the_same(url in "https?://[a-z0-9.\\[\\]:-]{1,30}(/[ -~]{0,30})?") {
        if let Ok(target) = Target::parse(&url, false) {
            prop_assert_eq!(Target::parse(target.url(), false), Ok(target.clone()));
            prop_assert!(target.path_and_query().starts_with('/'));
            prop_assert!(target.url().ends_with(target.path_and_query()));
        }
    }

    #[test]
    fn no_text_makes_it_panic(url in ".{0,60}") {
        let _ = Target::parse(&url, true);
    }
}
