//! The animals of the zoo: what each does, and what must come of it.

use std::time::Duration;

use super::tls::Certificate;
use super::wire::Step::{self, Deaf, From, HalfClose, Request, Reset, Silence, Something};
use super::wire::{again, write};

/// How a destination is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Http,
    /// HTTP/1.1 in TLS.
    Https(Certificate),
    /// HTTP/2 in TLS.
    Http2,
    /// The URL says https, and TLS is not spoken, or only by the script.
    NoTls,
    /// Nobody is let in: the first packet of a connection is dropped.
    Full,
}

/// What must come of each attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    Success(u16),
    HttpError(u16),
    Redirect(u16),
    /// Three of them disable the destination.
    Gone,
    Timeout,
    /// A network error, and what is said of it.
    Network(&'static str),
    /// A network error or this answer: which one is a matter of who is faster.
    NetworkOr(&'static str),
    /// 429: the destination waits so many seconds.
    Throttled(i64),
    /// 503: the destination waits so many seconds.
    Unavailable(i64),
}

/// One way to misbehave.
#[derive(Clone)]
pub(crate) struct Animal {
    pub(crate) name: &'static str,
    pub(crate) wire: Wire,
    pub(crate) script: Vec<Step>,
    pub(crate) expect: Expect,
    /// After what it did its connection must not carry another request.
    pub(crate) alone: bool,
    /// It gets events that are too large for the buffers in between.
    pub(crate) large: bool,
}

impl Animal {
    /// Its connection is never used again.
    pub(crate) fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// It gets large events.
    pub(crate) fn large(mut self) -> Self {
        self.large = true;
        self
    }
}

pub(crate) const BROKEN: Expect = Expect::Network("connection broken");
pub(crate) const NOT_HTTP: Expect = Expect::Network("not a valid HTTP answer");
/// What comes again after so long, many times over, is a flood: no answer is that long.
pub(crate) const FLOOD: Duration = Duration::from_millis(2);
const SLOWLY: Duration = Duration::from_millis(200);

pub(crate) fn animal(name: &'static str, wire: Wire, script: Vec<Step>, expect: Expect) -> Animal {
    Animal { name, wire, script, expect, alone: false, large: false }
}

/// Reads the request, does this, and closes.
fn http(name: &'static str, steps: Vec<Step>, expect: Expect) -> Animal {
    let script = [vec![Request], steps].concat();
    animal(name, Wire::Http, script, expect)
}

/// Reads the request, answers so, and waits for the next one.
fn answers(name: &'static str, text: impl Into<Vec<u8>>, expect: Expect) -> Animal {
    animal(name, Wire::Http, vec![Request, write(text), From(0)], expect)
}

fn head(status: &str, headers: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}\r\n")
}

/// All that speak HTTP/1.1, with and without TLS.
pub(crate) fn http1() -> Vec<Animal> {
    [silent(), heads(), bodies(), interim(), statuses(), breaks(), reuse(), waits(), tls()].concat()
}

fn silent() -> Vec<Animal> {
    vec![
        animal("drops the first packet", Wire::Full, vec![], Expect::Timeout),
        http("reads and never answers", vec![Silence], Expect::Timeout),
        animal("accepts and reads nothing", Wire::Http, vec![Deaf], Expect::Timeout).large(),
        http("a status line and then silence", vec![write("HTTP/1.1 200 OK\r\n"), Silence], Expect::Timeout),
        http(
            "a head byte by byte",
            vec![write("HTTP/1.1 200 OK\r\na: "), again("b", SLOWLY)],
            Expect::Timeout,
        ),
        http("no end of a head, slowly", vec![again("HTTP/1.1", SLOWLY)], Expect::Timeout),
    ]
}

