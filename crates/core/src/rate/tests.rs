use proptest::prelude::*;

use super::*;

fn quota(max: u64, per: Per, burst: u64) -> Quota {
    Quota::new(max, per, Some(burst)).unwrap()
}

#[test]
fn ten_thousand_behind_a_hundred_a_minute_take_ninety_seven_and_a_half_minutes() {
    let quota = quota(100, Per::Minute, 250);
    let mut bucket = Bucket::full(&quota, Mono::from_millis(0));
    let mut now = Mono::from_millis(0);
    for _ in 0..10_000 {
        if let Some(wait) = bucket.wait(&quota, now) {
            now = Mono::from_millis(now.as_millis() + wait.get());
        }
        assert_eq!(bucket.wait(&quota, now), None, "the wait is long enough");
        bucket.take(&quota, now);
    }
    assert_eq!(now.as_millis(), 97 * 60_000 + 30_000);
}

#[test]
fn an_uneven_rate_does_not_drift_over_a_year() {
    // A burst of two, so that the fraction of a millisecond lost to whole wake-ups is kept for the next token.
    let quota = quota(7, Per::Minute, 2);
    let mut bucket = Bucket::full(&quota, Mono::from_millis(0));
    let (mut now, mut taken, year) = (0, 0_i64, 365 * 86_400_000);
    while now < year {
        let at = Mono::from_millis(now);
        match bucket.wait(&quota, at) {
            Some(wait) => now += wait.get(),
            None => {
                bucket.take(&quota, at);
                taken += 1;
            }
        }
    }
    assert_eq!(taken, 2 + (year - 1) * 7 / 60_000, "every token of the year, not one more");
}

#[test]
fn a_moment_that_was_read_earlier_adds_no_tokens() {
    let quota = quota(1, Per::Second, 1);
    let at = Mono::from_millis;
    let mut bucket = Bucket::full(&quota, at(0));
    bucket.take(&quota, at(10_000));
    // Taken past all gates, by somebody who had read the clock a second before.
    bucket.take(&quota, at(9_000));
    assert_eq!(bucket.tokens(&quota, at(11_000)), 0, "the second from 9 to 10 has brought its token already");
    assert_eq!(bucket.wait(&quota, at(11_000)), Some(Millis::seconds(1)));
}

#[test]
fn refused_rates_say_what_is_allowed() {
    for (max, per, burst, expected) in [
        (0, Per::Minute, None, "`max_per_minute` is 0; allowed: 1 to 600000"),
        (600_001, Per::Minute, None, "`max_per_minute` is 600001; allowed: 1 to 600000"),
        (10_001, Per::Second, None, "`max` is 10001; allowed: 1 to 10000"),
        (5, Per::Day, Some(0), "`burst_capacity` is 0; allowed: 1 to 1000000"),
        (5, Per::Day, Some(u64::MAX), "`burst_capacity` is 18446744073709551615; allowed: 1 to 1000000"),
    ] {
        assert_eq!(Quota::new(max, per, burst).unwrap_err().to_string(), expected);
    }
    assert_eq!(Quota::new(100, Per::Minute, None).unwrap().burst(), 100);
}

fn any_quota() -> impl Strategy<Value = Quota> {
    let per = prop_oneof![Just(Per::Second), Just(Per::Minute), Just(Per::Hour), Just(Per::Day)];
    (1_u64..10_000, per, 1_u64..500).prop_map(|(max, per, burst)| quota(max, per, burst))
}

/// What may happen to a bucket. Times are steps of the monotonic clock; the wall clock jumps by itself.
#[derive(Clone, Debug)]
enum Act {
    Pass(i64),
    JumpWall(i64),
    TryTake,
    /// Stopped cleanly and started again after so long.
    Restart(i64),
}

fn any_acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (0_i64..5_000).prop_map(Act::Pass),
        1 => (0_i64..10_000_000).prop_map(Act::Pass),
        1 => (-10_000_000_000_i64..10_000_000_000).prop_map(Act::JumpWall),
        20 => Just(Act::TryTake),
        1 => (0_i64..60_000).prop_map(Act::Restart),
    ];
    prop::collection::vec(act, 1..400)
}

/// An independent account of the bound: of all takes since any earlier one, at most `burst + rate · T`.
/// Kept in exact numbers: drops spent beyond what has flowed in, never below zero.
struct Oracle {
    spent: i128,
    at: i64,
}

impl Oracle {
    fn spent_at(&self, quota: &Quota, now: i64) -> i128 {
        (self.spent - i128::from(now - self.at) * i128::from(quota.tokens)).max(0)
    }
    fn allows(&self, quota: &Quota, now: i64) -> bool {
        self.spent_at(quota, now) + i128::from(quota.period) <= i128::from(quota.full())
    }
    fn take(&mut self, quota: &Quota, now: i64) {
        self.spent = self.spent_at(quota, now) + i128::from(quota.period);
        self.at = now;
    }
}

