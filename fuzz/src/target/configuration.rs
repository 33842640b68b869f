//! The file with the operator's settings, and the same settings in the environment.
//!
//! Laws: whatever is wrong is told in words and never a panic; a setting means the same in the file and in the environment;
//! what was refused there is refused here.

use tidegate::reading::{environment_settings, file_settings};

/// Input: the text of a `tidegate.toml`.
pub fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let from_file = file_settings(text);
    if let Err(problems) = &from_file {
        assert!(problems.contains("in the configuration"), "{problems}");
    }
    for line in text.lines() {
        check_line(line);
    }
}

/// A line `key = "value"` alone, once in a file and once in a variable.
fn check_line(line: &str) {
    let Some((key, value)) = line.split_once('=') else { return };
    let (key, value) = (key.trim(), value.trim());
    let Some(value) = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) else { return };
    let plain = |text: &str| !text.contains(['"', '\\']) && !text.chars().any(char::is_control);
    let is_key = !key.is_empty() && key.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
    if !is_key || !plain(value) {
        return;
    }
    let in_file = file_settings(line);
    let in_list = file_settings(&format!("{key} = [\"{value}\"]"));
    let variable = format!("TIDEGATE_{}", key.to_ascii_uppercase());
    if ["TIDEGATE_CONFIG", "TIDEGATE_SECRET_KEY", "TIDEGATE_BOOTSTRAP_KEY"].contains(&&*variable) {
        return;
    }
    let in_environment = environment_settings(vec![(variable, value.to_owned())]);
    assert_eq!(in_file.as_ref().ok(), in_environment.as_ref().ok(), "{line}");
    assert_eq!(in_file.as_ref().ok(), in_list.as_ref().ok(), "a list of one is the one: {line}");
}
