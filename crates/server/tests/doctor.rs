//! `tidegate doctor`: what it says of a server that is well, and of everything that would keep one from starting.

mod kit;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use kit::{Server, free_port};
use serde_json::json;

/// Asks the doctor about a data directory and an address: whether all is well, and what it says.
fn ask(data_dir: &Path, listen: &str, more: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["doctor", "--listen", listen, "--data-dir"]).arg(data_dir).args(more);
    let output = command.stdin(Stdio::null()).output().expect("the binary starts");
    (output.status.success(), String::from_utf8(output.stdout).expect("text"))
}

/// What it says about one thing, with what is to be done about it.
fn about<'a>(said: &'a str, thing: &str) -> Vec<&'a str> {
    let of_it = |line: &&str| line.get(7..).is_some_and(|rest| rest.starts_with(thing));
    let from = said.lines().position(|line| of_it(&line)).unwrap_or_else(|| panic!("{thing}: {said}"));
    let mut lines = said.lines().skip(from);
    let first = lines.next().into_iter();
    first.chain(lines.take_while(|line| line.starts_with("      "))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_well_is_found_so_running_and_stopped() {
    let mut server = Server::start(&[]).await;
    server.post("/v1/destinations", json!({"name": "a", "url": "http://127.0.0.1:9/"})).await.expect(201);
    let listen = server.base_url.trim_start_matches("http://").to_owned();
    let (well, said) = ask(&server.data_dir, &listen, &[]);
    assert!(well && about(&said, "server")[0].contains("running and ready"), "{said}");
    let elsewhere = server.data_dir.with_file_name("elsewhere");
    let (well, said) = ask(&elsewhere, &listen, &[]);
    assert!(well && about(&said, "server")[0].contains("but not with"), "{said}");
    assert!(about(&said, "data directory")[0].contains("the first start makes it"), "{said}");
    assert!(!elsewhere.exists(), "it only looks");
    let free = format!("127.0.0.1:{}", free_port());
    let (well, said) = ask(&server.data_dir, &free, &[]);
    assert!(well && about(&said, "server")[0].contains("in use by a process"), "{said}");
    assert!(server.stop().await);
    let (well, said) = ask(&server.data_dir, &listen, &[]);
    assert!(well && about(&said, "server")[0].contains("not running"), "{said}");
    assert!(about(&said, "store")[0].contains("every page is whole"), "{said}");
    assert!(about(&said, "key for secrets")[0].contains("fingerprint"), "{said}");
    server.restart().await;
}

/// Goal: nothing that keeps a server from starting escapes the doctor, and it says what to do about it.
/// Method: each trouble is made, looked at, and taken away again; a server that starts in the end has lost nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_a_server_from_starting_is_found() {
    let mut server = Server::start(&[]).await;
    server.post("/v1/destinations", json!({"name": "a", "url": "http://127.0.0.1:9/"})).await.expect(201);
    assert!(server.stop().await);
    let listen = server.base_url.trim_start_matches("http://").to_owned();
    let dir = server.data_dir.clone();
    let (key, aside) = (dir.join("secret.key"), dir.join("aside"));
    let found = |more: &[&str], thing: &str, seen: &str, mend: &str| {
        let (well, said) = ask(&dir, &listen, more);
        let lines = about(&said, thing).join("\n");
        assert!(!well && lines.starts_with("WRONG"), "{said}");
        assert!(lines.contains(seen) && lines.contains(mend), "{seen:?}, {mend:?}: {lines}");
    };

    fs::rename(&key, &aside).unwrap();
    found(&[], "key for secrets", "is not there", "the key that they were sealed with");
    fs::write(&key, format!("{}\n", kit::SECRET_KEY)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    found(&[], "key for secrets", "this one is", "the key that they were sealed with");
    fs::write(&key, "short\n").unwrap();
    found(&[], "key for secrets", "32 bytes", "restore the key");
    fs::rename(&aside, &key).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    found(&[], "key for secrets", "can be read by others", "chmod 600");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();

    let store = dir.join("tidegate.db");
    fs::rename(&store, &aside).unwrap();
    found(&[], "store", "missing or empty", "put the file back");
    fs::write(&store, vec![7; 65_536]).unwrap();
    found(&[], "store", "cannot be read", "restore it from a backup");
    fs::rename(&aside, &store).unwrap();

    let stranger = TcpListener::bind(&listen).expect("the port is free");
    found(&[], "server", "does not answer", "another --listen");
    drop(stranger);
    found(&["--retention", "soon", "--max-in-flight", "none"], "configuration", "retention", "correct");
    found(&["--retention", "soon", "--max-in-flight", "none"], "configuration", "max_in_flight", "correct");

    let (well, said) = ask(&dir, &listen, &[]);
    assert!(well, "{said}");
    server.restart().await;
    let there = server.get("/v1/destinations").await.expect(200);
    assert_eq!(there["items"].as_array().map(Vec::len), Some(1));
}
