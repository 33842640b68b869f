//! Replays of many deliveries: jobs with progress and a budget of their own.

use tidegate_store::job::JobKind;

super::jobs::calls! {
    JobKind::Replay, "/v1/replays", "/v1/replays/{id}";

    /// Replay all deliveries of a filter.
    ///
    /// A job: each delivery that fits, was accepted before this call, and has no newer one of the same event, is sent again as
    /// a new delivery of priority 4, at most `max_per_minute`, at most 1,000 of them open at a time. `dry_run` counts only.
    create;

    /// List replays, the newest first.
    list;

    /// Read a replay and its progress.
    read;

    /// Stop a replay. What it has made stays on its way.
    stop;
}
