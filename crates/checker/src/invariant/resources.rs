//! I16: memory and descriptors stay below their limits, and do not grow for ever.

use crate::run::{Run, SECOND, Sample};
use crate::verdict::Verdict;

/// Growth is judged over a life of a node that is at least so long: shorter ones are still filling their caches.
const LONG_LIFE: u64 = 600 * SECOND;
/// Fewer do not make quarters to compare.
const FEWEST_SAMPLES: usize = 16;
/// What may come and go without being a leak.
const BREATHING_BYTES: u64 = 32 << 20;
/// Likewise.
const BREATHING_FDS: u64 = 64;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I16", "resources");
    let (mut rss, mut fds) = (0, 0);
    for sample in &run.samples {
        verdict.judge();
        (rss, fds) = (sample.rss_bytes.max(rss), sample.fds.max(fds));
        let (node, at) = (run.text(sample.node), run.at(sample.t));
        if sample.rss_bytes > run.limits.rss_bytes {
            verdict.wrong(|| format!("node {node} at {at}: {} bytes of memory", sample.rss_bytes));
        }
        if sample.fds > run.limits.fds {
            verdict.wrong(|| format!("node {node} at {at}: {} descriptors", sample.fds));
        }
    }
    let same_life =
        |one: &Sample, other: &Sample| one.node == other.node && !run.faults.is_hit(one.t, other.t);
    let (mut lives, mut long) = (0, 0);
    for life in run.samples.chunk_by(same_life) {
        lives += 1;
        if is_long(life) {
            long += 1;
            grows(run, life, &mut verdict);
        }
    }
    if verdict.checked > 0 {
        verdict.notes.push(format!("at most {} MiB and {fds} descriptors", rss >> 20));
        verdict.notes.push(match long {
            0 => "growth not judged: no life of 10 minutes".to_owned(),
            long => format!("growth judged in {long} of {lives} lives, those of 10 minutes at least"),
        });
    }
    verdict
}

/// Whether it says anything about growth.
fn is_long(life: &[Sample]) -> bool {
    let lasts = life.first().zip(life.last()).map_or(0, |(first, last)| last.t - first.t);
    lasts >= LONG_LIFE && life.len() >= FEWEST_SAMPLES
}

/// The last quarter of a life against its second.
fn grows(run: &Run, life: &[Sample], verdict: &mut Verdict) {
    verdict.judge();
    let quarter = life.len() / 4;
    let (early, late) = (&life[quarter..2 * quarter], &life[3 * quarter..]);
    let node = run.text(life[0].node);
    for (what, of, breathing) in [
        ("bytes of memory", (|sample: &Sample| sample.rss_bytes) as fn(&Sample) -> u64, BREATHING_BYTES),
        ("descriptors", |sample: &Sample| sample.fds, BREATHING_FDS),
    ] {
        let (before, after) = (middle(early, of), middle(late, of));
        if after > before + before / 5 + breathing {
            verdict.wrong(|| format!("node {node} grew from {before} to {after} {what}"));
        }
    }
}

fn middle(samples: &[Sample], of: fn(&Sample) -> u64) -> u64 {
    let mut all: Vec<u64> = samples.iter().map(of).collect();
    all.sort_unstable();
    all[all.len() / 2]
}
