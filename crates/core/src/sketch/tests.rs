//! The laws of the sketch, checked against sorting and against an exact Kaplan–Meier estimate in whole fractions.

use super::*;
use proptest::prelude::*;

/// One attempt: its time, and whether it was cut off then.
type Raw = (i64, bool);

fn sketch_of(raw: &[Raw]) -> Sketch {
    let mut sketch = Sketch::new();
    for &(ms, cut) in raw {
        if cut { sketch.record_censored(Millis::new(ms)) } else { sketch.record(Millis::new(ms)) }
    }
    sketch
}

/// Times as they come: mostly milliseconds to minutes, now and then anything at all.
fn any_time() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0_i64..2_000, 8 => 0_i64..120_000, 1 => any::<i64>()]
}

fn any_samples(most: usize) -> impl Strategy<Value = Vec<Raw>> {
    prop::collection::vec((any_time(), prop::bool::weighted(0.3)), 0..most)
}

#[test]
fn bins_touch_and_cover_every_time() {
    let mut expected = 0_i64;
    for bin in 0..=LAST_BIN {
        let (low, high) = (low_of(bin), high_of(bin));
        assert_eq!(low.get(), expected, "bin {bin}");
        assert_eq!((bin_of(low), bin_of(high)), (bin, bin));
        assert!((high - low).get() <= low.get() / 64, "bin {bin} is wider than 1/64 of its lower edge");
        expected = high.get().wrapping_add(1);
    }
    assert_eq!(high_of(LAST_BIN), Millis::MAX);
    assert_eq!(bin_of(Millis::new(-5)), 0);
    assert_eq!(
        (low_of(bin_of(Millis::new(10_000))).get(), high_of(bin_of(Millis::new(10_000))).get()),
        (9_984, 10_111)
    );
}

#[test]
fn percentiles_of_small_samples() {
    let at = |ms| Quantile::At(Millis::new(ms));
    let beyond = |ms| Quantile::AmongCensored { beyond: Millis::new(ms) };
    let hundred: Vec<Raw> = (1..=100).map(|ms| (ms, false)).collect();
    let with_cut = |cuts: usize| [vec![(100, false); 100 - cuts], vec![(127, true); cuts]].concat();
    let table: [(&str, Vec<Raw>, u32, Quantile); 11] = [
        ("no samples", vec![], 9_900, Quantile::Empty),
        ("the 99th of a hundred", hundred.clone(), 9_900, at(99)),
        ("just above it", hundred.clone(), 9_901, at(100)),
        ("the least", hundred.clone(), 0, at(1)),
        ("more than all counts as all", hundred, 20_000, at(100)),
        ("one cut in a hundred leaves the 99th answered", with_cut(1), 9_900, at(100)),
        ("two cuts in a hundred do not", with_cut(2), 9_900, beyond(127)),
        ("only cuts", vec![(50, true), (90, true)], 1, beyond(90)),
        (
            "a cut before all answers changes nothing",
            vec![(5, true), (10, false), (20, false)],
            5_000,
            at(10),
        ),
        ("its weight moves to what lasted longer", vec![(10, false), (15, true), (20, false)], 6_600, at(20)),
        ("an answer comes before a cut in the same bin", vec![(40, true), (40, false)], 5_000, at(40)),
    ];
    for (case, raw, permyriad, expected) in table {
        assert_eq!(sketch_of(&raw).quantile(permyriad), expected, "{case}");
    }
}

#[test]
fn counts_end_at_their_limit() {
    let full = Entry { bin: 7, completed: u32::MAX, censored: u32::MAX };
    let mut sketch = Sketch { entries: vec![full] };
    sketch.record(Millis::new(7));
    sketch.merge(&sketch.clone());
    assert_eq!(sketch.entries, [full]);
    assert_eq!(sketch.samples(), 2 * u64::from(u32::MAX));
    assert_eq!(Sketch::decode(&sketch.encode()), Ok(sketch));
}

#[test]
fn a_sketch_full_to_the_limit_still_answers() {
    let entries = (0..=LAST_BIN).map(|bin| Entry { bin, completed: u32::MAX, censored: u32::MAX }).collect();
    assert!(matches!(Sketch { entries }.quantile(9_900), Quantile::At(_)));
}

#[test]
fn a_day_of_answers_takes_a_few_hundred_bytes() {
    let mut sketch = Sketch::new();
    for i in 0..10_000_i64 {
        sketch.record(Millis::new(80 + i * i / 400_000));
    }
    assert!(sketch.encode().len() < 700, "{} bytes", sketch.encode().len());
}

