//! I13: one key and body is one event, whatever is repeated or at the same time, answered or not; one key with another body
//! is refused, and only that.

use std::collections::HashMap;

use crate::names::Name;
use crate::run::{Digest, Publication, Receipt, Run};
use crate::verdict::Verdict;

/// Keys are remembered so long.
const REMEMBERED: u64 = 86_400 * crate::run::SECOND;

/// What was published under one key: (endpoint, key).
type Keyed<'a> = ((Name, Name), Vec<&'a Publication>);

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I13", "idempotency");
    let mut by_key: HashMap<(Name, Name), Vec<&Publication>> = HashMap::new();
    for publication in &run.publications {
        if let Some(key) = publication.key {
            by_key.entry((publication.endpoint, key)).or_default().push(publication);
        }
    }
    let mut keys: Vec<Keyed<'_>> = by_key.into_iter().collect();
    keys.sort_by_key(|(key, _)| *key);
    for ((_, key), publications) in &keys {
        judge_key(run, *key, publications, &mut verdict);
    }
    ids_are_unique(run, &mut verdict);
    no_more_than_published(run, &keys, &mut verdict);
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
        } else if is_refused_for_its_key(publication) && publications.iter().all(|one| one.body == first.body)
        {
            let status = publication.status.unwrap_or(0);
            verdict.wrong(|| {
                format!("key {name}: request {two} is the same as {one}, and was answered {status}")
            });
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

fn is_refused_for_its_key(publication: &Publication) -> bool {
    matches!(publication.status, Some(409 | 422))
}

/// Of what was never answered, no more events come than were published: one for each event of a publication, and of those
/// under one key and body, for each event of one; none if another of these was answered. Events are told apart by type
/// and payload; what nobody published is another promise's matter.
fn no_more_than_published(run: &Run, keys: &[Keyed<'_>], verdict: &mut Verdict) {
    let mut room: HashMap<(Name, Digest), usize> = HashMap::new();
    let mut add = |publication: &Publication, each: usize| {
        let first = publication.first as usize;
        for sent in &run.sent[first..first + publication.count as usize] {
            *room.entry((sent.event_type, sent.sha)).or_default() += each;
        }
    };
    let unkeyed = run.publications.iter().filter(|one| one.key.is_none() && one.is_unknown());
    unkeyed.for_each(|one| add(one, 1));
    for (_, publications) in keys {
        let accepted = publications.iter().filter(|one| one.is_accepted());
        let mut known: HashMap<Digest, u64> = accepted.map(|one| (one.body, one.t)).collect();
        for one in publications.iter().filter(|one| one.is_unknown()) {
            let again = known.get(&one.body).is_some_and(|at| one.t.abs_diff(*at) < REMEMBERED);
            add(one, usize::from(!again));
            known.entry(one.body).or_insert(one.t);
        }
    }
    let mut came: HashMap<Name, &Receipt> = HashMap::new();
    for receipt in run.receipts.iter().filter(|receipt| run.accepted(receipt.event).is_none()) {
        came.entry(receipt.event).or_insert(receipt);
    }
    let mut came: Vec<&Receipt> = came.into_values().collect();
    came.sort_by_key(|receipt| (receipt.t, receipt.event));
    for receipt in came {
        let left = receipt.sha.and_then(|sha| room.get_mut(&(receipt.event_type, sha)));
        let Some(left) = left else { continue };
        verdict.judge();
        if *left == 0 {
            verdict.wrong(|| format!("{}: one event more than was published", run.show(receipt)));
        }
        *left = left.saturating_sub(1);
    }
}
