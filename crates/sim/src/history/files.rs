//! Files of one JSON object per line. What cannot be written is told at the end, once.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::Value;

pub(super) struct Files {
    pub(super) producer: Lines,
    pub(super) receiver: Lines,
    pub(super) faults: Lines,
    pub(super) api: Lines,
}

impl Files {
    pub(super) fn create(directory: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let lines = |name| Lines::create(&directory.join(name));
        let (producer, receiver) = (lines("producer.jsonl")?, lines("receiver.jsonl")?);
        Ok(Self { producer, receiver, faults: lines("faults.jsonl")?, api: lines("api.jsonl")? })
    }

    pub(super) fn finish(self) -> io::Result<()> {
        [self.producer, self.receiver, self.faults, self.api].into_iter().try_for_each(Lines::finish)
    }
}

pub(super) struct Lines {
    file: BufWriter<File>,
    failed: Option<io::Error>,
}

impl Lines {
    fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(File::create(path)?), failed: None })
    }

    pub(super) fn write(&mut self, line: &Value) {
        if self.failed.is_none() {
            self.failed = writeln!(self.file, "{line}").err();
        }
    }

    fn finish(mut self) -> io::Result<()> {
        self.failed.map_or(Ok(()), Err)?;
        self.file.flush()
    }
}
