//! Two nodes behind PgBouncer in transaction mode: no two transactions of a node are sure to meet the same session.

mod kit;

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kit::{Postgres, Receiver, Reply, SECRET_KEY, Server, free_port, now, numbered_event, secs, until};
use serde_json::json;

/// Where Debian keeps it.
const PGBOUNCER: &str = "/usr/sbin/pgbouncer";
/// Sessions that all connections of both nodes share: fewer than there are connections.
const SESSIONS: usize = 4;
const EVENTS: u64 = 200;

/// A pooler that ends with this process.
struct Pooler {
    port: u16,
    process: Child,
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Pooler {
    fn start(postgres: &Postgres) -> Self {
        let port = free_port();
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pgbouncer-{port}"));
        fs::create_dir_all(&home).expect("the build's directory is ours");
        let file = home.join("pgbouncer.ini");
        let user = if rustix::process::geteuid().is_root() { "user = postgres" } else { "" };
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\nserver_reset_query =\n\
             default_pool_size = {SESSIONS}\n{user}\n",
            postgres.port
        );
        fs::write(&file, settings).expect("its directory is there");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", PGBOUNCER]).arg(&file);
        let process = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("it is installed");
        let began = now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < secs(20), "PgBouncer does not start with {}", file.display());
        }
        Self { port, process }
    }
}

#[tokio::test]
async fn two_nodes_work_through_a_pooler() {
    let (Some(programs), true) = (Postgres::programs(), Path::new(PGBOUNCER).exists()) else {
        kit::skip("PostgreSQL or PgBouncer is not installed (Debian: apt-get install postgresql pgbouncer)");
        return;
    };
    let postgres = Postgres::start(&programs);
    let pooler = Pooler::start(&postgres);
    let url = |port| format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable");
    let (pooled, direct) = (url(pooler.port), url(postgres.port));
    let environment = [("TIDEGATE_SECRET_KEY", SECRET_KEY)];
    // One hears of others over a connection of its own; the other has none and asks.
    let listens = ["--database-url", &pooled, "--database-listen-url", &direct, "--node-name", "listens"];
    let mut listens = Server::start_in(&environment, &listens).await;
    let asks = Server::start_in(&environment, &["--database-url", &pooled, "--node-name", "asks"]).await;

    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let mut destinations = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let body = json!({"name": name, "url": format!("{}/{name}", receiver.url), "ordering": "fifo"});
        let made = listens.post("/v1/destinations", body).await.expect(201);
        destinations.push(made["id"].clone());
    }
    until(secs(20), "both nodes have slots", async || {
        let nodes = asks.get("/v1/nodes").await.expect(200);
        let slots = nodes["items"].as_array().expect("a list").iter().map(|node| node["slot_count"].as_u64());
        slots.filter(|count| count.is_some_and(|count| count > 0)).count() == 2
    })
    .await;
    for number in 0..EVENTS {
        let node = if number % 2 == 0 { &listens } else { &asks };
        node.post("/v1/outbound-events", numbered_event("order.created", None, number)).await.expect(202);
    }
    let expected = usize::try_from(EVENTS).expect("few") * destinations.len();
    until(secs(60), "everything arrives", async || receiver.count() >= expected).await;
    assert_eq!(receiver.count(), expected, "nothing comes twice");

    // A node dies; the other takes over what it had, through the same pooler.
    listens.kill9();
    asks.post("/v1/outbound-events", numbered_event("order.created", None, EVENTS)).await.expect(202);
    until(secs(60), "the other delivers for all", async || receiver.count() >= expected + destinations.len())
        .await;
    for log in [listens.log(), asks.log()] {
        assert!(!log.contains("prepared statement"), "{log}");
    }
}
