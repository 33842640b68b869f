//! What a store must do, whichever engine is inside: the real definition of its verbs.
//!
//! Each behaviour opens a store of its own through [`fixture::Bench`], once for each [`place::Engine`], and every store has
//! two accounts with two destinations each, so that a missing condition shows. What only one engine can show is in `sqlite`
//! and `postgres`. The PostgreSQL server is a throw-away one that the tests start themselves.

#![expect(clippy::unwrap_used, unreachable_pub, reason = "one test binary")]

/// Runs a behaviour on both engines: two tests.
macro_rules! on_both {
    ($($name:ident;)*) => {
        mod on_sqlite {
            $(#[test]
            fn $name() {
                $crate::place::run(super::$name($crate::place::Engine::Sqlite));
            })*
        }
        mod on_postgres {
            $(#[test]
            fn $name() {
                $crate::place::run(super::$name($crate::place::Engine::Postgres));
            })*
        }
    };
}

#[path = "conformance/accept.rs"]
mod accept;
#[path = "conformance/change.rs"]
mod change;
#[path = "conformance/cluster.rs"]
mod cluster;
#[path = "conformance/faults.rs"]
mod faults;
#[path = "conformance/fixture.rs"]
mod fixture;
#[path = "conformance/forget.rs"]
mod forget;
#[path = "conformance/lists.rs"]
mod lists;
#[path = "conformance/migration.rs"]
mod migration;
#[path = "conformance/model.rs"]
mod model;
#[path = "conformance/outbox.rs"]
mod outbox;
#[path = "conformance/place.rs"]
mod place;
#[path = "conformance/plans.rs"]
mod plans;
#[path = "conformance/postgres.rs"]
mod postgres;
#[path = "conformance/record.rs"]
mod record;
#[path = "conformance/refill.rs"]
mod refill;
#[path = "conformance/restart.rs"]
mod restart;
#[path = "conformance/retention.rs"]
mod retention;
#[path = "conformance/server.rs"]
mod server;
#[path = "conformance/sqlite.rs"]
mod sqlite;
#[path = "conformance/story.rs"]
mod story;
#[path = "conformance/tls.rs"]
mod tls;
#[path = "conformance/transfer.rs"]
mod transfer;
