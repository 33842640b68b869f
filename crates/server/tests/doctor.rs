//! `tidegate doctor`: what it says of a server that is well, and of everything that would keep one from starting.

mod kit;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kit::{Server, free_port};
use serde_json::json;

/// Asks the doctor about a data directory and an address: whether all is well, and what it says.
fn ask(data_dir: &Path, listen: &str, more: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["doctor", "--listen", listen, "--data-dir"]).arg(data_dir).args(more);
    answer(&mut command)
}

fn answer(command: &mut Command) -> (bool, String) {
    let output = command.stdin(Stdio::null()).output().expect("the binary starts");
    (output.status.success(), String::from_utf8(output.stdout).expect("text"))
}

/// The binary as somebody runs it who is bound by the rights of files: also where root runs the tests.
fn tidegate() -> Command {
    let binary = env!("CARGO_BIN_EXE_tidegate");
    if !rustix::process::geteuid().is_root() {
        return Command::new(binary);
    }
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-dac_override,-dac_read_search", "--", binary]);
    command
}

/// A directory of this test alone.
fn own_directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("the build's directory is ours");
    path
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
    server.respawn();
    assert!(!server.ends().await, "{}", server.log());
    assert!(server.log().contains("secret.key is not there") && server.log().contains("put it back"));
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

/// Goal: what keeps a first start from making its store is found by the doctor, and by that start before it makes anything.
/// Method: the same settings for both, with one trouble each.
#[test]
fn what_keeps_a_first_start_from_beginning_is_found() {
    let home = own_directory("doctor-first");
    let data_dir = home.join("data");
    let (locked, file, link) = (home.join("locked"), home.join("file"), home.join("link"));
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    fs::write(&file, "no certificate").unwrap();
    std::os::unix::fs::symlink(home.join("gone"), &link).unwrap();
    let missing = home.join("missing.pem");
    let listen = format!("127.0.0.1:{}", free_port());
    let text = |path: &Path| path.to_str().expect("text").to_owned();

    let directory = "data directory";
    for (setting, value, thing, seen) in [
        ("DATA_DIR", text(&locked.join("deep/data")), directory, "Permission denied"),
        ("DATA_DIR", text(&file.join("data")), directory, "not a directory"),
        ("DATA_DIR", text(&link), directory, "No such file"),
        ("EXTRA_CA_FILE", text(&missing), "certificates", "missing.pem"),
        ("EXTRA_CA_FILE", text(&file), "certificates", "holds no certificate"),
        ("SECRET_KEY_FILE", text(&locked.join("key")), "key for secrets", "Permission denied"),
        ("SECRET_KEY_FILE", text(&home.join("none/key")), "key for secrets", "No such file"),
        ("SECRET_KEY", "short".to_owned(), "configuration", "TIDEGATE_SECRET_KEY"),
        ("BOOTSTRAP_KEY", "tg_short".to_owned(), "configuration", "TIDEGATE_BOOTSTRAP_KEY"),
        ("BOOTSTRAP_KEY", "tg_short".to_owned(), "configuration", "32 to 200"),
    ] {
        let run = |what: &str| {
            let mut command = tidegate();
            command.arg(what).env("TIDEGATE_LISTEN", &listen).env("TIDEGATE_DATA_DIR", &data_dir);
            command.env(format!("TIDEGATE_{setting}"), &value);
            command
        };
        let (well, said) = answer(&mut run("doctor"));
        let lines = about(&said, thing).join("\n");
        assert!(!well && lines.starts_with("WRONG"), "{setting}={value}: {said}");
        assert!(lines.contains(seen) && lines.contains('→'), "{seen:?}: {lines}");
        let started = run("serve").stdin(Stdio::null()).output().expect("it starts");
        let error = String::from_utf8_lossy(&started.stderr).into_owned();
        assert_eq!(started.status.code(), Some(2), "{setting}={value}: {error}");
        // Only the key for secrets is made after the store.
        assert!(thing == "key for secrets" || !data_dir.exists(), "{setting}={value}: {error}");
        let _ = fs::remove_dir_all(&data_dir);
    }
    fs::remove_dir_all(&home).unwrap();
}