fn heads() -> Vec<Animal> {
    let ok = |headers: &str| head("200 OK", &format!("content-length: 0\r\n{headers}"));
    let many = |count: usize| (1..count).map(|n| format!("h{n}: v\r\n")).collect::<String>();
    vec![
        answers("100 headers", ok(&many(100)), Expect::Success(200)),
        answers("101 headers", ok(&many(101)), NOT_HTTP),
        answers("a header of 60 KiB", ok(&format!("a: {}\r\n", "x".repeat(60_000))), Expect::Success(200)),
        answers("a header of 80 KiB", ok(&format!("a: {}\r\n", "x".repeat(80_000))), NOT_HTTP),
        http(
            "a head without end",
            vec![write("HTTP/1.1 200 OK\r\na: "), again("b".repeat(4_096), Duration::ZERO)],
            NOT_HTTP,
        ),
        answers(
            "headers that are no UTF-8",
            [b"HTTP/1.1 500 No\r\nx-\xff: y\r\n\r\n".as_slice()].concat(),
            NOT_HTTP,
        ),
        answers(
            "values that are no UTF-8",
            b"HTTP/1.1 500 No\r\nx: \xff\xfe\r\ncontent-length: 0\r\n\r\n".as_slice(),
            Expect::HttpError(500),
        ),
        answers("NUL in a value", ok("a: b\0c\r\n"), NOT_HTTP),
        answers("NUL in a status line", "HTTP/1.1 200 O\0K\r\n\r\n", NOT_HTTP),
        // Whoever reads must take it for CRLF (RFC 9112, 2.2), and the connection may go on.
        answers("lines that end in LF alone", "HTTP/1.1 200 OK\ncontent-length: 0\n\n", Expect::Success(200)),
        answers(
            "an error whose lines end in LF alone",
            "HTTP/1.1 500 No\nx: y\ncontent-length: 2\n\nno",
            Expect::HttpError(500),
        ),
        answers("a blank before the colon", ok("a : b\r\n"), NOT_HTTP),
        answers("a folded header", ok("a: b\r\n c\r\n"), NOT_HTTP),
        answers("a lone CR in a value", ok("a: b\rc: d\r\n"), NOT_HTTP),
        answers("cookies", ok("set-cookie: a=b; Path=/\r\nalt-svc: h3=\":443\"\r\n"), Expect::Success(200)),
        answers(
            "terminal escapes",
            head("500 No", "content-length: 4\r\nx: <script>\r\n") + "\x1b[2J",
            Expect::HttpError(500),
        ),
    ]
}

