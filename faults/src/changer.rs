//! Changes destinations while a run goes on, whatever is done to the server meanwhile: secrets, URLs, pauses, rates, limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::client::Client;
use crate::clock::{millis, pass};
use crate::dice::Dice;
use crate::world::{Change, World};

/// Secrets that the checker can tell apart, for one destination.
const MOST_SECRETS: u64 = 6;
/// What holds lasts longer than a change may take to hold for certain.
const HELD_MS: u64 = 1_200;

/// Who changes what.
pub(crate) struct Changer {
    pub(crate) client: Client,
    pub(crate) world: Arc<World>,
    pub(crate) dice: Dice,
    secrets: u64,
    changes: u64,
}

/// One at work. It ends when it is dropped, and leaves things as they are.
pub(crate) struct Changing {
    task: tokio::task::JoinHandle<Result<u64>>,
    over: Arc<AtomicBool>,
}

impl Drop for Changing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Changing {
    /// Lets it end what it is about and lift what holds. Says how many changes it made.
    pub(crate) async fn end(&mut self) -> Result<u64> {
        self.over.store(true, Ordering::Relaxed);
        (&mut self.task).await.context("the changer failed")?
    }
}

impl Changer {
    pub(crate) fn new(client: &Client, world: &Arc<World>, dice: Dice) -> Self {
        Self { client: client.clone(), world: world.clone(), dice, secrets: 0, changes: 0 }
    }

    pub(crate) fn start(mut self) -> Changing {
        let over: Arc<AtomicBool> = Arc::default();
        let flag = over.clone();
        let task = tokio::spawn(async move {
            // Each kind once, then as they come.
            let mut turn = 0;
            while !flag.load(Ordering::Relaxed) {
                let kind = if turn < KINDS { turn } else { self.dice.below(KINDS) };
                self.one(kind).await?;
                turn += 1;
                pass(millis(self.dice.below(400))).await;
            }
            Ok(self.changes)
        });
        Changing { task, over }
    }

    async fn one(&mut self, kind: u64) -> Result<()> {
        match kind {
            0 => self.rotate().await,
            1 => self.hold(Change::Pause, Change::Resume).await,
            2 => {
                let rate = [
                    json!({"max": 30, "per": "second", "burst_capacity": 8}),
                    json!({"max": 15, "per": "second", "burst_capacity": 2}),
                ];
                let rate = &rate[usize::from(self.dice.one_in(2))];
                self.change("tuned", Change::Patch(&json!({"rate_limit": rate}))).await
            }
            3 => {
                let path = self.dice.below(1_000_000);
                let Some(renamed) = self.world.find("renamed") else { return Ok(()) };
                let url = format!("http://{}/renamed/{path}", renamed.receiver.address);
                self.change("renamed", Change::Patch(&json!({"url": url}))).await
            }
            4 => {
                let limit = 1 + self.dice.below(5);
                self.change("tuned", Change::Patch(&json!({"max_concurrency": limit}))).await
            }
            5 => {
                let (off, on) = (json!({"active": false}), json!({"active": true}));
                self.hold(Change::Patch(&off), Change::Patch(&on)).await
            }
            _ => self.change("gone", Change::Patch(&json!({"active": true}))).await,
        }
    }

    async fn change(&mut self, name: &str, change: Change<'_>) -> Result<()> {
        self.changes += u64::from(self.world.find(name).is_some());
        self.world.change(&self.client, name, change).await
    }

    /// Nothing goes for a while.
    async fn hold(&mut self, stop: Change<'_>, go: Change<'_>) -> Result<()> {
        self.change("halted", stop).await?;
        pass(millis(HELD_MS + self.dice.below(HELD_MS / 2))).await;
        self.change("halted", go).await
    }

    async fn rotate(&mut self) -> Result<()> {
        if self.secrets >= MOST_SECRETS {
            return Ok(());
        }
        self.secrets += 1;
        // Every other one takes the place of the one before at once.
        let overlap = if self.secrets.is_multiple_of(2) { 0 } else { 1 + self.dice.below(3) };
        let secret: Value = json!({"signing_secret": self.secret(), "overlap_seconds": overlap});
        self.change("renamed", Change::Rotate(&secret)).await
    }

    /// 24 bytes in base64.
    fn secret(&mut self) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let digit = |dice: &mut Dice| dice.any(DIGITS).copied().map_or('A', char::from);
        let digits: String = (0..32).map(|_| digit(&mut self.dice)).collect();
        format!("whsec_{digits}")
    }
}

/// Kinds of changes.
const KINDS: u64 = 7;
