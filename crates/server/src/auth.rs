//! Who calls, and what they may do.
//!
//! A key is 32 random bytes behind `tg_`. Only its SHA-256 is kept, and keys are found by that hash: what a guess shares
//! with a real key shows in no timing. Failed sign-ins are limited by address, always; calls by key, if configured.

mod call;
pub(crate) mod key;
mod limiter;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};
use tidegate_core::id::KeyId;
use tidegate_store::AccountNo;
use tidegate_store::catalogue::AuditEntry;
use utoipa::ToSchema;

pub(crate) use self::call::{Call, Editor, Operator, Owner, Publisher, Viewer};
use self::limiter::{Limit, Limiter};
use crate::api::App;
use crate::api::error::ApiError;
use crate::api::extract::single_header;
use crate::catalogue::KeyEntry;

/// Names another account, for operators.
pub(crate) const ACCOUNT_HEADER: &str = "Tidegate-Account";
/// Failed sign-ins of one address: so many at once, then one each second. A person mistypes a few, a program guesses on.
const FAILURES: Limit = Limit { burst: 50, per_second: 1 };

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// Reads.
    Viewer,
    /// Publishes, and nothing else.
    Publisher,
    /// Reads, publishes, and changes destinations, routes and deliveries.
    Editor,
    /// All in its account: keys and settings, too.
    Owner,
    /// All in the installation.
    Operator,
}

impl Role {
    /// Whether a key of this role may do what needs at least `needed`. A publisher may not read.
    pub(crate) fn permits(self, needed: Self) -> bool {
        let rank = |role| match role {
            Self::Viewer | Self::Publisher => 0,
            Self::Editor => 1,
            Self::Owner => 2,
            Self::Operator => 3,
        };
        self == needed || rank(self) > rank(needed)
    }

    /// The word for it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Publisher => "publisher",
            Self::Editor => "editor",
            Self::Owner => "owner",
            Self::Operator => "operator",
        }
    }
}

/// Who calls: a handler that has one is called with a valid key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    /// Which key.
    pub(crate) key: KeyId,
    /// What it may do.
    pub(crate) role: Role,
    /// The account that the call acts in.
    pub(crate) account: AccountNo,
    /// What the key is found by.
    hash: [u8; 32],
}

impl Caller {
    /// Whose call it is: 401 without a valid key, 429 where there are too many.
    pub(crate) fn of(parts: &Parts, app: &App) -> Result<Self, ApiError> {
        let now = app.engine.now();
        // Who brings no key guesses none.
        let hash = bearer(&parts.headers).map(key::hash).ok_or_else(ApiError::unauthorized)?;
        let Some(found) = valid_key(app, &hash) else {
            let address = parts.extensions.get::<Peer>().map(|peer| peer.0.ip());
            let address = network(address.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)));
            app.auth.failures.take(now.mono, address).map_err(ApiError::rate_limited)?;
            return Err(ApiError::unauthorized());
        };
        let counts = parts.extensions.get::<Within>().is_none();
        if let Some(calls) = app.auth.calls.as_ref().filter(|_| counts) {
            calls.take(now.mono, found.id).map_err(ApiError::rate_limited)?;
        }
        let account = acting_account(&parts.headers, app, found.role, found.account)?;
        Ok(Self { key: found.id, role: found.role, account, hash })
    }

    /// The key, if it is still valid and the account still there: for what goes on after the call was let in.
    pub(crate) fn still(&self, app: &App) -> Option<Arc<KeyEntry>> {
        valid_key(app, &self.hash).filter(|_| app.catalogue.account(self.account).is_some())
    }

    /// 403 unless the key may do what needs `role`.
    pub(crate) fn require(&self, role: Role) -> Result<(), ApiError> {
        if self.role.permits(role) {
            return Ok(());
        }
        let (needed, has) = (role.word(), self.role.word());
        Err(ApiError::forbidden(format!("this needs a key with the role {needed}; this one is {has}")))
    }
}

impl Caller {
    /// A line for the audit log: this key did `action` to `subject`. `detail` says what changed, without secrets.
    pub(crate) fn audit(
        &self,
        app: &App,
        action: &str,
        subject: impl std::fmt::Display,
        detail: &serde_json::Value,
    ) -> AuditEntry {
        AuditEntry {
            account: self.account,
            at: app.engine.now().wall,
            actor: Some(self.key),
            action: action.to_owned(),
            subject: subject.to_string(),
            detail: detail.to_string(),
        }
    }
}

/// The address that a request came from; the server puts it into each request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Marks a call that the dashboard makes to answer another, which was counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within;

/// The limits on sign-ins and calls.
pub(crate) struct Auth {
    failures: Limiter<IpAddr>,
    calls: Option<Limiter<KeyId>>,
}

impl Auth {
    /// With a limit on the calls of each key, per second, if any.
    pub(crate) fn new(calls_per_second: Option<u32>) -> Self {
        let limit = |per_second: u32| Limit { burst: per_second.saturating_mul(2).max(1), per_second };
        Self {
            failures: Limiter::new(FAILURES),
            calls: calls_per_second.filter(|rate| *rate > 0).map(|rate| Limiter::new(limit(rate))),
        }
    }
}

/// The key with this hash, unless its time is over.
fn valid_key(app: &App, hash: &[u8; 32]) -> Option<Arc<KeyEntry>> {
    let now = app.engine.now().wall;
    app.catalogue.key(hash).filter(|key| key.expires_at.is_none_or(|end| now < end))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The account that the header names, for operators; for others the header may name their own only.
fn acting_account(headers: &HeaderMap, app: &App, role: Role, own: AccountNo) -> Result<AccountNo, ApiError> {
    let Some(named) = single_header(headers, ACCOUNT_HEADER)? else { return Ok(own) };
    let named = named.to_str().ok().and_then(|name| app.catalogue.find_account(name));
    match (role, named) {
        (Role::Operator, Some(account)) => Ok(account.row.no),
        (Role::Operator, None) => Err(ApiError::not_found().field(ACCOUNT_HEADER)),
        (_, Some(account)) if account.row.no == own => Ok(own),
        _ => Err(ApiError::forbidden("only an operator key may name another account")),
    }
}

/// Whoever has one IPv6 address has 2⁶⁴ of them.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => IpAddr::V4(v4),
            None => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_do_what_the_lesser_ones_may_but_a_publisher_only_publishes() {
        use Role::{Editor, Operator, Owner, Publisher, Viewer};
        let table = [
            (Viewer, &[Viewer][..]),
            (Publisher, &[Publisher]),
            (Editor, &[Viewer, Publisher, Editor]),
            (Owner, &[Viewer, Publisher, Editor, Owner]),
            (Operator, &[Viewer, Publisher, Editor, Owner, Operator]),
        ];
        for (role, may) in table {
            for needed in [Viewer, Publisher, Editor, Owner, Operator] {
                assert_eq!(role.permits(needed), may.contains(&needed), "{role:?} {needed:?}");
            }
        }
    }

    #[test]
    fn addresses_of_one_ipv6_network_share_their_limit() {
        let parse = |text: &str| network(text.parse().unwrap());
        assert_eq!(parse("2001:db8::1"), parse("2001:db8::ffff:1"));
        assert_ne!(parse("2001:db8::1"), parse("2001:db8:0:1::1"));
        assert_eq!(parse("::ffff:10.0.0.1"), parse("10.0.0.1"));
    }
}