fn bodies() -> Vec<Animal> {
    let ok = |headers: &str, body: &str| head("200 OK", headers) + body;
    let packed = |name, how: &str| {
        let head = head("500 No", &format!("content-encoding: {how}\r\ncontent-length: 64\r\n"));
        answers(name, [head.into_bytes(), vec![0x1f; 64]].concat(), Expect::HttpError(500))
    };
    vec![
        http(
            "a body byte by byte",
            vec![write(ok("content-length: 999\r\n", "")), again("b", SLOWLY)],
            Expect::Success(200),
        )
        .alone(),
        http(
            "an error's body byte by byte",
            vec![write(head("500 No", "content-length: 999\r\n")), again("b", SLOWLY)],
            Expect::HttpError(500),
        )
        .alone(),
        http(
            "a body without end",
            vec![write(ok("", "")), again("b".repeat(4_096), Duration::ZERO)],
            Expect::Success(200),
        )
        .alone(),
        http(
            "an error's body without end",
            vec![write(head("500 No", "")), again("b".repeat(4_096), Duration::ZERO)],
            Expect::HttpError(500),
        )
        .alone(),
        http(
            "chunks without end",
            vec![
                write(ok("transfer-encoding: chunked\r\n", "")),
                again("4\r\nabcd\r\n".repeat(512), Duration::ZERO),
            ],
            Expect::Success(200),
        )
        .alone(),
        http(
            "10 GB announced",
            vec![write(ok("content-length: 10000000000\r\n", "x")), Silence],
            Expect::Success(200),
        )
        .alone(),
        answers("more than was announced", ok("content-length: 2\r\n", "abcdef"), Expect::Success(200))
            .alone(),
        http(
            "less than was announced",
            vec![write(ok("content-length: 9\r\n", "abc"))],
            Expect::Success(200),
        )
        .alone(),
        answers("two lengths", ok("content-length: 1\r\ncontent-length: 2\r\n", "a"), NOT_HTTP).alone(),
        answers(
            "the same length twice",
            ok("content-length: 1\r\ncontent-length: 1\r\n", "a"),
            Expect::Success(200),
        ),
        answers("a negative length", ok("content-length: -1\r\n", ""), NOT_HTTP).alone(),
        answers(
            "a length beyond all numbers",
            ok("content-length: 99999999999999999999999\r\n", ""),
            NOT_HTTP,
        )
        .alone(),
        answers(
            "a length and chunks",
            ok("content-length: 5\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"),
            Expect::Success(200),
        ),
        answers(
            "chunks that are none",
            ok("transfer-encoding: chunked\r\n", "zz\r\nabc\r\n"),
            Expect::Success(200),
        )
        .alone(),
        answers(
            "a chunk beyond all numbers",
            ok("transfer-encoding: chunked\r\n", "fffffffffffffffff\r\nabc"),
            Expect::Success(200),
        )
        .alone(),
        http(
            "a chunk's extension without end",
            vec![write(ok("transfer-encoding: chunked\r\n", "1;")), again("x".repeat(4_096), Duration::ZERO)],
            Expect::Success(200),
        )
        .alone(),
        http(
            "trailers without end",
            vec![
                write(ok("transfer-encoding: chunked\r\n", "0\r\n")),
                again("a: b\r\n".repeat(512), Duration::ZERO),
            ],
            Expect::Success(200),
        )
        .alone(),
        packed("what says that it is a gzip bomb", "gzip"),
        packed("what says that it is brotli", "br"),
        packed("what says that it is zstd", "zstd"),
        packed("what says that it was packed four times", "gzip, br, zstd, gzip"),
        answers(
            "an unknown transfer coding",
            ok("transfer-encoding: magic\r\n", "abc"),
            Expect::Success(200),
        )
        .alone(),
    ]
}

fn interim() -> Vec<Animal> {
    let flood = |status: &str| again(head(status, "").repeat(2_000), FLOOD);
    vec![
        http("a flood of 100", vec![flood("100 Continue")], NOT_HTTP),
        http("a flood of 102", vec![flood("102 Processing")], NOT_HTTP),
        http(
            "a flood of 103",
            vec![again(head("103 Early Hints", "link: </a>; rel=preload\r\n").repeat(2_000), FLOOD)],
            NOT_HTTP,
        ),
        answers(
            "100 and then 200",
            head("100 Continue", "") + &head("200 OK", "content-length: 0\r\n"),
            Expect::Success(200),
        ),
        answers(
            "103 and then 500",
            head("103 Early Hints", "") + &head("500 No", "content-length: 0\r\n"),
            Expect::HttpError(500),
        ),
        http(
            "101 and another protocol",
            vec![
                write(
                    head("101 Switching Protocols", "connection: upgrade\r\nupgrade: websocket\r\n")
                        + "rubbish",
                ),
                Silence,
            ],
            Expect::HttpError(101),
        )
        .alone(),
    ]
}

