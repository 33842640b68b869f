//! The animals that speak HTTP/2.

use std::time::Duration;

use super::catalogue::{Animal, BROKEN, Expect, FLOOD, NOT_HTTP, Wire, animal};
use super::frames::{
    END_HEADERS, END_STREAM, continuation, data, frame, goaway, header, headers, ping, push_promise, reset,
    settings, settings_ack, status, window_update,
};
use super::wire::Step::{self, Deaf, From, Head, Request, Silence, Something};
use super::wire::{again, on_stream, write};

/// Settings by their numbers.
const MAX_STREAMS: u16 = 3;
const WINDOW: u16 = 4;
const MAX_FRAME: u16 = 5;
const REFUSED_STREAM: u32 = 7;

const END: u8 = END_HEADERS | END_STREAM;

fn http2(name: &'static str, steps: Vec<Step>, expect: Expect) -> Animal {
    let script = [vec![write([settings(&[]), settings_ack()].concat())], steps].concat();
    animal(name, Wire::Http2, script, expect)
}

/// Reads each request and does this to its stream.
fn does(name: &'static str, make: impl Fn(u32) -> Vec<u8> + Send + Sync + 'static, expect: Expect) -> Animal {
    http2(name, vec![Request, on_stream(make), From(1)], expect)
}

fn ok(stream: u32) -> Vec<u8> {
    headers(stream, END, &status("200"))
}

/// Opens a window for everything, so that nothing but the buffers of the system holds a request back.
fn wide_open() -> Vec<u8> {
    [settings(&[(WINDOW, 0x7fff_ffff)]), window_update(0, 0x7ff0_0000), settings_ack()].concat()
}

pub(crate) fn all() -> Vec<Animal> {
    [good(), silent(), refusing(), floods(), nonsense()].concat()
}

fn good() -> Vec<Animal> {
    vec![
        does("HTTP/2 as it should be", ok, Expect::Success(200)),
        does("HTTP/2, 500", |stream| headers(stream, END, &status("500")), Expect::HttpError(500)),
        does(
            "HTTP/2, 307 to the metadata",
            |stream| {
                headers(stream, END, &[status("307"), header("location", "http://169.254.169.254/")].concat())
            },
            Expect::Redirect(307),
        ),
    ]
}

fn silent() -> Vec<Animal> {
    let closed = write([settings(&[(WINDOW, 0)]), settings_ack()].concat());
    vec![
        http2("HTTP/2, never an answer", vec![Request, Silence], Expect::Timeout),
        animal("HTTP/2, no greeting", Wire::Http2, vec![Silence], Expect::Timeout),
        animal("HTTP/2, no window", Wire::Http2, vec![closed.clone(), Head, Silence], Expect::Timeout)
            .large(),
        animal(
            "HTTP/2, no streams",
            Wire::Http2,
            vec![write(settings(&[(MAX_STREAMS, 0)])), Silence],
            Expect::Timeout,
        ),
        // Whoever leaves the connection to its task leaks it: the rest of the request can never be written.
        animal("HTTP/2, deaf", Wire::Http2, vec![write(wide_open()), Deaf], Expect::Timeout).large(),
        animal(
            "HTTP/2, answers and takes no body",
            Wire::Http2,
            vec![closed, Head, on_stream(ok), From(1)],
            Expect::Success(200),
        )
        .large(),
        animal(
            "HTTP/2, answers and is deaf",
            Wire::Http2,
            vec![write(wide_open()), Head, on_stream(ok), Deaf],
            Expect::Success(200),
        )
        .large()
        .alone(),
        http2(
            "HTTP/2, a body that never comes",
            vec![Request, on_stream(|stream| headers(stream, END_HEADERS, &status("200"))), Silence],
            Expect::Success(200),
        ),
        http2(
            "HTTP/2, a head that never ends",
            vec![Request, on_stream(|stream| headers(stream, 0, &status("200"))), Silence],
            Expect::Timeout,
        ),
    ]
}

fn refusing() -> Vec<Animal> {
    vec![
        does("HTTP/2, refused stream", |stream| reset(stream, REFUSED_STREAM), BROKEN),
        does("HTTP/2, reset stream", |stream| reset(stream, 2), BROKEN),
        does("HTTP/2, goes away, nothing done", |_| goaway(0, 0), BROKEN),
        does("HTTP/2, goes away in anger", |_| goaway(0, 11), BROKEN),
        animal(
            "HTTP/2, goes away at once",
            Wire::Http2,
            vec![write([settings(&[]), goaway(0, 0)].concat()), Silence],
            BROKEN,
        ),
        does(
            "HTTP/2, answers and goes away",
            |stream| [ok(stream), goaway(stream, 0)].concat(),
            Expect::Success(200),
        ),
        does(
            "HTTP/2, answers and resets",
            |stream| [headers(stream, END_HEADERS, &status("200")), reset(stream, 8)].concat(),
            Expect::Success(200),
        ),
        http2("HTTP/2, closes without an answer", vec![Request], BROKEN),
        animal("HTTP/2, closes after the handshake", Wire::Http2, vec![Something], BROKEN),
    ]
}