#[test]
fn damaged_bytes_are_refused() {
    let refused = |bytes: &[u8]| Sketch::decode(bytes).expect_err("must be refused");
    assert_eq!(refused(&[]), BadSketch::Empty);
    assert_eq!(refused(&[2, 0, 2]), BadSketch::UnknownVersion(2));
    let damaged: [(&str, &[u8]); 7] = [
        ("cut short", &[1, 5]),
        ("an empty bin", &[1, 5, 0]),
        ("cuts announced, none there", &[1, 5, 3, 0]),
        ("a longer form", &[1, 0x85, 0, 2]),
        ("more than 32 bits", &[1, 5, 0xff, 0xff, 0xff, 0xff, 0x3f]),
        ("a number without end", &[1, 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        ("a bin beyond the last", &[1, 0x80, 0x1d, 2]),
    ];
    for (case, bytes) in damaged {
        assert!(matches!(refused(bytes), BadSketch::Damaged { .. }), "{case}");
    }
}

/// The product-limit estimate by the book, on raw times, in exact fractions (so for few samples only).
fn by_the_book(raw: &[Raw], permyriad: u32) -> Quantile {
    let mut times: Vec<i64> = raw.iter().map(|r| r.0).collect();
    times.sort_unstable();
    times.dedup();
    let (mut kept, mut of) = (1_u128, 1_u128);
    for &time in &times {
        let at_risk = raw.iter().filter(|r| r.0 >= time).count() as u128;
        let answered = raw.iter().filter(|r| **r == (time, false)).count() as u128;
        (kept, of) = (kept * (at_risk - answered), of * at_risk);
        if answered > 0 && kept * 10_000 <= u128::from(10_000 - permyriad) * of {
            return Quantile::At(Millis::new(time));
        }
    }
    match raw.iter().filter(|r| r.1).map(|r| r.0).max() {
        Some(longest) => Quantile::AmongCensored { beyond: Millis::new(longest) },
        None => Quantile::Empty,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_percentile_is_at_most_a_64th_above_the_sorted_one(
        mut times in prop::collection::vec(0_i64..200_000, 1..400), permyriad in 1_u32..=10_000,
    ) {
        let sketch = sketch_of(&times.iter().map(|&ms| (ms, false)).collect::<Vec<_>>());
        times.sort_unstable();
        let rank = (times.len() * permyriad as usize).div_ceil(10_000);
        let exact = times[rank - 1];
        let Quantile::At(found) = sketch.quantile(permyriad) else { panic!("no censoring, no censored answer") };
        prop_assert!(found.get() >= exact && (found.get() - exact) * 64 <= exact, "{found} for {exact} ms");
    }

    #[test]
    fn a_percentile_is_the_one_of_kaplan_and_meier(
        // Below 128 ms bins are exact; 20 samples keep the fractions within 128 bits.
        raw in prop::collection::vec((0_i64..128, any::<bool>()), 0..20), permyriad in 1_u32..=10_000,
    ) {
        prop_assert_eq!(sketch_of(&raw).quantile(permyriad), by_the_book(&raw, permyriad));
    }

    #[test]
    fn a_percentile_of_binned_times_is_the_one_of_kaplan_and_meier(
        raw in prop::collection::vec((any_time(), any::<bool>()), 0..18), permyriad in 1_u32..=10_000,
    ) {
        let binned: Vec<Raw> = raw.iter().map(|&(ms, cut)| (high_of(bin_of(Millis::new(ms))).get(), cut)).collect();
        prop_assert_eq!(sketch_of(&raw).quantile(permyriad), by_the_book(&binned, permyriad));
    }

    #[test]
    fn percentiles_rise_with_the_share(raw in any_samples(60), a in 0_u32..=10_000, b in 0_u32..=10_000) {
        let sketch = sketch_of(&raw);
        let rank = |share| match sketch.quantile(share) {
            Quantile::Empty => i64::MIN,
            Quantile::At(time) => time.get(),
            Quantile::AmongCensored { .. } => i64::MAX,
        };
        prop_assert!(rank(a.min(b)) <= rank(a.max(b)));
    }

    #[test]
    fn merging_is_recording_everything_in_one(a in any_samples(60), b in any_samples(60), c in any_samples(60)) {
        let merged = |x: &Sketch, y: &Sketch| { let mut both = x.clone(); both.merge(y); both };
        let (sa, sb, sc) = (sketch_of(&a), sketch_of(&b), sketch_of(&c));
        let all = sketch_of(&[a, b, c].concat());
        prop_assert_eq!(&merged(&merged(&sa, &sb), &sc), &all);
        prop_assert_eq!(&merged(&sa, &merged(&sb, &sc)), &all);
        prop_assert_eq!(&merged(&merged(&sc, &sa), &sb), &all);
        prop_assert_eq!(all.samples(), all.bins().map(|b| u64::from(b.completed) + u64::from(b.censored)).sum::<u64>());
    }

    #[test]
    fn bytes_come_back_as_the_same_sketch(raw in any_samples(120)) {
        let sketch = sketch_of(&raw);
        prop_assert_eq!(Sketch::decode(&sketch.encode()), Ok(sketch));
    }

    #[test]
    fn any_bytes_are_refused_or_are_the_one_form_of_a_sketch(mut bytes in prop::collection::vec(any::<u8>(), 0..40), sane: bool) {
        if sane && let Some(version) = bytes.first_mut() {
            *version = 1;
        }
        if let Ok(sketch) = Sketch::decode(&bytes) {
            let _ = sketch.quantile(9_900);
            prop_assert_eq!(sketch.encode(), bytes);
        }
    }
}