fn statuses() -> Vec<Animal> {
    let empty = |status: &str| head(status, "content-length: 0\r\n");
    let moved = |status: &str, to: &str| head(status, &format!("location: {to}\r\ncontent-length: 0\r\n"));
    vec![
        answers("301 to itself", moved("301 Moved", "/"), Expect::Redirect(301)),
        answers("302 in a circle", moved("302 Found", "/?again"), Expect::Redirect(302)),
        answers("303", moved("303 See Other", "/other"), Expect::Redirect(303)),
        answers(
            "307 to the metadata",
            moved("307 Temporary", "http://169.254.169.254/latest/meta-data/"),
            Expect::Redirect(307),
        ),
        answers("308 to a file", moved("308 Permanent", "file:///etc/passwd"), Expect::Redirect(308)),
        answers("300 without a place", empty("300 Many"), Expect::Redirect(300)),
        answers(
            "304 with a body",
            head("304 Not Modified", "content-length: 3\r\n") + "abc",
            Expect::Redirect(304),
        )
        .alone(),
        answers(
            "204 with a body",
            head("204 No Content", "content-length: 3\r\n") + "abc",
            Expect::Success(204),
        )
        .alone(),
        answers("205", empty("205 Reset Content"), Expect::Success(205)),
        answers(
            "205 with a body",
            head("205 Reset Content", "content-length: 3\r\n") + "abc",
            Expect::Success(205),
        ),
        answers("299", empty("299 Odd"), Expect::Success(299)),
        answers("status 000", empty("000 None"), NOT_HTTP),
        answers("status 099", empty("099 None"), NOT_HTTP),
        answers("status 99", empty("99 None"), NOT_HTTP),
        answers("status 2000", empty("2000 None"), NOT_HTTP),
        answers("status -20", empty("-20 None"), NOT_HTTP),
        answers("status 600", empty("600 None"), Expect::HttpError(600)),
        answers("status 999", empty("999 None"), Expect::HttpError(999)),
        answers("no reason", "HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", Expect::Success(200)),
        answers("418", empty("418 Teapot"), Expect::HttpError(418)),
        answers(
            "407",
            head("407 Proxy", "proxy-authenticate: Basic\r\ncontent-length: 0\r\n"),
            Expect::HttpError(407),
        ),
        answers("410 for good", empty("410 Gone"), Expect::Gone),
        http("HTTP/0.9", vec![write("<html>welcome</html>")], NOT_HTTP),
        http("HTTP/3.0", vec![write("HTTP/3.0 200 OK\r\n\r\n")], NOT_HTTP),
        http("a banner of another protocol", vec![write("SSH-2.0-OpenSSH_9.9\r\n"), Silence], NOT_HTTP),
        http(
            "frames of HTTP/2 where nobody asked",
            vec![write(super::frames::settings(&[])), Silence],
            NOT_HTTP,
        ),
    ]
}

fn breaks() -> Vec<Animal> {
    let ok = head("200 OK", "content-length: 9\r\n");
    vec![
        animal("closes after accept", Wire::Http, vec![], BROKEN),
        animal("resets after accept", Wire::Http, vec![Reset], Expect::NetworkOr("network_error")),
        animal("resets within the request", Wire::Http, vec![Something, Reset], BROKEN).large(),
        http("resets after the request", vec![Reset], BROKEN),
        http("resets within the status line", vec![write("HTTP/1.1 2"), Reset], BROKEN),
        http("closes within the status line", vec![write("HTTP/1.1 2")], BROKEN),
        http("closes within the head", vec![write("HTTP/1.1 200 OK\r\na: b\r\n")], BROKEN),
        http("closes after the head", vec![write(ok.clone())], Expect::Success(200)).alone(),
        http("closes without an answer", vec![], BROKEN),
        http("half closes without an answer", vec![HalfClose, Silence], BROKEN),
        http(
            "answers and half closes",
            vec![write(head("200 OK", "content-length: 0\r\n")), HalfClose, Silence],
            Expect::NetworkOr("success"),
        )
        .alone(),
        animal(
            "answers before it reads",
            Wire::Http,
            vec![Something, write(head("200 OK", "connection: close\r\ncontent-length: 0\r\n")), Silence],
            Expect::Success(200),
        )
        .large()
        .alone(),
        animal(
            "refuses before it reads",
            Wire::Http,
            vec![Something, write(head("413 Too Large", "connection: close\r\ncontent-length: 0\r\n"))],
            Expect::NetworkOr("http_error"),
        )
        .large()
        .alone(),
        animal(
            "answers on accept",
            Wire::Http,
            vec![write(head("200 OK", "connection: close\r\ncontent-length: 0\r\n")), Silence],
            Expect::NetworkOr("success"),
        )
        .alone(),
    ]
}

