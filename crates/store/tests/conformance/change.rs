//! Changes of what owners asked for: all edits or none, and a lost race is an answer.

use tidegate_core::id::{KeyId, ReplayId, RouteId};
use tidegate_store::catalogue::{ApiKey, AuditEntry, Change, Changed, Edit, EventTypeRow, Route};
use tidegate_store::job::{Job, JobKind, JobState};
use tidegate_store::{AccountNo, DestinationNo};

use crate::fixture::{Bench, START, later, new_account, new_destination};
use crate::place::Engine;

on_both! {
    an_edit_that_cannot_be_made_undoes_those_before_it;
    the_second_of_two_who_change_the_same_version_has_lost;
    a_deleted_destination_is_gone_but_its_open_deliveries_are_named;
    an_account_goes_with_all_that_it_has_and_no_other;
    an_account_comes_with_its_first_key_or_not_at_all;
    a_job_comes_with_its_line_or_not_at_all_and_ends_once;
}

fn route(number: u128, destination: u32) -> Route {
    Route {
        id: RouteId::from_bits(number),
        account: AccountNo(1),
        destination: DestinationNo(destination),
        document: "{}".to_owned(),
        created_at: START,
    }
}

fn key(number: u8, account: u32) -> ApiKey {
    ApiKey {
        id: KeyId::from_bits(u128::from(number)),
        account: AccountNo(account),
        hash: [number; 32],
        document: "{}".to_owned(),
        created_at: START,
        expires_at: Some(later(5)),
    }
}

fn line(account: u32, action: &str) -> AuditEntry {
    AuditEntry {
        account: AccountNo(account),
        at: START,
        actor: None,
        action: action.to_owned(),
        subject: "it".to_owned(),
        detail: "{}".to_owned(),
    }
}

async fn an_edit_that_cannot_be_made_undoes_those_before_it(engine: Engine) {
    let bench = Bench::new(engine).await;
    let mut taken = new_destination(1, 77);
    taken.external_id = Some("hook-1".to_owned());
    let edits = vec![Edit::AddRoute(route(1, 1)), Edit::AddDestination(taken.clone())];
    assert_eq!(bench.change(edits).await, Changed::Taken);
    taken.account = AccountNo(2);
    let added = bench.change(vec![Edit::AddDestination(taken)]).await;
    let Changed::Done { accounts, destinations } = added else { panic!("{added:?}") };
    assert!(
        accounts.is_empty() && destinations[0] > DestinationNo(4),
        "a number that nobody had: {destinations:?}"
    );
    assert_eq!(bench.change(vec![Edit::AddAccount(new_account(1))]).await, Changed::Taken);
    assert_eq!(bench.change(vec![Edit::AddRoute(route(1, 9))]).await, Changed::Missing);
    assert_eq!(bench.change(vec![Edit::DropRoute(RouteId::from_bits(1))]).await, Changed::Missing);
    let bench = bench.reopen(true).await;
    assert!(bench.opened.as_ref().unwrap().catalogue.routes.is_empty());
}

async fn the_second_of_two_who_change_the_same_version_has_lost(engine: Engine) {
    let bench = Bench::new(engine).await;
    let mut changed = new_destination(1, 1);
    (changed.no, changed.version, changed.document) = (DestinationNo(1), 2, "first".to_owned());
    assert!(matches!(bench.change(vec![Edit::SetDestination(changed.clone())]).await, Changed::Done { .. }));
    changed.document = "second".to_owned();
    assert_eq!(bench.change(vec![Edit::SetDestination(changed.clone())]).await, Changed::Outdated);
    let mut account = new_account(1);
    (account.no, account.version) = (AccountNo(1), 3);
    assert_eq!(bench.change(vec![Edit::SetAccount(account)]).await, Changed::Outdated);
    let row = |version: u64| EventTypeRow {
        account: AccountNo(1),
        event_type: "order.*".to_owned(),
        document: version.to_string(),
        version,
        updated_at: START,
    };
    assert_eq!(bench.change(vec![Edit::SetEventType(row(2))]).await, Changed::Missing);
    assert!(matches!(bench.change(vec![Edit::SetEventType(row(1))]).await, Changed::Done { .. }));
    assert_eq!(bench.change(vec![Edit::SetEventType(row(1))]).await, Changed::Outdated);
    assert!(matches!(bench.change(vec![Edit::SetEventType(row(2))]).await, Changed::Done { .. }));
    let bench = bench.reopen(false).await;
    let catalogue = &bench.opened.as_ref().unwrap().catalogue;
    assert_eq!(catalogue.destinations[0].document, "first");
    assert_eq!(catalogue.event_types, [row(2)]);
}

