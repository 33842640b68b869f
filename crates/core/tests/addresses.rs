//! Which addresses may be dialled, against the registries of special addresses written down a second time, and how a URL
//! may spell them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use tidegate_core::dial::{Guard, Host, Target};

/// IANA's special-purpose IPv4 addresses, multicast, and those of clouds.
const SPECIAL_V4: &[&str] = &[
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
];

/// The same for IPv6, with all that is assigned to nobody. NAT64 is judged by the address within.
const SPECIAL_V6: &[&str] = &[
    "::/128",
    "::1/128",
    "::/96",
    "::ffff:0:0/96",
    "::ffff:0:0:0/96",
    "::/8",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "100::/8",
    "200::/7",
    "400::/6",
    "800::/5",
    "1000::/4",
    "2001::/32",
    "2001:1::1/128",
    "2001:2::/48",
    "2001:3::/32",
    "2001:4:112::/48",
    "2001:10::/28",
    "2001:20::/28",
    "2001:30::/28",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "4000::/3",
    "5f00::/16",
    "6000::/3",
    "8000::/3",
    "a000::/3",
    "c000::/3",
    "e000::/4",
    "f000::/5",
    "f800::/6",
    "fc00::/7",
    "fd00:ec2::254/128",
    "fd20:ce::254/128",
    "fe00::/9",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
];

/// What wraps an IPv4 address, and whether it may be dialled where the address within may.
fn wrapped(v4: Ipv4Addr) -> Vec<(Ipv6Addr, bool)> {
    let bits = u128::from(v4.to_bits());
    let within = |prefix: &str, shift: u32| {
        let prefix: Ipv6Addr = prefix.parse().expect("an address");
        Ipv6Addr::from_bits(prefix.to_bits() | bits << shift)
    };
    vec![
        (within("::ffff:0:0", 0), false),
        (within("::", 0), false),
        (within("::ffff:0:0:0", 0), false),
        (within("64:ff9b::", 0), true),
        (within("64:ff9b:1::", 0), false),
        (within("64:ff9b:1:fffe::", 0), false),
        (within("2002::", 80), false),
        (within("2002::1", 80), false),
        (Ipv6Addr::from_bits(within("2001:0:4136:e378:8000:63bf::", 0).to_bits() ^ 0xffff_ffff), false),
        (within("fe80::5efe:0:0", 0), false),
        (within("fd00::", 0), false),
    ]
}

/// The first and the last address of each range, those beside them, and some in between.
fn edges(ranges: &[&str]) -> Vec<IpAddr> {
    let mut edges = Vec::new();
    for range in ranges {
        match range.parse().expect("a range") {
            IpNet::V4(range) => {
                let (first, last) = (range.network().to_bits(), range.broadcast().to_bits());
                let middle = first + (last - first) / 2;
                for at in [first, middle, last] {
                    for bits in at.saturating_sub(2)..=at.saturating_add(2) {
                        edges.push(Ipv4Addr::from_bits(bits).into());
                    }
                }
            }
            IpNet::V6(range) => {
                let (first, last) = (range.network().to_bits(), range.broadcast().to_bits());
                let middle = first + (last - first) / 2;
                for at in [first, middle, last] {
                    for bits in at.saturating_sub(2)..=at.saturating_add(2) {
                        edges.push(Ipv6Addr::from_bits(bits).into());
                    }
                }
            }
        }
    }
    edges
}

fn is_special(address: IpAddr) -> bool {
    let (v4, nat64) = match address {
        IpAddr::V4(v4) => (Some(v4), false),
        IpAddr::V6(v6) if v6.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0] => {
            let [.., a, b, c, d] = v6.octets();
            (Some(Ipv4Addr::new(a, b, c, d)), true)
        }
        IpAddr::V6(_) => (None, false),
    };
    let judged = v4.map_or(address, IpAddr::V4);
    let ranges = if v4.is_some() || nat64 { SPECIAL_V4 } else { SPECIAL_V6 };
    ranges.iter().any(|range| range.parse::<IpNet>().expect("a range").contains(&judged))
}

#[test]
fn two_thousand_addresses_at_every_edge_are_judged_as_the_registries_say() {
    let mut table: Vec<(IpAddr, bool)> = Vec::new();
    for edge in edges(SPECIAL_V4).into_iter().chain(edges(SPECIAL_V6)) {
        table.push((edge, !is_special(edge)));
        if let IpAddr::V4(v4) = edge {
            let public = !is_special(edge);
            table.extend(wrapped(v4).into_iter().map(|(v6, by_within)| (v6.into(), by_within && public)));
        }
    }
    table.sort();
    table.dedup();
    assert!(table.len() >= 2_000, "{}", table.len());
    assert!(table.iter().filter(|(_, admitted)| *admitted).count() >= 100, "both sides are there");
    for (address, admitted) in table {
        assert_eq!(Guard::default().admits(address), admitted, "{address}");
    }
}

