//! I13: one key and body is one event, whatever is repeated or at the same time; one key with another body is refused.

use std::collections::HashMap;

use super::phantom::second_ids;
use crate::names::Name;
use crate::run::{Publication, Run};
use crate::verdict::Verdict;

/// Keys are remembered so long.
const REMEMBERED: u64 = 86_400 * crate::run::SECOND;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I13", "idempotency");
    let mut by_key: HashMap<(Name, Name), Vec<&Publication>> = HashMap::new();
    for publication in &run.publications {
        if let Some(key) = publication.key {
            by_key.entry((publication.endpoint, key)).or_default().push(publication);
        }
    }
    let mut keys: Vec<_> = by_key.into_iter().collect();
    keys.sort_by_key(|(key, _)| *key);
    for ((_, key), publications) in &keys {
        judge_key(run, *key, publications, &mut verdict);
    }
    ids_are_unique(run, &mut verdict);
    for receipt in second_ids(run) {
        verdict.wrong(|| {
            format!("{}: a second event of a publication that was repeated under one key", run.show(receipt))
        });
    }
    verdict
}

fn judge_key(run: &Run, key: Name, publications: &[&Publication], verdict: &mut Verdict) {
    let name = run.text(key);
    let accepted: Vec<&&Publication> = publications.iter().filter(|one| one.is_accepted()).collect();
    for publication in publications {
        verdict.judge();
        let Some(first) = accepted.first().filter(|first| publication.t.saturating_sub(first.t) < REMEMBERED)
        else {
            continue;
        };
        let (one, two) = (first.request, publication.request);
        if publication.is_accepted() {
            let same = publication.body == first.body;
            if !same {
                verdict.wrong(|| {
                    format!(
                        "key {name}: requests {one} and {two} have different bodies, and both were accepted"
                    )
                });
            } else if ids(run, publication) != ids(run, first) {
                verdict.wrong(|| {
                    format!("key {name}: requests {one} and {two} are the same, and got different ids")
                });
            }
        } else if publication.body != first.body
            && first.answered < publication.t
            && publication.status.is_some_and(|status| status != 422 && status < 500)
        {
            let status = publication.status.unwrap_or(0);
            verdict.wrong(|| {
                format!("key {name}: request {two} has another body than {one}, and was answered {status}")
            });
        }
    }
}

fn ids(run: &Run, publication: &Publication) -> Vec<Option<Name>> {
    let first = publication.first as usize;
    run.sent[first..first + publication.count as usize].iter().map(|sent| sent.id).collect()
}

/// An answer has an id for each event, and no two publications share one unless they share their key.
fn ids_are_unique(run: &Run, verdict: &mut Verdict) {
    let mut owners: HashMap<Name, &Publication> = HashMap::with_capacity(run.accepted.len());
    for publication in run.publications.iter().filter(|one| one.is_accepted()) {
        verdict.judge();
        let (request, wanted, got) = (publication.request, publication.count, publication.ids);
        if wanted != got {
            verdict
                .wrong(|| format!("request {request} has {wanted} events and was answered with {got} ids"));
        }
        for id in ids(run, publication).into_iter().flatten() {
            let owner = owners.entry(id).or_insert(publication);
            let other = owner.request;
            if other != request && (owner.key.is_none() || owner.key != publication.key) {
                verdict.wrong(|| {
                    format!("requests {other} and {request} were both answered with {}", run.text(id))
                });
            }
        }
    }
}
