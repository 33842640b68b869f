//! SIGTERM and SIGINT: please leave. And SIGXFSZ, which kills whoever does not mind it.

use anyhow::Context;
use rustix::process;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask us to leave.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on they are ours, for as long as the process lives.
    pub(super) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        // Once it has been listened to, it kills nobody: a write beyond the limit of a file's length is an error like others.
        drop(listen(SignalKind::from_raw(process::Signal::XFSZ.as_raw()))?);
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    /// Returns when one comes.
    pub(super) async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