proptest! {
    /// For any sequence of takes and jumps of the wall clock: never above the bound, and never refused within it.
    #[test]
    fn the_bucket_is_its_bound(quota in any_quota(), acts in any_acts()) {
        let mut now = Now::at(1_800_000_000_000);
        let mut bucket = Bucket::full(&quota, now.mono);
        let mut oracle = Oracle { spent: 0, at: now.mono.as_millis() };
        for act in acts {
            match act {
                Act::Pass(ms) => now = passed(now, ms),
                Act::JumpWall(ms) => now.wall = now.wall + Millis::new(ms),
                Act::Restart(_) => {}
                Act::TryTake => {
                    let at = now.mono.as_millis();
                    prop_assert_eq!(bucket.wait(&quota, now.mono).is_none(), oracle.allows(&quota, at));
                    if oracle.allows(&quota, at) {
                        bucket.take(&quota, now.mono);
                        oracle.take(&quota, at);
                    }
                }
            }
        }
    }

    /// A clean stop and start never adds tokens, and costs at most the rounding to a millisecond.
    #[test]
    fn a_restart_adds_nothing(quota in any_quota(), acts in any_acts()) {
        let mut now = Now::at(1_800_000_000_000);
        let mut bucket = Bucket::full(&quota, now.mono);
        let mut whole = bucket;
        for act in acts {
            match act {
                Act::Pass(ms) => now = passed(now, ms),
                Act::JumpWall(_) => {}
                Act::Restart(ms) => {
                    let stored = bucket.full_at(&quota, now);
                    now = passed(now, ms);
                    bucket = Bucket::restore(&quota, stored, now, 50);
                }
                Act::TryTake => if bucket.wait(&quota, now.mono).is_none() {
                    bucket.take(&quota, now.mono);
                    whole.take(&quota, now.mono);
                }
            }
            prop_assert!(bucket.level_at(&quota, now.mono) <= whole.level_at(&quota, now.mono));
        }
    }

    /// A changed limit keeps the tokens that fit and never adds any.
    #[test]
    fn a_changed_limit_adds_nothing(old in any_quota(), new in any_quota(), takes in 0..200, later in 0_i64..100_000) {
        let mut now = Mono::from_millis(0);
        let mut bucket = Bucket::full(&old, now);
        for _ in 0..takes {
            bucket.take(&old, now);
        }
        now = Mono::from_millis(later);
        let changed = bucket.under(&old, &new, now);
        prop_assert!(changed.tokens(&new, now) <= bucket.tokens(&old, now));
        prop_assert!(changed.tokens(&new, now) + 1 >= bucket.tokens(&old, now).min(new.burst()));
    }

    /// After a crash the bucket has forgone every start that may not have been recorded.
    #[test]
    fn a_crash_forfeits_what_may_have_been_sent(quota in any_quota(), recorded in 0_u32..400, unrecorded in 0_u32..50) {
        let now = Now::at(1_800_000_000_000);
        let mut bucket = Bucket::full(&quota, now.mono);
        let take = |bucket: &mut Bucket| if bucket.wait(&quota, now.mono).is_none() { bucket.take(&quota, now.mono) };
        (0..recorded).for_each(|_| take(&mut bucket));
        let stored = bucket.full_at(&quota, now);
        (0..unrecorded).for_each(|_| take(&mut bucket));
        let mut back = Bucket::restore(&quota, stored, now, 50);
        back.forfeit(&quota, 50);
        prop_assert!(back.level_at(&quota, now.mono) <= bucket.level_at(&quota, now.mono));
    }

    #[test]
    fn no_time_overflows(quota in any_quota(), at in any::<i64>(), wall in any::<i64>(), stored in any::<i64>()) {
        let now = Now { wall: Timestamp::from_millis(wall), mono: Mono::from_millis(at) };
        let mut bucket = Bucket::restore(&quota, Timestamp::from_millis(stored), now, limits::MAX_CONCURRENCY);
        bucket.take(&quota, Mono::from_millis(i64::MAX));
        bucket.forfeit(&quota, limits::MAX_CONCURRENCY);
        let _ = (bucket.wait(&quota, now.mono), bucket.full_at(&quota, now), bucket.tokens(&quota, now.mono));
    }
}

fn passed(now: Now, ms: i64) -> Now {
    Now { wall: now.wall + Millis::new(ms), mono: Mono::from_millis(now.mono.as_millis() + ms) }
}
