use super::*;
use proptest::prelude::*;

fn check(text: &str, admitted: bool) {
    let address: IpAddr = text.parse().unwrap();
    assert_eq!(Guard::default().admits(address), admitted, "{text}");
}

#[test]
fn every_range_is_refused_from_its_first_address_to_its_last_and_not_beyond() {
    for (before, first, last, after) in [
        (None, "0.0.0.0", "0.255.255.255", Some("1.0.0.0")),
        (Some("9.255.255.255"), "10.0.0.0", "10.255.255.255", Some("11.0.0.0")),
        (Some("100.63.255.255"), "100.64.0.0", "100.127.255.255", Some("100.128.0.0")),
        (Some("126.255.255.255"), "127.0.0.0", "127.255.255.255", Some("128.0.0.0")),
        (Some("168.63.129.15"), "168.63.129.16", "168.63.129.16", Some("168.63.129.17")),
        (Some("169.253.255.255"), "169.254.0.0", "169.254.255.255", Some("169.255.0.0")),
        (Some("172.15.255.255"), "172.16.0.0", "172.31.255.255", Some("172.32.0.0")),
        (Some("191.255.255.255"), "192.0.0.0", "192.0.0.255", Some("192.0.1.0")),
        (Some("192.0.1.255"), "192.0.2.0", "192.0.2.255", Some("192.0.3.0")),
        (Some("192.88.98.255"), "192.88.99.0", "192.88.99.255", Some("192.88.100.0")),
        (Some("192.167.255.255"), "192.168.0.0", "192.168.255.255", Some("192.169.0.0")),
        (Some("198.17.255.255"), "198.18.0.0", "198.19.255.255", Some("198.20.0.0")),
        (Some("198.51.99.255"), "198.51.100.0", "198.51.100.255", Some("198.51.101.0")),
        (Some("203.0.112.255"), "203.0.113.0", "203.0.113.255", Some("203.0.114.0")),
        (Some("223.255.255.255"), "224.0.0.0", "255.255.255.255", None),
        (None, "::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Some("2000::")),
        (
            Some("2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            "2001::",
            "2001:1ff:ffff::ffff",
            Some("2001:200::"),
        ),
        (Some("2001:db7:ffff::ffff"), "2001:db8::", "2001:db8:ffff::ffff", Some("2001:db9::")),
        (Some("2001:ffff::ffff"), "2002::", "2002:ffff::ffff", Some("2003::")),
        (Some("3ffe:ffff::ffff"), "3fff::", "3fff:fff:ffff::ffff", Some("3fff:1000::")),
        (Some("3fff:ffff::ffff"), "4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None),
    ] {
        check(first, false);
        check(last, false);
        before.into_iter().chain(after).for_each(|open| check(open, true));
    }
}

#[test]
fn what_clouds_hide_and_what_wraps_an_ipv4_address_is_refused() {
    for text in [
        "169.254.169.254",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "fd00:ec2::254",
        "fd20:ce::254",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::ffff:0:8.8.8.8",
        "::127.0.0.1",
        "::8.8.8.8",
        "64:ff9b:1::8.8.8.8",
        "2002:7f00:1::",
        "2002:808:808::",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "100::1",
        "5f00::1",
    ] {
        check(text, false);
    }
}

#[test]
fn nat64_is_judged_by_the_address_within() {
    check("64:ff9b::8.8.8.8", true);
    check("64:ff9b::127.0.0.1", false);
    check("64:ff9b::169.254.169.254", false);
    check("64:ff9b::1:8.8.8.8", false);
    // An allowed IPv4 range is no leave to go around by a translator.
    let guard = Guard::new(vec!["10.0.0.0/8".parse().unwrap()]);
    assert!(!guard.admits("64:ff9b::10.0.0.1".parse().unwrap()));
}

#[test]
fn the_operators_ranges_are_admitted_exactly() {
    let guard = Guard::new(vec!["10.1.0.0/16".parse().unwrap(), "::1/128".parse().unwrap()]);
    for (text, admitted) in [
        ("10.1.0.0", true),
        ("10.1.255.255", true),
        ("10.0.255.255", false),
        ("10.2.0.0", false),
        ("::ffff:10.1.0.1", false),
        ("::1", true),
        ("::2", false),
        ("8.8.8.8", true),
    ] {
        assert_eq!(guard.admits(text.parse().unwrap()), admitted, "{text}");
    }
}

proptest! {
    /// The standard library's own notion of what is not public is a part of ours.
    #[test]
    fn what_the_standard_library_calls_special_is_refused(bits: u32, base in 0usize..16, low in 0u32..0x2_0000) {
        for bits in [bits, REFUSED_V4[base].0.to_bits() | low] {
            let v4 = Ipv4Addr::from_bits(bits);
            let special = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast()
                || v4.is_unspecified() || v4.is_broadcast() || v4.is_documentation();
            prop_assert!(!special || !Guard::default().admits(v4.into()), "{v4}");
            prop_assert!(!Guard::default().admits(v4.to_ipv6_mapped().into()));
            prop_assert!(!Guard::default().admits(v4.to_ipv6_compatible().into()));
        }
    }

    #[test]
    fn no_ipv6_address_outside_the_public_eighth_is_admitted_but_nat64(bits: u128) {
        let v6 = Ipv6Addr::from_bits(bits);
        let nat64 = v6.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
        prop_assert!(v6.segments()[0] >> 13 == 1 || nat64 || !Guard::default().admits(v6.into()));
    }

    #[test]
    fn an_allowed_range_changes_nothing_outside_it(bits: u32, base: u32, length in 1u8..=32) {
        let range = ipnet::Ipv4Net::new(Ipv4Addr::from_bits(base), length).unwrap();
        let address = Ipv4Addr::from_bits(bits);
        let guard = Guard::new(vec![range.into()]);
        prop_assert_eq!(
            guard.admits(address.into()),
            range.contains(&address) || Guard::default().admits(address.into())
        );
    }
}
