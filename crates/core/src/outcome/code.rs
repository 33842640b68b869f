//! An outcome as one short text: how it lies in the store, with everything that the rules know of it.

use super::{NetworkFault, Outcome};
use crate::time::Millis;

impl Outcome {
    /// The code for it: its word, then what belongs to it (`http_error:500`, `rate_limited:9000`, `network_error:tls`).
    pub fn to_code(&self) -> String {
        let word = self.word();
        match self {
            Self::Success { status } | Self::HttpError { status } | Self::Redirect { status } => {
                format!("{word}:{status}")
            }
            Self::RateLimited { retry_after: Some(wait) } | Self::Unavailable { retry_after: wait } => {
                format!("{word}:{}", wait.get())
            }
            Self::NetworkError(fault) => format!("{word}:{}", fault.word()),
            Self::RateLimited { retry_after: None }
            | Self::Gone
            | Self::Timeout
            | Self::Blocked
            | Self::Cancelled => word.to_owned(),
        }
    }

    /// Reads what [`to_code`](Self::to_code) wrote, and nothing else.
    pub fn from_code(code: &str) -> Option<Self> {
        let outcome = match code.split_once(':') {
            None => match code {
                "rate_limited" => Self::RateLimited { retry_after: None },
                "gone" => Self::Gone,
                "timeout" => Self::Timeout,
                "blocked" => Self::Blocked,
                "cancelled" => Self::Cancelled,
                _ => return None,
            },
            Some((word, rest)) => {
                let status = || rest.parse().ok();
                let wait = || rest.parse().ok().map(Millis::new);
                match word {
                    "success" => Self::Success { status: status()? },
                    "http_error" => Self::HttpError { status: status()? },
                    "redirect" => Self::Redirect { status: status()? },
                    "rate_limited" => Self::RateLimited { retry_after: Some(wait()?) },
                    "unavailable" => Self::Unavailable { retry_after: wait()? },
                    "network_error" => Self::NetworkError(NetworkFault::from_word(rest)?),
                    _ => return None,
                }
            }
        };
        // Numbers can be written in more ways than one; the store knows one.
        (outcome.to_code() == code).then_some(outcome)
    }
}

impl NetworkFault {
    /// Every fault.
    pub const ALL: [Self; 7] = [
        Self::NameNotFound,
        Self::ResolverDown,
        Self::Connect,
        Self::Tls,
        Self::Reset,
        Self::ReusedConnectionClosed,
        Self::BadResponse,
    ];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NameNotFound => "name_not_found",
            Self::ResolverDown => "resolver_down",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Reset => "reset",
            Self::ReusedConnectionClosed => "reused_connection_closed",
            Self::BadResponse => "bad_response",
        }
    }
    /// The fault that `word` names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.word() == word)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any outcome there can be.
    pub(crate) fn any_outcome() -> impl Strategy<Value = Outcome> {
        let wait = (0_i64..=86_400_000).prop_map(Millis::new);
        prop_oneof![
            (any::<u16>(), prop::option::of(wait)).prop_map(|(status, wait)| Outcome::classify(status, wait)),
            Just(Outcome::classify(429, None)),
            (1_000_i64..=86_400_000).prop_map(|ms| Outcome::classify(503, Some(Millis::new(ms)))),
            (0_usize..7).prop_map(|fault| Outcome::NetworkError(NetworkFault::ALL[fault])),
            Just(Outcome::Timeout),
            Just(Outcome::Gone),
            Just(Outcome::Blocked),
            Just(Outcome::Cancelled),
        ]
    }

    #[test]
    fn other_text_is_no_outcome() {
        for wrong in
            ["", "success", "success:", "success:+200", "success:0200", "gone:1", "network_error:x", "ok"]
        {
            assert_eq!(Outcome::from_code(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn an_outcome_survives_its_code(outcome in any_outcome()) {
            prop_assert_eq!(Outcome::from_code(&outcome.to_code()), Some(outcome));
        }

        #[test]
        fn any_text_is_read_or_refused(code in "[a-z_]{0,13}(:[a-z0-9+-]{0,6})?") {
            if let Some(outcome) = Outcome::from_code(&code) {
                prop_assert_eq!(outcome.to_code(), code);
            }
        }
    }
}