fn floods() -> Vec<Animal> {
    let flood =
        |name, what: Vec<u8>, expect| http2(name, vec![Request, again(what.repeat(2_000), FLOOD)], expect);
    let on_its_stream = |name, make: fn(u32) -> Vec<u8>, expect| {
        http2(
            name,
            vec![Request, Step::Again(std::sync::Arc::new(move |stream| make(stream).repeat(2_000)), FLOOD)],
            expect,
        )
    };
    let many = |stream: u32| headers(stream, 0, &status("200"));
    let endless = |stream: u32| continuation(stream, 0, &header("a-header", "and its value"));
    let bomb = |stream: u32| {
        let block: Vec<u8> = (0..1_500).flat_map(|_| header("a-header", &"v".repeat(60))).collect();
        [status("200"), block]
            .concat()
            .chunks(16_000)
            .enumerate()
            .map(|(n, part)| match n {
                0 => headers(stream, END_STREAM, part),
                _ => continuation(stream, 0, part),
            })
            .chain([continuation(stream, END_HEADERS, &[])])
            .collect::<Vec<_>>()
            .concat()
    };
    vec![
        flood("HTTP/2, pings", ping(1), NOT_HTTP),
        flood("HTTP/2, settings", settings(&[(WINDOW, 65_535)]), NOT_HTTP),
        flood("HTTP/2, priorities", frame(2, 0, 1, &[0, 0, 0, 0, 1]), NOT_HTTP),
        flood("HTTP/2, frames of no known kind", frame(0xee, 0, 0, b"?"), NOT_HTTP),
        flood("HTTP/2, resets of unknown streams", reset(77, 8), BROKEN),
        on_its_stream(
            "HTTP/2, interim answers",
            |stream| headers(stream, END_HEADERS, &status("103")),
            NOT_HTTP,
        ),
        http2(
            "HTTP/2, empty data",
            vec![
                Request,
                on_stream(|stream| headers(stream, END_HEADERS, &status("200"))),
                Step::Again(std::sync::Arc::new(|stream| data(stream, 0, &[]).repeat(2_000)), FLOOD),
            ],
            Expect::Success(200),
        ),
        http2(
            "HTTP/2, a body without end",
            vec![
                Request,
                on_stream(|stream| headers(stream, END_HEADERS, &status("200"))),
                Step::Again(std::sync::Arc::new(|stream| data(stream, 0, &[b'x'; 4_096])), Duration::ZERO),
            ],
            Expect::Success(200),
        ),
        http2(
            "HTTP/2, continuations without end",
            vec![Request, on_stream(many), Step::Again(std::sync::Arc::new(endless), Duration::ZERO)],
            BROKEN,
        ),
        does("HTTP/2, a bomb of headers", bomb, BROKEN),
    ]
}

fn nonsense() -> Vec<Animal> {
    vec![
        animal(
            "HTTP/1.1 where HTTP/2 was agreed on",
            Wire::Http2,
            vec![Something, write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"), Silence],
            BROKEN,
        ),
        does("HTTP/2, a pushed stream", |stream| [push_promise(stream, 2), ok(stream)].concat(), BROKEN),
        does("HTTP/2, no status", |stream| headers(stream, END, &header("a", "b")), BROKEN),
        does("HTTP/2, a status that is none", |stream| headers(stream, END, &status("2x0")), BROKEN),
        does("HTTP/2, data before headers", |stream| data(stream, END_STREAM, b"abc"), BROKEN),
        does("HTTP/2, headers on stream 0", |_| headers(0, END, &status("200")), BROKEN),
        does("HTTP/2, a stream that nobody opened", |_| ok(99), BROKEN),
        does("HTTP/2, HPACK that is none", |stream| headers(stream, END, &[0xff; 9]), BROKEN),
        does(
            "HTTP/2, a window that overflows",
            |_| [window_update(0, 0x7fff_ffff), window_update(0, 0x7fff_ffff)].concat(),
            BROKEN,
        ),
        does("HTTP/2, a window that grows by nothing", |stream| window_update(stream, 0), BROKEN),
        does("HTTP/2, a frame that is too large", |stream| data(stream, 0, &vec![0; 70_000]), BROKEN),
        does("HTTP/2, a setting out of range", |_| settings(&[(MAX_FRAME, 1)]), BROKEN),
        does(
            "HTTP/2, a forbidden header",
            |stream| headers(stream, END, &[status("200"), header("connection", "close")].concat()),
            BROKEN,
        ),
    ]
}
