//! Whoever connects to an address that nobody may reach is heard.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Connections by the address that they were made to.
#[derive(Clone, Default)]
pub(crate) struct Canaries(Arc<Mutex<BTreeMap<IpAddr, usize>>>);

impl Canaries {
    /// Listens on these ports of all addresses of the machine. To whoever asks for `/away` it names another place.
    pub(crate) async fn listen(ports: &[u16]) -> Self {
        let canaries = Self::default();
        for port in ports {
            let listener = TcpListener::bind(SocketAddr::new("::".parse().expect("an address"), *port)).await;
            let listener = listener.expect("the port is free");
            let heard = canaries.clone();
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let to = stream.local_addr().expect("it is connected").ip().to_canonical();
                    *heard.0.lock().expect("no panic").entry(to).or_default() += 1;
                    tokio::spawn(answer(stream));
                }
            });
        }
        canaries
    }

    /// Connections to this address.
    pub(crate) fn at(&self, address: &str) -> usize {
        let address = address.parse().expect("an address");
        self.0.lock().expect("no panic").get(&address).copied().unwrap_or(0)
    }

    /// All connections but those to the addresses that may be reached.
    pub(crate) fn elsewhere(&self, allowed: &[&str]) -> Vec<String> {
        let all = self.0.lock().expect("no panic");
        let others = all.iter().filter(|(address, _)| !allowed.contains(&address.to_string().as_str()));
        others.map(|(address, count)| format!("{count} to {address}")).collect()
    }
}

async fn answer(mut stream: TcpStream) {
    let mut request = vec![0; 16 * 1024];
    let length = stream.read(&mut request).await.unwrap_or(0);
    let answer = match request[..length].starts_with(b"POST /away") {
        true => "HTTP/1.1 307 Away\r\nlocation: http://169.254.169.254/latest/meta-data/\r\n",
        false => "HTTP/1.1 200 OK\r\n",
    };
    let _ =
        stream.write_all(format!("{answer}connection: close\r\ncontent-length: 0\r\n\r\n").as_bytes()).await;
}
