//! The headers that a customer adds to each request.
//!
//! Laws: what is accepted fits into a request as it stands, and names neither one of ours nor one of the connection's; it
//! can be read again, and is the same; a refusal never quotes a value.

use http::{HeaderName, HeaderValue};
use tidegate_core::headers::CustomHeaders;

/// Parts of names that must never get through, whatever stands around them.
const OURS: [&str; 7] =
    ["webhook-", "tidegate-", "content-", "proxy-", "x-forwarded-", "metadata", "x-aws-ec2-"];
const OF_THE_CONNECTION: [&str; 6] =
    ["host", "connection", "transfer-encoding", "upgrade", "expect", "cookie"];

/// Input: `name: value` on each line.
pub fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let pairs: Vec<(&str, &str)> = text.split('\n').filter_map(|line| line.split_once(':')).collect();
    let checked = match CustomHeaders::parse(pairs.iter().copied()) {
        Ok(checked) => checked,
        Err(fault) => {
            assert!(fault.field.starts_with("custom_headers"), "{fault}");
            return;
        }
    };
    let headers: Vec<(&str, &str)> = checked.iter().collect();
    assert_eq!(headers.len(), pairs.len(), "none is dropped");
    assert!(headers.len() <= 32);
    for ((name, value), (written, as_written)) in headers.iter().zip(&pairs) {
        assert_eq!((*name, *value), (&*written.to_ascii_lowercase(), *as_written), "sent as it was written");
        HeaderName::from_bytes(name.as_bytes()).expect("a name that can be sent");
        HeaderValue::from_bytes(value.as_bytes()).expect("a value that can be sent");
        assert!(!value.contains(['\r', '\n', '\0']) && value.len() <= 4_096);
        assert!(!OURS.iter().any(|start| name.starts_with(start)), "{name}");
        assert!(!OF_THE_CONNECTION.contains(name), "{name}");
    }
    assert_eq!(CustomHeaders::parse(headers.iter().copied()), Ok(checked.clone()));
}
