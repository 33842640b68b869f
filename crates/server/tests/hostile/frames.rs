//! Frames of HTTP/2, made by hand: what a library would never send is the point.

const PREFACE: usize = 24;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// One frame of any kind.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame is short").to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

pub(crate) fn data(stream: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    frame(0, flags, stream, payload)
}

/// `block` is in HPACK: see [`status`] and [`header`].
pub(crate) fn headers(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    frame(1, flags, stream, block)
}

pub(crate) fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(3, 0, stream, &code.to_be_bytes())
}

pub(crate) fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (name, value) in values {
        payload.extend(name.to_be_bytes());
        payload.extend(value.to_be_bytes());
    }
    frame(4, 0, 0, &payload)
}

pub(crate) fn settings_ack() -> Vec<u8> {
    frame(4, 1, 0, &[])
}

pub(crate) fn push_promise(stream: u32, promised: u32) -> Vec<u8> {
    let mut payload = promised.to_be_bytes().to_vec();
    payload.extend([0x82, 0x86, 0x84]); // GET, http, /
    frame(5, END_HEADERS, stream, &payload)
}

pub(crate) fn ping(number: u64) -> Vec<u8> {
    frame(6, 0, 0, &number.to_be_bytes())
}

pub(crate) fn goaway(last: u32, code: u32) -> Vec<u8> {
    let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
    frame(7, 0, 0, &payload)
}

pub(crate) fn window_update(stream: u32, by: u32) -> Vec<u8> {
    frame(8, 0, stream, &by.to_be_bytes())
}

pub(crate) fn continuation(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    frame(9, flags, stream, block)
}

/// `:status`, as a literal.
pub(crate) fn status(code: &str) -> Vec<u8> {
    let mut block = vec![0x08, u8::try_from(code.len()).expect("three digits")];
    block.extend(code.as_bytes());
    block
}

/// A header as a literal with a new name: name and value below 127 bytes each.
pub(crate) fn header(name: &str, value: &str) -> Vec<u8> {
    let mut block = vec![0];
    for text in [name, value] {
        block.push(u8::try_from(text.len()).ok().filter(|length| *length < 127).expect("a short text"));
        block.extend(text.as_bytes());
    }
    block
}

/// What a client has sent so far, taken apart as it comes in.
#[derive(Default)]
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    greeted: bool,
}

impl Incoming {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// The next whole frame: kind, flags, stream.
    pub(crate) fn next(&mut self) -> Option<(u8, u8, u32)> {
        if !self.greeted {
            if self.bytes.len() < PREFACE {
                return None;
            }
            self.bytes.drain(..PREFACE);
            self.greeted = true;
        }
        let &[a, b, c, kind, flags, s0, s1, s2, s3] = self.bytes.first_chunk::<9>()?;
        let length = usize::try_from(u32::from_be_bytes([0, a, b, c])).ok()?;
        if self.bytes.len() < 9 + length {
            return None;
        }
        self.bytes.drain(..9 + length);
        Some((kind, flags, u32::from_be_bytes([s0 & 0x7f, s1, s2, s3])))
    }
}
