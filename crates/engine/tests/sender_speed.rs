//! How many attempts one core makes, against a sink on loopback. Not run by default:
//! `cargo test -p tidegate-engine --test sender_speed --release -- --ignored --nocapture`

#![allow(clippy::unwrap_used, reason = "in the helpers, too, what fails is the test")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tidegate_core::dial::{Guard, Target};
use tidegate_core::headers::CustomHeaders;
use tidegate_core::id::{DeliveryId, EventId};
use tidegate_core::pattern::EventType;
use tidegate_core::sign::Secret;
use tidegate_core::time::{Millis, Timestamp};
use tidegate_engine::resolver::Resolver;
use tidegate_engine::sender::{
    Endpoint, Envelope, Pool, Request, Sender, SenderConfig, Settings, SigningKey,
};
use tidegate_store::event::{Body, Message};
use tokio::net::TcpListener;
use tokio::time::Instant;

const ATTEMPTS: usize = 200_000;
const AT_ONCE: usize = 64;

#[test]
#[ignore = "a measurement"]
fn attempts_per_second_on_one_core() {
    let sink = start_sink();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let resolver = Resolver::system(Guard::new(vec!["127.0.0.0/8".parse().unwrap()])).unwrap();
        let sender = Arc::new(Sender::new(SenderConfig::new(resolver)));
        run(&sender, sink, ATTEMPTS / 10).await;
        let (started, busy) = (Instant::now(), cpu_time());
        run(&sender, sink, ATTEMPTS).await;
        let (took, busy) = (started.elapsed(), cpu_time() - busy);
        #[expect(clippy::cast_precision_loss, reason = "for display")]
        let per = |time: Duration| ATTEMPTS as f64 / time.as_secs_f64();
        println!(
            "{ATTEMPTS} attempts, {AT_ONCE} at once: {:.0}/s; {:.0} per second of the sender's CPU ({:.1} µs each)",
            per(took),
            per(busy),
            1e6 / per(busy)
        );
    });
}

/// Each of the tasks has a destination of its own and sends one attempt after the other.
async fn run(sender: &Arc<Sender>, sink: SocketAddr, attempts: usize) {
    let left = Arc::new(AtomicUsize::new(attempts));
    let tasks: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (sender, left, request) = (Arc::clone(sender), Arc::clone(&left), request(sink));
            tokio::spawn(async move {
                let pool = Pool::default();
                while left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
                    assert_eq!(sender.send(&pool, request.clone()).await.status(), Some(204));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

fn request(sink: SocketAddr) -> Request {
    let endpoint = Endpoint::new(Settings {
        target: Target::parse(&format!("http://{sink}/hook"), false).unwrap(),
        secrets: vec![SigningKey { secret: Secret::generate([7; 32]), valid_until: None }],
        headers: CustomHeaders::default(),
        auth: None,
        envelope: Envelope::Raw,
    });
    let message = Message {
        id: EventId::from_bits(1),
        event_type: EventType::parse("order.paid").unwrap(),
        accepted_at: Timestamp::from_millis(0),
        payload: Bytes::from(vec![b'1'; 512]),
        body: Body::Json,
    };
    Request {
        endpoint: Arc::new(endpoint.unwrap()),
        message: Arc::new(message),
        delivery: DeliveryId::from_bits(2),
        number: 1,
        expires_at: None,
        timeout: Millis::seconds(10),
        now: Timestamp::from_millis(1_614_265_330_000),
    }
}

/// A server on a thread of its own that reads the body and answers 204.
fn start_sink() -> SocketAddr {
    let (tell, told) = std::sync::mpsc::channel();
    let serve = async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        tell.send(listener.local_addr().unwrap()).unwrap();
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            let service = service_fn(|request: http::Request<Incoming>| async move {
                request.into_body().collect().await.unwrap();
                let answer = http::Response::builder().status(204).body(Empty::<Bytes>::new());
                Ok::<_, Infallible>(answer.unwrap())
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
            );
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    std::thread::Builder::new().name("sink".to_owned()).spawn(move || runtime.block_on(serve)).unwrap();
    told.recv().unwrap()
}

/// What this thread has used of its core.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}
