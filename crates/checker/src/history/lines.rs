//! Reads files of one JSON object per line, as a stream: they may be larger than memory.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::de::DeserializeOwned;

use super::{HistoryError, World};

/// Room for a few hundred lines between two reads.
const BUFFER: usize = 1 << 20;

/// Reads `world.json`.
pub fn read_world(directory: &Path) -> Result<World, HistoryError> {
    let file = directory.join("world.json");
    let text =
        std::fs::read_to_string(&file).map_err(|why| HistoryError::Unreadable { file: file.clone(), why })?;
    serde_json::from_str(&text).map_err(|error| HistoryError::Line {
        file,
        line: u64::try_from(error.line()).unwrap_or(0),
        what: error.to_string(),
    })
}

/// Hands each line of `name` to `take`, which may find fault with it. `Ok(false)`: there is no such file.
pub fn read_lines<T: DeserializeOwned>(
    directory: &Path,
    name: &str,
    mut take: impl FnMut(T) -> Result<(), String>,
) -> Result<bool, HistoryError> {
    let file = directory.join(name);
    let unreadable = |why| HistoryError::Unreadable { file: file.clone(), why };
    let opened = match File::open(&file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(unreadable(error)),
    };
    let mut reader = BufReader::with_capacity(BUFFER, opened);
    let (mut text, mut line) = (Vec::new(), 0);
    loop {
        text.clear();
        line += 1;
        if reader.read_until(b'\n', &mut text).map_err(unreadable)? == 0 {
            return Ok(true);
        }
        let whole = text.last() == Some(&b'\n');
        if text.trim_ascii().is_empty() {
            continue;
        }
        let wrong = |what| HistoryError::Line { file: file.clone(), line, what };
        match serde_json::from_slice(&text) {
            Ok(read) => take(read).map_err(wrong)?,
            // Its recorder was cut off in the middle of it.
            Err(_) if !whole => return Ok(true),
            Err(error) => return Err(wrong(error.to_string())),
        }
    }
}
