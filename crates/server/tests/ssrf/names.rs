//! A name server that says what it likes.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use tokio::net::UdpSocket;

/// For each name the answers that it gets in turn, each with several addresses.
pub(crate) type Table = Vec<(&'static str, Vec<Vec<&'static str>>)>;

/// Answers by UDP, with records that nobody may keep.
pub(crate) struct Names {
    asked: Arc<AtomicUsize>,
}

impl Names {
    pub(crate) async fn start(at: &str, table: Table) -> Self {
        let socket = UdpSocket::bind((at, 53)).await.expect("the port is free");
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut turns = vec![[0; 2]; table.len()];
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question).await {
                count.fetch_add(1, SeqCst);
                let answer = answer(&question[..length], &table, &mut turns);
                let _ = socket.send_to(&answer, from).await;
            }
        });
        Self { asked }
    }

    /// Questions so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }
}

fn answer(message: &[u8], table: &Table, turns: &mut [[usize; 2]]) -> Vec<u8> {
    let (mut at, mut labels) = (12, Vec::new());
    while message[at] != 0 {
        let label = &message[at + 1..][..usize::from(message[at])];
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += 1 + label.len();
    }
    let (kind, end, name) = (message[at + 2], at + 5, labels.join("."));
    let known = table.iter().position(|(known, _)| *known == name);
    let addresses: &[&str] = known.map_or(&[], |index| {
        let (answers, turn) = (&table[index].1, &mut turns[index][usize::from(kind == 28)]);
        *turn += 1;
        &answers[(*turn - 1) % answers.len()]
    });
    let records: Vec<Vec<u8>> = addresses
        .iter()
        .filter_map(|text| match (text.parse().expect("an address"), kind) {
            (IpAddr::V4(v4), 1) => Some(v4.octets().to_vec()),
            (IpAddr::V6(v6), 28) => Some(v6.octets().to_vec()),
            _ => None,
        })
        .collect();
    let code = if known.is_some() { 0 } else { 3 };
    let count = u8::try_from(records.len()).expect("few addresses");
    let mut reply = message[..2].to_vec();
    reply.extend([0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0]);
    reply.extend(&message[12..end]);
    for record in records {
        let length = u8::try_from(record.len()).expect("an address");
        reply.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 0, 0, length]);
        reply.extend(record);
    }
    reply
}
