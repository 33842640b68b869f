//! A destination's URL, and the address that it names.
//!
//! Laws: what is accepted can be read again, and is the same; nothing in it can break a request line or a header; another
//! parser finds the same host and port; an address that the guard admits is public by a rule of its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::{HeaderValue, Uri};
use tidegate_core::dial::{Guard, Host, Target};

/// Input: a URL. Its last 4 and 16 bytes are also taken as addresses, which no URL may spell.
pub fn run(data: &[u8]) {
    for address in last(data)
        .map(|bytes: [u8; 4]| IpAddr::from(bytes))
        .into_iter()
        .chain(last(data).map(|bytes: [u8; 16]| IpAddr::from(bytes)))
    {
        judge(address);
    }
    let Ok(text) = str::from_utf8(data) else { return };
    let strict = Target::parse(text, true);
    let Ok(target) = Target::parse(text, false) else {
        assert!(strict.is_err(), "https_only accepts nothing that is refused without it");
        return;
    };
    assert_eq!(strict.is_ok(), target.is_https());
    assert_eq!(
        Target::parse(target.url(), false).as_ref(),
        Ok(&target),
        "the normal form is the same target"
    );
    assert!(target.url().is_ascii() && !target.url().contains(char::is_whitespace), "{:?}", target.url());
    assert!(target.path_and_query().starts_with('/') && !target.path_and_query().contains('#'));
    assert!(target.port() != 0 && !target.authority().contains('@'));
    HeaderValue::from_str(target.authority()).expect("a Host header");
    compare(&target);
    if let Some(address) = target.literal() {
        judge(address);
    }
}

/// The last bytes, if there are so many.
fn last<const N: usize>(data: &[u8]) -> Option<[u8; N]> {
    data.last_chunk().copied()
}

/// What the client would make of the same URL. Two parsers that disagree about the host are how guards are passed by.
fn compare(target: &Target) {
    let Ok(uri) = target.url().parse::<Uri>() else { return };
    let host = uri.host().expect("it has one").trim_start_matches('[').trim_end_matches(']');
    match target.host() {
        Host::Name(name) => assert_eq!(host, name),
        Host::Address(address) => assert_eq!(host.parse(), Ok(*address)),
    }
    assert_eq!(uri.port_u16().unwrap_or(if target.is_https() { 443 } else { 80 }), target.port());
    assert_eq!(uri.path_and_query().map_or("/", |path| path.as_str()), target.path_and_query());
}

fn judge(address: IpAddr) {
    let admitted = Guard::default().admits(address);
    let public = match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    };
    assert_eq!(admitted, public, "{address}");
    let exactly = |net: String| Guard::new(vec![net.parse().expect("a range")]).admits(address);
    let length = if address.is_ipv4() { 32 } else { 128 };
    assert!(exactly(format!("{address}/{length}")), "what the operator allows is admitted");
}

/// By octets, where the guard goes by prefixes.
fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        [0 | 10 | 127 | 224.., ..]
            | [100, 64..=127, ..]
            | [168, 63, 129, 16]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [192, 168, ..]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
    )
}

/// By segments.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}