fn reuse() -> Vec<Animal> {
    let ok = head("200 OK", "content-length: 0\r\n");
    let kept = head("200 OK", "connection: keep-alive\r\nkeep-alive: timeout=99\r\ncontent-length: 0\r\n");
    let closing = head("200 OK", "connection: close\r\ncontent-length: 0\r\n");
    vec![
        answers("as it should be", ok.clone(), Expect::Success(200)),
        // The second answer must not be taken for that of the next request.
        answers(
            "two answers at once",
            ok.clone() + &head("410 Gone", "content-length: 0\r\n"),
            Expect::Success(200),
        )
        .alone(),
        answers("an answer and rubbish", ok.clone() + "rubbish", Expect::Success(200)).alone(),
        http("promises to keep and closes", vec![write(kept)], Expect::NetworkOr("success")).alone(),
        http("says close and stays", vec![write(closing), Silence], Expect::Success(200)).alone(),
        answers("HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", Expect::Success(200)).alone(),
        http("resets after a good answer", vec![write(ok), Reset], Expect::NetworkOr("success")).alone(),
    ]
}

/// What their wish to be left alone leads to. Answers are given once: then nothing comes for as long as it lasts.
fn waits() -> Vec<Animal> {
    let day = 86_400;
    let limited = |name, headers: &str, seconds| {
        answers(
            name,
            head("429 Slow Down", &format!("{headers}content-length: 0\r\n")),
            Expect::Throttled(seconds),
        )
    };
    let unavailable = |name, headers: &str, expect| {
        answers(name, head("503 Later", &format!("{headers}content-length: 0\r\n")), expect)
    };
    let long = format!("retry-after: {}\r\n", "9".repeat(10_000));
    vec![
        limited("429", "", 60),
        limited("429, 0", "retry-after: 0\r\n", 1),
        limited("429, -5", "retry-after: -5\r\n", 60),
        limited("429, +120", "retry-after: +120\r\n", 60),
        limited("429, 120", "retry-after:   120  \r\n", 120),
        limited("429, 120.5", "retry-after: 120.5\r\n", 60),
        limited("429, 1e30", "retry-after: 1e30\r\n", 60),
        limited("429, inf", "retry-after: inf\r\n", 60),
        limited("429, NaN", "retry-after: NaN\r\n", 60),
        limited("429, 2^63", "retry-after: 9223372036854775808\r\n", day),
        limited("429, ten thousand nines", &long, day),
        limited("429, in 1970", "retry-after: Thu, 01 Jan 1970 00:00:00 GMT\r\n", 1),
        limited("429, in 9999", "retry-after: Fri, 31 Dec 9999 23:59:59 GMT\r\n", day),
        limited("429, RFC 850", "retry-after: Sunday, 06-Nov-94 08:49:37 GMT\r\n", 1),
        limited("429, with a zone", "retry-after: Fri, 31 Dec 9999 23:59:59 +0500\r\n", 60),
        limited("429, tomorrow", "retry-after: tomorrow\r\n", 60),
        limited("429, empty", "retry-after: \r\n", 60),
        limited("429, two of them", "retry-after: 100\r\nretry-after: 300\r\n", 300),
        limited(
            "429, by their own clock",
            "date: Mon, 01 Jan 2001 23:50:00 GMT\r\nretry-after: Mon, 01 Jan 2001 23:55:00 GMT\r\n",
            300,
        ),
        limited(
            "429, limits that are none",
            "ratelimit: \"x\";r=-1;t=1e99, ;;;\r\nratelimit-remaining: 99999999999999999999999\r\nx-ratelimit-reset: NaN\r\n",
            60,
        ),
        unavailable("503, 90", "retry-after: 90\r\n", Expect::Unavailable(90)),
        unavailable(
            "503, in 9999",
            "retry-after: Fri, 31 Dec 9999 23:59:59 GMT\r\n",
            Expect::Unavailable(day),
        ),
        unavailable("503, rubbish", "retry-after: soon\r\n", Expect::HttpError(503)),
        unavailable("503", "", Expect::HttpError(503)),
        answers(
            "200, limits that are none",
            head(
                "200 OK",
                "ratelimit-limit: -7\r\nratelimit-reset: inf\r\nretry-after: 9999\r\nx-rate-limit-remaining: 0x0\r\nratelimit-policy: \"\r\ncontent-length: 0\r\n",
            ),
            Expect::Success(200),
        ),
    ]
}