async fn a_deleted_destination_is_gone_but_its_open_deliveries_are_named(engine: Engine) {
    let bench = Bench::new(engine).await;
    bench.deliver(1, 1, 2, START).await;
    bench.change(vec![Edit::AddRoute(route(1, 1)), Edit::AddRoute(route(2, 2))]).await;
    let deleted = bench.change(vec![Edit::DropDestination(DestinationNo(1))]).await;
    assert!(matches!(deleted, Changed::Done { .. }));
    assert_eq!(bench.change(vec![Edit::DropDestination(DestinationNo(1))]).await, Changed::Missing);
    assert_eq!(bench.change(vec![Edit::DropDestination(DestinationNo(2))]).await, deleted);
    let bench = bench.reopen(true).await;
    let opened = bench.opened.as_ref().unwrap();
    let deleted: Vec<_> = opened
        .catalogue
        .deleted
        .iter()
        .map(|deleted| (deleted.no.0, deleted.account.0, deleted.has_open))
        .collect();
    assert_eq!(deleted, [(1, 1, true), (2, 1, false)]);
    let left: Vec<u32> = opened.catalogue.destinations.iter().map(|destination| destination.no.0).collect();
    assert_eq!((left, opened.catalogue.routes.len()), (vec![3, 4], 0));
}

async fn an_account_goes_with_all_that_it_has_and_no_other(engine: Engine) {
    let bench = Bench::new(engine).await;
    let edits = vec![Edit::AddKey(key(1, 1)), Edit::AddKey(key(2, 2)), Edit::AddRoute(route(1, 1))];
    bench.change(edits).await;
    let audit = |action: &str| AuditEntry {
        account: AccountNo(2),
        at: START,
        actor: Some(KeyId::from_bits(2)),
        action: action.to_owned(),
        subject: "acc_1".to_owned(),
        detail: "{}".to_owned(),
    };
    let change =
        Change { edits: vec![Edit::DropAccount(AccountNo(1))], audit: Some(audit("account.delete")) };
    bench.store.change(change).await.unwrap();
    let again = Change { edits: vec![Edit::DropAccount(AccountNo(1))], audit: Some(audit("twice")) };
    assert_eq!(bench.store.change(again).await.unwrap(), Changed::Missing);
    let other = Change { edits: Vec::new(), audit: Some(audit("key.use")) };
    bench.store.change(other).await.unwrap();

    let log = bench.store.audit_log(AccountNo(2), None, 1).await.unwrap();
    assert_eq!((log.items.len(), &log.items[0].1), (1, &audit("key.use")));
    let rest = bench.store.audit_log(AccountNo(2), log.next, 5).await.unwrap();
    assert_eq!(
        rest.items.iter().map(|(_, entry)| entry.clone()).collect::<Vec<_>>(),
        [audit("account.delete")]
    );
    assert!(bench.store.audit_log(AccountNo(1), None, 5).await.unwrap().items.is_empty());
    for (account, cap, count) in [(1, 10, 0), (2, 10, 2), (2, 0, 1)] {
        assert_eq!(bench.store.count_audit_log(AccountNo(account), cap).await.unwrap(), count);
    }
    let bench = bench.reopen(true).await;
    let catalogue = &bench.opened.as_ref().unwrap().catalogue;
    assert_eq!(catalogue.accounts.iter().map(|account| account.no.0).collect::<Vec<_>>(), [2]);
    assert_eq!(catalogue.keys, [key(2, 2)]);
    assert_eq!((catalogue.routes.len(), catalogue.destinations.len()), (0, 2));
}

