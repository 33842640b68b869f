//! Which addresses may be dialled: the public internet, and what the operator allows besides.
//!
//! The lists follow the IANA registries of special-purpose addresses. IPv4 names what is refused; IPv6 names what is
//! admitted, since nearly all of its space is unassigned.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

#[cfg(test)]
mod tests;

/// IPv4 ranges that no customer's server has, each with the length of its prefix.
const REFUSED_V4: [(Ipv4Addr, u32); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),        // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),       // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),    // carrier-grade NAT, and Alibaba's metadata
    (Ipv4Addr::new(127, 0, 0, 0), 8),      // loopback
    (Ipv4Addr::new(168, 63, 129, 16), 32), // Azure's metadata, at an address that looks public
    (Ipv4Addr::new(169, 254, 0, 0), 16),   // link-local, and most clouds' metadata
    (Ipv4Addr::new(172, 16, 0, 0), 12),    // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),     // protocol assignments, and Oracle's metadata
    (Ipv4Addr::new(192, 0, 2, 0), 24),     // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24),   // 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16),   // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),    // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24),  // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),   // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),      // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),      // reserved, and broadcast
];

/// What IPv6 has assigned to the internet. Mapped, compatible, private, local and multicast addresses lie outside.
const PUBLIC_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// Ranges within [`PUBLIC_V6`] that are not public all the same.
const REFUSED_V6: [(Ipv6Addr, u32); 4] = [
    // Protocol assignments, Teredo among them. The few parts that can be reached are for no web server.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),     // 6to4: wraps any IPv4 address
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),     // documentation
];
/// NAT64: the last 32 bits are the IPv4 address that is really dialled.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Judges addresses. Refuses whatever is not public, except the ranges that the operator allows.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    allowed: Vec<IpNet>,
}

impl Guard {
    /// A guard that also admits the `allowed` ranges: exactly these, in no other spelling.
    pub fn new(allowed: Vec<IpNet>) -> Self {
        Self { allowed }
    }

    /// Whether `address` may be dialled.
    pub fn admits(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|range| range.contains(&address))
            || match address {
                IpAddr::V4(address) => is_public_v4(address),
                IpAddr::V6(address) => is_public_v6(address),
            }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within =
        |(base, length): &(Ipv4Addr, u32)| (address.to_bits() ^ base.to_bits()) >> (32 - length) == 0;
    !REFUSED_V4.iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let within =
        |(base, length): &(Ipv6Addr, u32)| (address.to_bits() ^ base.to_bits()) >> (128 - length) == 0;
    if within(&NAT64) {
        let [.., a, b, c, d] = address.octets();
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    within(&PUBLIC_V6) && !REFUSED_V6.iter().any(within)
}
