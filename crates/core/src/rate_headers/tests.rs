use super::*;
use proptest::prelude::*;

const NOW: Timestamp = Timestamp::from_millis(1_750_000_000_000); // Sun, 15 Jun 2025 15:06:40 GMT

/// Headers as they stand in a dump: one a line.
fn read(dump: &str) -> Option<RateHint> {
    parse(dump.lines().filter_map(|l| l.trim().split_once(':')).map(|(n, v)| (n, v.as_bytes())), None, NOW)
}

fn check(dump: &str, [limit, remaining, reset, window]: [Option<u64>; 4]) {
    let seconds = |n: Option<u64>| n.map(|n| Millis::seconds(i64::try_from(n).unwrap()));
    let expected = RateHint { limit, remaining, reset: seconds(reset), window: seconds(window) };
    assert_eq!(read(dump), Some(expected), "{dump}");
}

#[test]
fn the_three_plain_fields_are_read() {
    let triple = [Some(100), Some(50), Some(30), None];
    check("RateLimit-Limit: 100\nRateLimit-Remaining: 50\nRateLimit-Reset: 30", triple);
    check("x-ratelimit-limit:100\nX-RATELIMIT-REMAINING:50\nX-RateLimit-Reset:30", triple);
    check("X-Rate-Limit-Limit: 100\nX-Rate-Limit-Remaining: 50\nX-Rate-Limit-Reset: 30", triple);
    check("RateLimit-Remaining: 0", [None, Some(0), None, None]);
    check("RateLimit-Limit: 7\nRateLimit-Limit: 9", [Some(7), None, None, None]);
    check("RateLimit-Limit: many\nRateLimit-Limit: 9", [Some(9), None, None, None]);
}

#[test]
fn a_limit_finds_its_window_among_the_policies() {
    let minute = [Some(100), Some(5), None, Some(60)];
    check("RateLimit-Limit: 100, 100;w=60\nRateLimit-Remaining: 5", minute);
    check("RateLimit-Limit: 100;w=60\nRateLimit-Remaining: 5", minute);
    check("RateLimit-Limit: 100, 5000;w=3600, 100;w=60\nRateLimit-Remaining: 5", minute);
    check("RateLimit-Policy: 100;w=60\nX-RateLimit-Limit: 100\nX-RateLimit-Remaining: 5", minute);
    check("RateLimit-Limit: 100, 200;w=60\nRateLimit-Remaining: 5", [Some(100), Some(5), None, None]);
}

#[test]
fn a_reset_may_be_a_time() {
    check("X-RateLimit-Reset: 1750000030", [None, None, Some(30), None]);
    check("X-RateLimit-Reset: 1750000030000", [None, None, Some(30), None]);
    check("X-RateLimit-Reset: 1600000000", [None, None, Some(0), None]);
    check("X-RateLimit-Reset: 4000000000", [None, None, Some(86_400), None]);
    check("X-RateLimit-Reset: 1000000000", [None, None, Some(86_400), None]);
    let header = ("X-RateLimit-Reset", &b"1750000030"[..]);
    let by_their_clock = parse([header], Some(b"Sun, 15 Jun 2025 15:07:00 GMT"), NOW);
    assert_eq!(by_their_clock.and_then(|hint| hint.reset), Some(Millis::seconds(10)));
}

#[test]
fn the_dictionary_of_draft_07_is_read() {
    check(
        "RateLimit: limit=100, remaining=50, reset=30\nRateLimit-Policy: 100;w=60",
        [Some(100), Some(50), Some(30), Some(60)],
    );
    check("RateLimit:limit=100,remaining=50", [Some(100), Some(50), None, None]);
}

#[test]
fn the_named_list_of_draft_08_is_read() {
    let all = [Some(100), Some(50), Some(30), Some(60)];
    check("RateLimit: \"default\";r=50;t=30\nRateLimit-Policy: \"default\";q=100;w=60", all);
    check("RateLimit: \"a\"; r=50; t=30\nRateLimit-Policy: \"a\"; q=100; w=60; pk=:Zm8=:", all);
    check("RateLimit: default;t=30;r=50\nRateLimit-Policy: default;q=100;w=60;qu=\"requests\"", all);
    check("RateLimit: \"a,b;r=1\\\";c=d\";r=50;t=30", [None, Some(50), Some(30), None]);
    check("RateLimit: \"default\";r=50", [None, Some(50), None, None]);
    check("RateLimit-Policy: \"default\";q=100;w=60", [Some(100), None, None, Some(60)]);
}

#[test]
fn the_tightest_of_several_counts() {
    let policies = "RateLimit-Policy: \"burst\";q=100;w=60, \"daily\";q=1000;w=86400";
    let burst = [Some(100), Some(2), Some(50), Some(60)];
    check(&format!("RateLimit: \"burst\";r=2;t=50, \"daily\";r=900;t=9000\n{policies}"), burst);
    check(&format!("{policies}\nRateLimit: \"daily\";r=900;t=9000\nRateLimit: \"burst\";r=2;t=50"), burst);
    check(
        &format!("RateLimit: \"burst\";r=99;t=50, \"daily\";r=10;t=9000\n{policies}"),
        [Some(1000), Some(10), Some(9000), Some(86_400)],
    );
    check(policies, [Some(1000), None, None, Some(86_400)]);
    check("RateLimit: \"a\";r=0;t=5, \"b\";r=0;t=500", [None, Some(0), Some(500), None]);
    check("RateLimit: \"a\";r=1;t=60\nX-RateLimit-Remaining: 0", [None, Some(0), None, None]);
    check(
        "X-RateLimit-Limit: 60\nX-RateLimit-Remaining: 59\nX-RateLimit-Reset: 9\nRateLimit-Policy: 1;w=3600",
        [Some(60), Some(59), Some(9), None],
    );
}