async fn an_account_comes_with_its_first_key_or_not_at_all(engine: Engine) {
    let bench = Bench::new(engine).await;
    let nobody = vec![Edit::AddFirstKey(key(1, 0))];
    assert_eq!(bench.change(nobody).await, Changed::Missing, "no account was added before");
    let twice =
        vec![Edit::AddAccount(new_account(3)), Edit::AddFirstKey(key(1, 0)), Edit::DropRoute(route(9, 1).id)];
    assert_eq!(bench.change(twice).await, Changed::Missing);
    let edits = vec![Edit::AddAccount(new_account(3)), Edit::AddFirstKey(key(1, 0))];
    let change = Change { edits, audit: Some(line(2, "account.create")) };
    let Changed::Done { accounts, .. } = bench.store.change(change).await.unwrap() else { panic!("done") };
    let catalogue = bench.store.catalogue().await.unwrap();
    assert_eq!(catalogue.accounts.len(), 3);
    assert_eq!(catalogue.keys, [ApiKey { account: accounts[0], ..key(1, 0) }]);
    assert_eq!(bench.store.count_audit_log(AccountNo(2), 5).await.unwrap(), 1);
}

async fn a_job_comes_with_its_line_or_not_at_all_and_ends_once(engine: Engine) {
    let bench = Bench::new(engine).await;
    let job = |number: u128| Job {
        id: ReplayId::from_bits(number),
        account: AccountNo(1),
        kind: JobKind::Cancellation,
        request: "{}".to_owned(),
        created_at: START,
        state: JobState::Running,
        position: None,
        total: Some(9),
        done: 0,
        skipped: 0,
        finished_at: None,
    };
    let refused = vec![Edit::AddJob(job(1)), Edit::DropRoute(route(9, 1).id)];
    assert_eq!(bench.change(refused).await, Changed::Missing);
    let look = async |number| bench.store.job(AccountNo(1), job(number).id).await.unwrap();
    assert!(look(1).await.is_none());
    for number in [1, 2] {
        let change = Change { edits: vec![Edit::AddJob(job(number))], audit: Some(line(1, "create")) };
        assert!(matches!(bench.store.change(change).await.unwrap(), Changed::Done { .. }));
    }
    let progress = Job { done: 4, ..job(1) };
    bench.store.put_job(progress.clone()).await.unwrap();

    let stop = || Edit::StopJob { job: job(1).id, at: later(5) };
    let change = Change { edits: vec![stop()], audit: Some(line(1, "stop")) };
    assert!(matches!(bench.store.change(change).await.unwrap(), Changed::Done { .. }));
    let again = Change { edits: vec![stop()], audit: Some(line(1, "stop again")) };
    assert_eq!(bench.store.change(again).await.unwrap(), Changed::Missing);
    // What its worker still has to say comes too late.
    bench.store.put_job(Job { done: 7, ..progress }).await.unwrap();
    let stopped = look(1).await.unwrap();
    assert_eq!((stopped.state, stopped.done), (JobState::Stopped, 4));
    assert_eq!(stopped.finished_at, Some(later(5)));
    assert_eq!(look(2).await.unwrap().state, JobState::Running);
    assert_eq!(bench.store.count_audit_log(AccountNo(1), 9).await.unwrap(), 3);
    let bench = bench.reopen(true).await;
    let mut left = bench.opened.as_ref().unwrap().jobs.iter().map(|job| job.id).collect::<Vec<_>>();
    if bench.store.cluster().is_some() {
        left.extend(bench.store.adopt_jobs().await.unwrap().iter().map(|job| job.id));
    }
    assert_eq!(left, [job(2).id], "only what still runs is gone on with");
}