#[test]
fn of_a_thousand_public_addresses_none_is_refused() {
    let known = ["1.1.1.1", "8.8.8.8", "9.9.9.9", "93.184.215.14", "140.82.112.3", "2606:4700::1111"];
    let known = known.into_iter().chain(["2a00:1450:4001:80b::200e", "2400:cb00::1", "2c0f:fb50::1"]);
    let mut public: Vec<IpAddr> = known.map(|text| text.parse().expect("an address")).collect();
    // Weyl's sequence: spread evenly, and the same each time.
    for number in 1..=700_u32 {
        public.push(Ipv4Addr::from_bits(number.wrapping_mul(0x9e37_79b9)).into());
        let low = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        public.push(Ipv6Addr::from_bits(1 << 125 | low >> 3).into());
    }
    public.retain(|address| !is_special(*address));
    assert!(public.len() >= 1_000, "{}", public.len());
    for address in public {
        assert!(Guard::default().admits(address), "{address}");
    }
}

#[test]
fn a_url_has_exactly_two_slashes_before_its_host() {
    for url in [
        "http:127.0.0.1/",
        "http:/127.0.0.1/",
        "http:///127.0.0.1/",
        "https:example.com",
        "http:127.0.0.1/?a://b",
    ] {
        assert!(Target::parse(url, false).is_err(), "{url}");
    }
}