#[test]
fn quotas_of_other_things_than_requests_are_passed_over() {
    let bytes = "RateLimit-Policy: \"b\";q=5000;w=60;qu=\"content-bytes\", \"r\";q=10;w=60";
    check(
        &format!("RateLimit: \"b\";r=0;t=60, \"r\";r=9;t=60\n{bytes}"),
        [Some(10), Some(9), Some(60), Some(60)],
    );
    assert_eq!(read("RateLimit: \"b\";r=0;t=60\nRateLimit-Policy: \"b\";q=5;qu=\"content-bytes\""), None);
}

#[test]
fn nonsense_is_passed_over() {
    for dump in [
        "Content-Type: text/plain\nRetry-After: 5",
        "RateLimit-Limit: -1\nRateLimit-Remaining: 1.5\nRateLimit-Reset: 1e9",
        "RateLimit-Limit: 0",
        "RateLimit-Limit: 1000000001\nRateLimit-Remaining: 99999999999999999999999",
        "RateLimit-Limit: unlimited\nRateLimit-Remaining:\nRateLimit-Reset: NaN",
        "RateLimit: \nRateLimit-Policy: ,;,=;w",
        "RateLimit: \"default\";r=-5;t=30, \"x\";t=30, \"y\" r=5",
        "RateLimit-Policy: \"default\";w=60, \"x\";q=0",
        "RateLimit-Remaining-Minute: 5\nX-RateLimited: 5\nMy-RateLimit-Limit: 5",
    ] {
        assert_eq!(read(dump), None, "{dump}");
    }
    assert_eq!(parse([("RateLimit-Limit", &b"\xff100"[..])], None, NOW), None);
    check("RateLimit-Limit: 10\nRateLimit-Remaining: 50", [Some(10), Some(10), None, None]);
    check("RateLimit-Reset: 5\nRateLimit-Policy: \"x\";w=60", [None, None, Some(5), None]);
    check("RateLimit-Policy: 10;w=0", [Some(10), None, None, None]);
    check("RateLimit-Policy: 10;w=2592000", [Some(10), None, None, Some(2_592_000)]);
    check("RateLimit-Policy: 10;w=99999999999", [Some(10), None, None, None]);
    check("RateLimit-Reset: 99999999999999999999999", [None, None, Some(86_400), None]);
}

fn hostile() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    let name = "(X-|x-)?(RateLimit|Rate-Limit)(|-Limit|-Remaining|-Reset|-Policy)|[a-z-]{0,12}";
    let near = "((\"[a,;\\\\\"]{0,3}\"?|[0-9]{0,25}|limit=|reset=[0-9]*)(; ?[rtqwu]{1,2}=[-0-9a.\"]{0,12}){0,3},? ?){0,4}";
    let value = prop_oneof![
        4 => near.prop_map(String::into_bytes),
        1 => ".{0,40}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ];
    prop::collection::vec((name, value), 0..8)
}

proptest! {
    #[test]
    fn no_headers_break_the_limits(headers in hostile(), date: Vec<u8>, now: i64) {
        let lines = headers.iter().map(|(name, value)| (name.as_str(), value.as_slice()));
        if let Some(hint) = parse(lines, Some(&date), Timestamp::from_millis(now)) {
            prop_assert!(hint.limit.is_some() || hint.is_live());
            prop_assert!(hint.limit.is_none_or(|n| (1..=MOST_REQUESTS).contains(&n)));
            prop_assert!(hint.remaining.is_none_or(|n| n <= hint.limit.unwrap_or(MOST_REQUESTS)));
            prop_assert!(hint.reset.is_none_or(|t| (Millis::ZERO..=LONGEST_RESET).contains(&t)));
            prop_assert!(hint.window.is_none_or(|t| (Millis::seconds(1)..=LONGEST_WINDOW).contains(&t)));
        }
    }

    #[test]
    fn no_limit_is_tighter_than_the_one_given(figures in prop::collection::vec((0..50i64, 1..86_400i64), 1..8)) {
        let list = figures.iter().enumerate().map(|(i, (r, t))| format!("\"{i}\";r={r};t={t}"));
        let hint = read(&format!("RateLimit: {}", list.collect::<Vec<_>>().join(", "))).unwrap();
        let given = (i64::try_from(hint.remaining.unwrap()).unwrap(), hint.reset.unwrap().get() / 1000);
        prop_assert!(figures.contains(&given), "figures of two limits were mixed");
        for (r, t) in figures {
            prop_assert!(given.0 * t <= r * given.1);
        }
    }
}

#[test]
fn a_flood_of_members_is_cut_off() {
    let flood = format!("RateLimit: {0}\nRateLimit-Policy: {0}\n", "\"x\";r=5;q=5,".repeat(10_000));
    check(&flood.repeat(3), [Some(5), Some(5), None, None]);
}
