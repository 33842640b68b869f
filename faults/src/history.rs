//! The histories of a run, as its checker reads them: one JSON object a line, in files beside the server's data.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, json};

use crate::clock::nanos;

/// The one node of a run.
pub(crate) const NODE: &str = "a";

/// Which history.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Book {
    Producer,
    Receiver,
    Faults,
    Api,
    Resources,
}

impl Book {
    const ALL: [Self; 5] = [Self::Producer, Self::Receiver, Self::Faults, Self::Api, Self::Resources];

    const fn file(self) -> &'static str {
        match self {
            Self::Producer => "producer.jsonl",
            Self::Receiver => "receiver.jsonl",
            Self::Faults => "faults.jsonl",
            Self::Api => "api.jsonl",
            Self::Resources => "resources.jsonl",
        }
    }
}

/// All histories of one run.
pub(crate) struct History {
    pub(crate) directory: PathBuf,
    books: [Mutex<BufWriter<File>>; 5],
}

impl History {
    /// Empty ones, in a directory that is there.
    pub(crate) fn begin(directory: &Path) -> Result<Self> {
        let open = |book: Book| {
            let path = directory.join(book.file());
            let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
            anyhow::Ok(Mutex::new(BufWriter::new(file)))
        };
        let [producer, receiver, faults, api, resources] = Book::ALL;
        let books = [open(producer)?, open(receiver)?, open(faults)?, open(api)?, open(resources)?];
        Ok(Self { directory: directory.to_owned(), books })
    }

    /// Adds a line.
    pub(crate) fn write(&self, book: Book, line: &impl Serialize) {
        let mut text = serde_json::to_vec(line).expect("what is recorded is text and numbers");
        text.push(b'\n');
        let mut file = self.books[book as usize].lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk under the histories themselves: the checker misses what is not there.
        let _ = file.write_all(&text);
    }

    /// Notes what is done to the server.
    pub(crate) fn fault(&self, kind: &str, detail: &Value) {
        self.write(Book::Faults, &json!({"t": nanos(), "kind": kind, "node": NODE, "detail": detail}));
    }

    /// Notes what the API answered just now.
    pub(crate) fn poll(&self, path: &str, status: u16, body: &Value) {
        let line = json!({"kind": "poll", "t": nanos(), "path": path, "status": status, "body": body});
        self.write(Book::Api, &line);
    }

    /// Writes what the run is made of.
    pub(crate) fn world(&self, world: &Value) -> Result<()> {
        fs::write(self.directory.join("world.json"), serde_json::to_vec_pretty(world)?)?;
        Ok(())
    }

    /// Everything is in the files from here on.
    pub(crate) fn flush(&self) -> Result<()> {
        for book in &self.books {
            book.lock().unwrap_or_else(PoisonError::into_inner).flush()?;
        }
        Ok(())
    }
}