fn tls() -> Vec<Animal> {
    let ok = head("200 OK", "content-length: 0\r\n");
    let with = |name, certificate, said| {
        animal(
            name,
            Wire::Https(certificate),
            vec![Request, write(head("200 OK", "")), Silence],
            Expect::Network(said),
        )
    };
    let good = Wire::Https(Certificate::Good);
    vec![
        animal("TLS as it should be", good, vec![Request, write(ok.clone()), From(0)], Expect::Success(200)),
        with("an expired certificate", Certificate::Expired, "TLS failed: the certificate has expired"),
        with("a certificate for later", Certificate::NotYet, "TLS failed: the certificate is not valid yet"),
        with(
            "a certificate for another",
            Certificate::OtherName,
            "TLS failed: the certificate is for another name",
        ),
        with(
            "a certificate of its own",
            Certificate::SelfSigned,
            "TLS failed: the certificate comes from an unknown authority",
        ),
        with(
            "an unknown authority",
            Certificate::UnknownAuthority,
            "TLS failed: the certificate comes from an unknown authority",
        ),
        with(
            "wants our certificate",
            Certificate::Mutual,
            "TLS failed: the server demands a certificate of the client",
        ),
        animal(
            "plain HTTP where TLS is due",
            Wire::NoTls,
            vec![Something, write(ok)],
            Expect::Network("TLS failed: the server does not speak TLS as it should"),
        ),
        animal("a handshake that hangs", Wire::NoTls, vec![Silence], Expect::Timeout),
        animal(
            "a handshake byte by byte",
            Wire::NoTls,
            vec![Something, write([22, 3, 3, 0x3f, 0xff, 2, 0, 0x3f, 0xfb]), again([0], SLOWLY)],
            Expect::Timeout,
        ),
        animal("closes in the handshake", Wire::NoTls, vec![Something], Expect::Network("TLS failed")),
        animal("resets in the handshake", Wire::NoTls, vec![Something, Reset], Expect::Network("TLS failed")),
        animal(
            "an alert",
            Wire::NoTls,
            vec![Something, write([21, 3, 3, 0, 2, 2, 40])],
            Expect::Network("TLS failed: the server refused the handshake"),
        ),
        animal(
            "TLS 1.0 alone",
            Wire::NoTls,
            vec![Something, write(old_hello(1)), Silence],
            Expect::Network("TLS failed: no common version or cipher"),
        ),
        animal(
            "TLS 1.1 alone",
            Wire::NoTls,
            vec![Something, write(old_hello(2)), Silence],
            Expect::Network("TLS failed: no common version or cipher"),
        ),
        animal("TLS, then never an answer", good, vec![Request, Silence], Expect::Timeout),
        animal("TLS, then deaf", good, vec![Deaf], Expect::Timeout).large(),
        animal(
            "TLS, closes within the head",
            good,
            vec![Request, write("HTTP/1.1 200 OK\r\na: b\r\n")],
            BROKEN,
        ),
        animal(
            "TLS, a body without end",
            good,
            vec![Request, write(head("200 OK", "")), again("b".repeat(4_096), Duration::ZERO)],
            Expect::Success(200),
        )
        .alone(),
        animal(
            "TLS, two answers at once",
            good,
            vec![Request, write(head("200 OK", "content-length: 0\r\n").repeat(2)), From(0)],
            Expect::Success(200),
        )
        .alone(),
    ]
}

/// The ServerHello of a version that is no longer spoken: 3.1 is TLS 1.0.
fn old_hello(minor: u8) -> Vec<u8> {
    let record = [22, 3, minor, 0, 42, 2, 0, 0, 38, 3, minor];
    let (random, no_session, aes_128_cbc, uncompressed) = ([7; 32], [0], [0xc0, 0x13], [0]);
    [&record[..], &random, &no_session, &aes_128_cbc, &uncompressed].concat()
}
