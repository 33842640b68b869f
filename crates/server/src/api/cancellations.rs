//! Cancellations of many deliveries: jobs with progress.

use tidegate_store::job::JobKind;

super::jobs::calls! {
    JobKind::Cancellation, "/v1/cancellations", "/v1/cancellations/{id}";

    /// Cancel all open deliveries of a filter.
    ///
    /// A job: each delivery that fits, is not over, and was accepted before this call, is withdrawn. `dry_run` counts only.
    create;

    /// List cancellations, the newest first.
    list;

    /// Read a cancellation and its progress.
    read;

    /// Stop a cancellation. What it has withdrawn stays so.
    stop;
}
