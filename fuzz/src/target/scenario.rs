//! A scenario file, and a recording that it names.
//!
//! Laws: a file is used or refused with problems whose lines lie within it, in their order, and never a panic; the verdict does
//! not depend on how often one asks; line ends of Windows change nothing about what is accepted.

use std::io;

use tidegate_sim::scenario::file::{Problems, ScenarioFile};

/// Between the file and the recording.
const RECORDING: &str = "\n#### recording\n";

/// Input: the text of the file; after a line `#### recording` that of the one recording there is.
pub fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let (text, recording) = text.split_once(RECORDING).unwrap_or((text, ""));
    match parse(text, recording) {
        Ok(file) => assert!(!file.name().is_empty()),
        Err(problems) => {
            let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
            assert!(!lines.is_empty() && lines.is_sorted(), "{problems}");
            let last = text.matches('\n').count() + 1;
            assert!(lines.iter().all(|line| (1..=last).contains(line)), "{problems}");
            let again = parse(text, recording).expect_err("as before");
            assert_eq!(again, problems);
        }
    }
}

fn parse(text: &str, recording: &str) -> Result<ScenarioFile, Problems> {
    let recordings = |_: &str| -> io::Result<String> { Ok(recording.to_owned()) };
    ScenarioFile::parse(text, "fuzz", &recordings)
}
