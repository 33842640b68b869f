//! The cluster under test: a database, perhaps with a standby, and nodes that reach it each by a way of its own.

use std::path::Path;

use crate::kit::{Client, Postgres, SECRET_KEY, Server};
use crate::proxy::Proxy;

/// Nodes of the cluster.
pub(crate) const NODES: usize = 3;
/// Where Debian keeps the library that lies about the time.
const FAKETIME: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
];

/// One server with its way to the database.
pub(crate) struct Node {
    pub(crate) server: Server,
    pub(crate) proxy: Proxy,
}

/// What a run needs beside three nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// A synchronous standby.
    pub(crate) standby: bool,
    /// Clocks an hour apart.
    pub(crate) clocks_apart: bool,
}

/// All that runs.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    pub(crate) primary: Postgres,
    pub(crate) standby: Option<Postgres>,
    needs: Needs,
}

/// The library that lies about the time, if it is installed.
pub(crate) fn faketime() -> Option<&'static str> {
    FAKETIME.into_iter().find(|path| Path::new(path).exists())
}

impl Cluster {
    /// A database and the first node.
    pub(crate) async fn start(programs: &Path, needs: Needs) -> Self {
        let primary = Postgres::start(programs);
        primary.sql("postgres", "create database tidegate");
        let standby = needs.standby.then(|| Postgres::standby_of(&primary));
        let mut cluster = Self { nodes: Vec::new(), primary, standby, needs };
        cluster.add_node().await;
        cluster
    }

    /// One more node.
    pub(crate) async fn add_node(&mut self) {
        let number = self.nodes.len();
        let targets: Vec<u16> =
            [&self.primary].into_iter().chain(&self.standby).map(|server| server.port).collect();
        let proxy = Proxy::start(&targets).await;
        let ports = proxy.ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let hosts = "&host=127.0.0.1".repeat(targets.len());
        let url = format!(
            "postgres:///tidegate?user=postgres&sslmode=disable&target_session_attrs=read-write{hosts}&port={ports}"
        );
        let offset = ["+3600s", "-3600s", "+0s"][number % 3];
        let mut environment = vec![("TIDEGATE_SECRET_KEY", SECRET_KEY)];
        if let (true, Some(library)) = (self.needs.clocks_apart, faketime()) {
            let lie = [
                ("LD_PRELOAD", library),
                ("FAKETIME", offset),
                ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
                ("DONT_FAKE_MONOTONIC", "1"),
            ];
            environment.extend(lie);
        }
        let name = format!("node-{number}");
        let server = Server::start_in(&environment, &["--database-url", &url, "--node-name", &name]).await;
        self.nodes.push(Node { server, proxy });
    }

    /// Clients of all nodes.
    pub(crate) fn clients(&self) -> Vec<Client> {
        self.nodes.iter().map(|node| node.server.client()).collect()
    }
}
