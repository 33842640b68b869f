//! Clients that take their time, take all the room, or ask first.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::kit::{Server, millis, now, secs, until};

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(&server.authority).await.expect("the server listens")
}

/// All that comes until the server closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    // A reset is a close, too.
    let _ = tokio::time::timeout(secs(60), stream.read_to_end(&mut read)).await.expect("it closes");
    String::from_utf8_lossy(&read).into_owned()
}

fn head(server: &Server, more: &str) -> String {
    format!(
        "POST /v1/outbound-events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\nconnection: close\r\n{more}\r\n",
        server.key
    )
}

/// Goal: a head has ten seconds, whether nothing of it comes or always a little more.
#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_does_not_end_is_closed_after_ten_seconds() {
    let server = Server::start(&[]).await;
    let began = now();
    let mut silent = connect(&server).await;
    let mut slow = connect(&server).await;
    let (mut from_server, mut to_server) = slow.split();
    let drip = async {
        let _ = to_server.write_all(b"GET /v1/stats HTTP/1.1\r\nhost: x\r\na: ").await;
        while to_server.write_all(b"b").await.is_ok() {
            tokio::time::sleep(millis(200)).await;
        }
    };
    let closed = async {
        let mut read = Vec::new();
        let _ = from_server.read_to_end(&mut read).await;
        (began.elapsed(), String::from_utf8_lossy(&read).into_owned())
    };
    let slow = async {
        tokio::select! {
            closed = closed => closed,
            () = drip => (began.elapsed(), String::new()),
        }
    };
    let silent = async { (rest(&mut silent).await, began.elapsed()) };
    let ((slow_took, answer), (nothing, silent_took)) = tokio::join!(slow, silent);
    for took in [slow_took, silent_took] {
        assert!((secs(9)..secs(16)).contains(&took), "{took:?}");
    }
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert_eq!(nothing, "");
}

/// Goal: a body has thirty seconds, however steadily it comes; then a few more are spent on reading it, so that the answer
/// arrives.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_comes_byte_by_byte_is_given_up_with_408() {
    let server = Server::start(&[]).await;
    let mut stream = connect(&server).await;
    stream.write_all(head(&server, "content-length: 1000\r\n").as_bytes()).await.expect("it listens");
    let began = now();
    let (mut from_server, mut to_server) = stream.split();
    let drip = async {
        while to_server.write_all(b" ").await.is_ok() {
            tokio::time::sleep(millis(200)).await;
        }
        std::future::pending::<()>().await;
    };
    let mut answer = [0; 12];
    tokio::select! {
        read = from_server.read_exact(&mut answer) => { read.expect("an answer"); }
        () = drip => {}
    }
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 408");
    assert!((secs(29)..secs(45)).contains(&began.elapsed()), "{:?}", began.elapsed());
}

/// Goal: who asks before it sends is told to go on, or is refused and sends nothing.
#[tokio::test(flavor = "multi_thread")]
async fn who_expects_100_is_told_to_go_on_or_refused_before_the_body() {
    const GO_ON: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    let server = Server::start(&[]).await;
    let body = r#"{"event_type":"a.b","payload":1}"#;
    let expects = format!("expect: 100-continue\r\ncontent-length: {}\r\n", body.len());
    let mut stream = connect(&server).await;
    stream.write_all(head(&server, &expects).as_bytes()).await.expect("it listens");
    let mut interim = vec![0; GO_ON.len()];
    let read = tokio::time::timeout(secs(5), stream.read_exact(&mut interim)).await;
    read.expect("it does not wait for the body").expect("an interim answer");
    assert_eq!(String::from_utf8_lossy(&interim), String::from_utf8_lossy(GO_ON));
    stream.write_all(body.as_bytes()).await.expect("it listens");
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");

    let strange = head(&server, &expects).replace(&server.key, "tg_nobody");
    let large = head(&server, "expect: 100-continue\r\ncontent-length: 99999999\r\n");
    let packed = head(&server, &format!("{expects}content-encoding: gzip\r\n"));
    for (asked, status) in [(strange, 401), (large, 413), (packed, 415)] {
        let mut stream = connect(&server).await;
        stream.write_all(asked.as_bytes()).await.expect("it listens");
        let began = now();
        let answer = rest(&mut stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(began.elapsed() < secs(4), "{status}: nobody waits for a body that does not come");
    }
}

/// Goal: one address takes as many connections as it may and no more; others, and itself once it lets go, are answered.
#[tokio::test(flavor = "multi_thread")]
async fn one_address_has_so_many_connections_and_no_more() {
    let server = Server::start(&["--max-connections-per-address", "5"]).await;
    let address: SocketAddr = server.authority.parse().expect("an address");
    let answered = async |from: [u8; 4]| {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from((from, 0))).expect("the whole of 127/8 is ours");
        let mut stream = socket.connect(address).await.expect("the system connects");
        let asked = b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        // Who is not let in may find the connection closed already.
        let _ = stream.write_all(asked).await;
        rest(&mut stream).await.starts_with("HTTP/1.1 200")
    };
    let mut held = Vec::new();
    // Those that waited for its start may still be there: only who was answered is in.
    until(secs(20), "five are in", async || {
        let mut stream = connect(&server).await;
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
        let mut head = [0; 12];
        if stream.read_exact(&mut head).await.is_ok_and(|_| head == *b"HTTP/1.1 200") {
            held.push(stream);
        }
        held.len() == 5
    })
    .await;
    for _ in 0..5 {
        assert!(!answered([127, 0, 0, 1]).await, "a sixth");
    }
    assert!(answered([127, 0, 0, 2]).await, "another address");
    held.pop();
    until(secs(5), "there is room again", async || answered([127, 0, 0, 1]).await).await;
}
