//! A name server of a few lines: answers from a table, by UDP and TCP, or not at all.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use tidegate_core::dial::Guard;
use tidegate_engine::resolver::Resolver;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// The longest answer by UDP; a longer one is cut off, and says so.
const MAX_UDP: usize = 512;

/// What is said about a name.
#[derive(Clone)]
pub(crate) enum Say {
    Addresses(Vec<&'static str>),
    /// So many addresses from 127.1.0.0 on, and this one last.
    Many(u16, Ipv4Addr),
    /// Another name stands for it.
    Alias(&'static str),
    Refused,
    Nothing,
}

type Table = Vec<(&'static str, Say)>;

pub(crate) struct NameServer {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    by_tcp: Arc<AtomicUsize>,
}

impl NameServer {
    /// Knows the names of `table`; all others do not exist.
    pub(crate) async fn start(table: Table) -> Self {
        let (socket, listener) = bind().await;
        let address = socket.local_addr().unwrap();
        let (asked, by_tcp) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (count, table) = (Arc::clone(&asked), Arc::new(table));
        tokio::spawn(serve_tcp(listener, Arc::clone(&table), Arc::clone(&by_tcp)));
        tokio::spawn(async move {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question).await {
                count.fetch_add(1, SeqCst);
                if let Some(mut answer) = answer(&question[..length], &table) {
                    if answer.len() > MAX_UDP {
                        answer.truncate(length);
                        answer[2] |= 0x02; // there is more
                        answer[6..12].fill(0);
                    }
                    let _ = socket.send_to(&answer, from).await;
                }
            }
        });
        Self { address, asked, by_tcp }
    }

    pub(crate) fn resolver(&self, guard: Guard) -> Resolver {
        Resolver::with_name_servers(&[self.address], guard).unwrap()
    }
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }
    /// Questions that came by TCP.
    pub(crate) fn asked_by_tcp(&self) -> usize {
        self.by_tcp.load(SeqCst)
    }
}

/// The same port for both: what another test has of the one may be free of the other.
async fn bind() -> (UdpSocket, TcpListener) {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        if let Ok(socket) = UdpSocket::bind(listener.local_addr().unwrap()).await {
            return (socket, listener);
        }
    }
}

async fn serve_tcp(listener: TcpListener, table: Arc<Table>, count: Arc<AtomicUsize>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(talk(stream, Arc::clone(&table), Arc::clone(&count)));
    }
}

/// By TCP each message has its length before it.
async fn talk(mut stream: TcpStream, table: Arc<Table>, count: Arc<AtomicUsize>) {
    while let Ok(length) = stream.read_u16().await {
        let mut question = vec![0; usize::from(length)];
        stream.read_exact(&mut question).await.unwrap();
        count.fetch_add(1, SeqCst);
        let Some(answer) = answer(&question, &table) else { continue };
        let length = u16::try_from(answer.len()).unwrap();
        let _ = stream.write_all(&[&length.to_be_bytes(), &answer[..]].concat()).await;
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
    let of_kind = |address: IpAddr| match (address, kind) {
        (IpAddr::V4(v4), 1) => Some((kind, v4.octets().to_vec())),
        (IpAddr::V6(v6), 28) => Some((kind, v6.octets().to_vec())),
        _ => None,
    };
    let (code, records): (u8, Vec<(u8, Vec<u8>)>) = match said {
        Some(Say::Nothing) => return None,
        Some(Say::Refused) => (2, vec![]),
        Some(Say::Addresses(addresses)) => {
            (0, addresses.iter().filter_map(|text| of_kind(text.parse().unwrap())).collect())
        }
        Some(Say::Many(count, last)) => {
            let many = (0..*count).map(|n| Ipv4Addr::from(0x7f01_0000 + u32::from(n)));
            (0, many.chain([*last]).filter_map(|address| of_kind(address.into())).collect())
        }
        Some(Say::Alias(other)) => (0, vec![(5, wire_name(other))]),
        None => (3, vec![]),
    };
    let mut reply = message[..2].to_vec();
    reply.extend([0x81, 0x80 | code, 0, 1]);
    reply.extend(u16::try_from(records.len()).unwrap().to_be_bytes());
    reply.extend([0; 4]);
    reply.extend(&message[12..end]);
    for (kind, record) in records {
        reply.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 30, 0, u8::try_from(record.len()).unwrap()]);
        reply.extend(record);
    }
    Some(reply)
}

fn wire_name(name: &str) -> Vec<u8> {
    let label = |label: &str| [&[u8::try_from(label.len()).unwrap()], label.as_bytes()].concat();
    let labels: Vec<_> = name.split('.').chain([""]).map(label).collect();
    labels.concat()
}
