//! The listening socket's last moment.
//!
//! The system finishes handshakes on its own: between the last `accept` and the close there may be clients who are connected
//! and whom nobody ever answers. On close they get a reset, which they cannot tell from a call that was lost half way. So
//! the socket first stops hearing of new clients, then those it has are accepted, then it is closed. Who knocks in between
//! knocks again after a second, and is refused, or answered by whoever listens there by then.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

/// A handshake that had begun is over by then.
const LAST_HANDSHAKE: Duration = Duration::from_millis(20);

/// Lets no new client in, gives those who had come to `take`, and closes the door.
pub(super) async fn shut(listener: TcpListener, take: impl Fn(TcpStream, SocketAddr)) -> io::Result<()> {
    // Not as the runtime does it: it may not have heard of somebody yet.
    let listener = listener.into_std()?;
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(&listener).attach_filter(&drop_first_packets())?;
    for last in [false, true] {
        loop {
            match listener.accept() {
                Ok((stream, peer)) => {
                    stream.set_nonblocking(true)?;
                    take(TcpStream::from_std(stream)?, peer);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        if !last {
            tokio::time::sleep(LAST_HANDSHAKE).await;
        }
    }
    Ok(())
}

/// A packet filter: what has SYN and not ACK is dropped, all else goes on.
#[cfg(target_os = "linux")]
fn drop_first_packets() -> [socket2::SockFilter; 5] {
    use socket2::SockFilter;
    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const FLAGS_OF_TCP: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    [
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS_OF_TCP),
        SockFilter::new(AND, 0, 0, SYN | ACK),
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ]
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::Duration;

    use super::*;

    /// Calls until it is told to stop; says how often it was connected and yet not answered.
    fn caller(address: SocketAddr, stop: Arc<AtomicBool>) -> std::thread::JoinHandle<u32> {
        let call = move || {
            let mut unanswered = 0;
            while !stop.load(Relaxed) {
                match TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
                    Ok(mut stream) => {
                        let answered = stream.write_all(b"?").is_ok() && stream.read_exact(&mut [0]).is_ok();
                        unanswered += u32::from(!answered);
                    }
                    Err(error) => assert_ne!(error.kind(), ErrorKind::ConnectionReset),
                }
            }
            unanswered
        };
        std::thread::Builder::new().name("caller".to_owned()).spawn(call).unwrap()
    }

    /// Goal: who is connected is answered, whenever the door is shut. Method: callers without pause, many doors.
    #[tokio::test]
    async fn who_is_connected_is_answered() {
        for _ in 0..50 {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let (address, stop) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
            let callers: Vec<_> = (0..4).map(|_| caller(address, Arc::clone(&stop))).collect();
            let mut held = Vec::new();
            for _ in 0..10 {
                held.push(listener.accept().await.unwrap().0);
                answer(&mut held);
            }
            let last = std::cell::RefCell::new(Vec::new());
            shut(listener, |stream, _| last.borrow_mut().push(stream)).await.unwrap();
            stop.store(true, Relaxed);
            answer(&mut last.into_inner());
            for caller in callers {
                assert_eq!(caller.join().unwrap(), 0, "connected and not answered");
            }
        }
    }

    /// Writes an answer at once: the question may still be under way.
    fn answer(held: &mut Vec<tokio::net::TcpStream>) {
        for stream in held.drain(..) {
            let stream = stream.into_std().unwrap();
            stream.set_nonblocking(false).unwrap();
            (&stream).write_all(b"!").unwrap();
            let _asked = (&stream).read(&mut [0]);
        }
    }
}
