//! The cursor of a list.
//!
//! Laws: what is accepted is exactly what the list itself would give out; it is good for its list and its account alone;
//! every place in a list has a cursor that leads back to it.

use tidegate::reading;

use super::lines;

const LISTS: [&str; 3] = ["deliveries", "events", "attempts"];

/// Input: the account's number on the first line, then the cursor.
pub fn run(data: &[u8]) {
    let [account, text] = lines(data);
    let account = str::from_utf8(account).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1);
    if let Some(bytes) = data.last_chunk() {
        let position = u128::from_be_bytes(*bytes);
        let cursor = reading::cursor_at("deliveries", account, position);
        assert_eq!(reading::cursor("deliveries", account, &cursor), Ok(position));
        assert!(reading::cursor("deliveries", account.wrapping_add(1), &cursor).is_err());
    }
    let Ok(text) = str::from_utf8(text) else { return };
    let read = LISTS.map(|list| reading::cursor(list, account, text));
    assert!(read.iter().flatten().count() <= 1, "a cursor is good for one list");
    for (list, read) in LISTS.into_iter().zip(read) {
        match read {
            Ok(position) => assert_eq!(reading::cursor_at(list, account, position), text),
            Err(refusal) => assert_eq!(refusal.status, 422),
        }
    }
}