/// What becomes of a spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelt {
    /// No URL that could be sent to.
    Refused,
    /// The address that it stands for, which may not be dialled.
    Inside(&'static str),
    /// A name: what it stands for is judged when it is resolved.
    Name(&'static str),
    /// A public address.
    Public(&'static str),
}
use Spelt::{Inside, Name, Public, Refused};

const LOOPBACK: Spelt = Inside("127.0.0.1");
const METADATA: Spelt = Inside("169.254.169.254");

/// Hosts as a URL may have them.
const SPELLINGS: &[(&str, Spelt)] = &[
    ("127.0.0.1", LOOPBACK),
    ("127.0.0.1.", LOOPBACK),
    ("127.1", LOOPBACK),
    ("127.0.1", LOOPBACK),
    ("0x7f.1", LOOPBACK),
    ("0X7F.0.0.1", LOOPBACK),
    ("0x7f000001", LOOPBACK),
    ("0x000000000000007f000001", LOOPBACK),
    ("0177.0.0.1", LOOPBACK),
    ("0177.0x0.0.1", LOOPBACK),
    ("00000000177.1", LOOPBACK),
    ("017700000001", LOOPBACK),
    ("2130706433", LOOPBACK),
    ("2130706433.", LOOPBACK),
    ("1２7.0.0.1", LOOPBACK),
    ("①②⑦.⓪.⓪.①", LOOPBACK),
    ("127。0。0。1", LOOPBACK),
    ("127．0．0．1", LOOPBACK),
    ("127｡0｡0｡1", LOOPBACK),
    ("%31%32%37.0.0.1", LOOPBACK),
    ("127%2e0%2e0%2e1", LOOPBACK),
    ("0x7f%2e1", LOOPBACK),
    ("127.0.0.1:80", LOOPBACK),
    ("127.0.0.1:", LOOPBACK),
    ("127.0.0.1:00080", LOOPBACK),
    ("0", Inside("0.0.0.0")),
    ("0x", Inside("0.0.0.0")),
    ("0.0.0.0", Inside("0.0.0.0")),
    ("0.1", Inside("0.0.0.1")),
    ("10.1", Inside("10.0.0.1")),
    ("0xa.1", Inside("10.0.0.1")),
    ("012.1", Inside("10.0.0.1")),
    ("192.168.257", Inside("192.168.1.1")),
    ("0300.0250.1.1", Inside("192.168.1.1")),
    ("4294967295", Inside("255.255.255.255")),
    ("169.254.169.254", METADATA),
    ("2852039166", METADATA),
    ("0xa9fea9fe", METADATA),
    ("0xa9.0xfe.0xa9.0xfe", METADATA),
    ("0251.0376.0251.0376", METADATA),
    ("169.254.43518", METADATA),
    ("169.16689662", METADATA),
    ("１６９.254.169.254", METADATA),
    ("[::1]", Inside("::1")),
    ("[0:0:0:0:0:0:0:1]", Inside("::1")),
    ("[0000::0001]", Inside("::1")),
    ("[::]", Inside("::")),
    ("[::127.0.0.1]", Inside("::7f00:1")),
    ("[::ffff:127.0.0.1]", Inside("::ffff:127.0.0.1")),
    ("[::FFFF:7F00:1]", Inside("::ffff:127.0.0.1")),
    ("[0:0:0:0:0:ffff:a9fe:a9fe]", Inside("::ffff:169.254.169.254")),
    ("[64:ff9b::169.254.169.254]", Inside("64:ff9b::a9fe:a9fe")),
    ("[2002:a9fe:a9fe::1]", Inside("2002:a9fe:a9fe::1")),
    ("[fd00:ec2::254]", Inside("fd00:ec2::254")),
    ("[FE80::1]", Inside("fe80::1")),
    ("[fe80::1%eth0]", Refused),
    ("[fe80::1%25eth0]", Refused),
    ("[::1%00]", Refused),
    ("[127.0.0.1]", Refused),
    ("[localhost]", Refused),
    ("[::1", Refused),
    ("::1", Refused),
    ("127.0.0.1:99999", Refused),
    ("127.0.0.1:0", Refused),
    ("127.0.0.1:8080:80", Refused),
    ("127.0.0.1%00.example.com", Refused),
    ("127.0.0.1%20.example.com", Refused),
    ("127.0.0.256", Refused),
    ("4294967296", Refused),
    ("1.2.3.4.5", Refused),
    ("0x7f.0.0.0.1", Refused),
    ("127.0.0.0x", Inside("127.0.0.0")),
    ("127..1", Refused),
    ("example.com@127.0.0.1", Refused),
    ("example.com:80@127.0.0.1", Refused),
    ("@127.0.0.1", Refused),
    ("@example.com", Refused),
    ("/example.com", Refused),
    ("//127.0.0.1", Refused),
    ("example.com#@127.0.0.1", Refused),
    ("example.com\\@127.0.0.1", Refused),
    ("exam\tple.com", Refused),
    ("example.com\u{a0}", Refused),
    ("", Refused),
    (":80", Refused),
    ("xn--", Refused),
    ("a..b", Name("a..b")),
    ("localhost", Name("localhost")),
    ("LOCALHOST", Name("localhost")),
    ("localhost.", Name("localhost.")),
    ("ｌocalhost", Name("localhost")),
    ("loca\u{ad}lhost", Name("localhost")),
    ("127.0.0.1.nip.io", Name("127.0.0.1.nip.io")),
    ("127-0-0-1.example", Name("127-0-0-1.example")),
    ("metadata.google.internal", Name("metadata.google.internal")),
    ("EXAMPLE.com.", Name("example.com.")),
    ("ｅxample。com", Name("example.com")),
    ("bücher.example", Name("xn--bcher-kva.example")),
    ("8.8.8.8", Public("8.8.8.8")),
    ("134744072", Public("8.8.8.8")),
    ("0x8080808", Public("8.8.8.8")),
    ("[2606:4700::1111]", Public("2606:4700::1111")),
    ("[64:ff9b::8.8.8.8]", Public("64:ff9b::808:808")),
];

#[test]
fn every_spelling_of_a_host_is_judged_by_what_it_stands_for() {
    assert!(SPELLINGS.len() >= 60);
    for (spelling, expected) in SPELLINGS {
        for scheme in ["http", "https", "HttP"] {
            let url = format!("{scheme}://{spelling}/hook");
            let read = match Target::parse(&url, false) {
                Err(_) => "refused".to_owned(),
                Ok(target) => match (target.host(), target.literal()) {
                    (Host::Name(name), None) => format!("the name {name}"),
                    (Host::Address(address), Some(literal)) if *address == literal => {
                        let verdict = if Guard::default().admits(literal) { "public" } else { "inside" };
                        format!("{verdict} {address}")
                    }
                    other => panic!("{url}: {other:?}"),
                },
            };
            let same = |text: &str| text.parse::<IpAddr>().expect("an address").to_string();
            let expected = match expected {
                Refused => "refused".to_owned(),
                Inside(address) => format!("inside {}", same(address)),
                Public(address) => format!("public {}", same(address)),
                Name(name) => format!("the name {name}"),
            };
            assert_eq!(read, expected, "{url}");
        }
    }
}
