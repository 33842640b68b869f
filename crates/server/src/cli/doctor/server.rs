//! Is a server running where this configuration says, or could one?

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::Finding;
use crate::config::Config;

/// A server on this machine answers faster.
const PATIENCE: Duration = Duration::from_secs(3);

/// `in_use` says whether a process has the data directory, where that is known.
pub(super) fn check(config: &Config, in_use: Option<bool>) -> Finding {
    let address = config.listen;
    let directory = config.data_dir.display();
    match TcpListener::bind(address) {
        Ok(_) if in_use == Some(true) => {
            return Finding::better(
                "server",
                format!("{directory} is in use by a process, but nobody listens on {address}"),
                "give this command the settings of that server (--listen, or the same file and environment)",
            );
        }
        Ok(_) => return Finding::well("server", format!("not running; {address} is free")),
        Err(error) if error.kind() != std::io::ErrorKind::AddrInUse => {
            return Finding::wrong(
                "server",
                format!("{address}: {error}"),
                "listen on an address of this machine (--listen)",
            );
        }
        Err(_) => {}
    }
    match ask(config) {
        Ok(answer) if answer.starts_with("HTTP/1.1 200") && in_use == Some(false) => Finding::better(
            "server",
            format!("running and ready on {address}, but not with {directory}"),
            "give this command the settings of that server (--data-dir, or the same file and environment)",
        ),
        Ok(answer) if answer.starts_with("HTTP/1.1 200") => {
            Finding::well("server", format!("running and ready on {address}"))
        }
        Ok(answer) => {
            let line = answer.lines().next().unwrap_or_default().to_owned();
            Finding::wrong(
                "server",
                format!("{address} answers {line:?} to /readyz"),
                "look at its log; or something else listens there",
            )
        }
        Err(error) => Finding::wrong(
            "server",
            format!("{address} is taken, but does not answer: {error}"),
            "find out what listens there (ss -ltnp), or use another --listen",
        ),
    }
}

fn ask(config: &Config) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&config.listen, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(4_096).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
