//! A name server of a few lines: answers from a table, or not at all.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use tidegate_core::dial::Guard;
use tidegate_engine::resolver::Resolver;
use tokio::net::UdpSocket;

/// What is said about a name.
#[derive(Clone)]
pub(crate) enum Say {
    Addresses(Vec<&'static str>),
    Refused,
    Nothing,
}

pub(crate) struct NameServer {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl NameServer {
    /// Knows the names of `table`; all others do not exist.
    pub(crate) async fn start(table: Vec<(&'static str, Say)>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question).await {
                count.fetch_add(1, SeqCst);
                if let Some(answer) = answer(&question[..length], &table) {
                    let _ = socket.send_to(&answer, from).await;
                }
            }
        });
        Self { address, asked }
    }

    pub(crate) fn resolver(&self, guard: Guard) -> Resolver {
        Resolver::with_name_servers(&[self.address], guard).unwrap()
    }
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }
}

fn answer(message: &[u8], table: &[(&str, Say)]) -> Option<Vec<u8>> {
    let (mut at, mut name) = (12, String::new());
    while message[at] != 0 {
        let label = &message[at + 1..][..usize::from(message[at])];
        name = format!("{name}{}.", std::str::from_utf8(label).unwrap());
        at += 1 + label.len();
    }
    let (kind, end) = (message[at + 2], at + 5);
    let said = table.iter().find(|(known, _)| name.trim_end_matches('.') == *known).map(|(_, say)| say);
    let (code, addresses) = match said {
        Some(Say::Nothing) => return None,
        Some(Say::Refused) => (2, vec![]),
        Some(Say::Addresses(addresses)) => (0, addresses.iter().map(|text| text.parse().unwrap()).collect()),
        None => (3, vec![]),
    };
    let records: Vec<Vec<u8>> = addresses
        .iter()
        .filter_map(|address: &IpAddr| match (address, kind) {
            (IpAddr::V4(v4), 1) => Some(v4.octets().to_vec()),
            (IpAddr::V6(v6), 28) => Some(v6.octets().to_vec()),
            _ => None,
        })
        .collect();
    let count = u8::try_from(records.len()).unwrap();
    let mut reply = message[..2].to_vec();
    reply.extend([0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0]);
    reply.extend(&message[12..end]);
    for record in records {
        reply.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 30, 0, u8::try_from(record.len()).unwrap()]);
        reply.extend(record);
    }
    Some(reply)
}
