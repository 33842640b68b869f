//! The end of a delivery as one short text: how it lies in the store, with everything that `final_reason` says.

use super::{Dead, End, HoldReason, Late, Withdrawn};
use crate::outcome::Outcome;

impl End {
    /// The code for it: its word, then why (`expired:behind:paused`, `dead_letter:attempts_used_up:http_error:500`).
    pub fn to_code(&self) -> String {
        let word = self.word();
        match self {
            Self::Delivered => word.to_owned(),
            Self::DeadLetter(Dead::AttemptsUsedUp(last)) => {
                format!("{word}:attempts_used_up:{}", last.to_code())
            }
            Self::DeadLetter(Dead::Gone) => format!("{word}:gone"),
            Self::DeadLetter(Dead::PermanentStatus(status)) => format!("{word}:permanent_status:{status}"),
            Self::DeadLetter(Dead::TooOld(None)) => format!("{word}:too_old"),
            Self::DeadLetter(Dead::TooOld(Some(hold))) => format!("{word}:too_old:{hold}"),
            Self::DeadLetter(Dead::PutAside) => format!("{word}:put_aside"),
            Self::Expired(Late::OnArrival) => format!("{word}:on_arrival"),
            Self::Expired(Late::Behind(hold)) => format!("{word}:behind:{hold}"),
            Self::Expired(Late::InQueue) => format!("{word}:in_queue"),
            Self::Expired(Late::NoServer) => format!("{word}:no_server"),
            Self::Expired(Late::RetryTooLate(last)) => format!("{word}:retry_too_late:{}", last.to_code()),
            Self::Cancelled(by) => format!("{word}:{}", by.word()),
        }
    }

    /// Reads what [`to_code`](Self::to_code) wrote, and nothing else.
    pub fn from_code(code: &str) -> Option<Self> {
        let mut parts = code.splitn(3, ':');
        let (word, why, rest) = (parts.next()?, parts.next(), parts.next());
        let end = match (word, why, rest) {
            ("delivered", None, None) => Self::Delivered,
            ("dead_letter", Some("attempts_used_up"), Some(last)) => {
                Self::DeadLetter(Dead::AttemptsUsedUp(Outcome::from_code(last)?))
            }
            ("dead_letter", Some("gone"), None) => Self::DeadLetter(Dead::Gone),
            ("dead_letter", Some("permanent_status"), Some(status)) => {
                Self::DeadLetter(Dead::PermanentStatus(status.parse().ok()?))
            }
            ("dead_letter", Some("too_old"), None) => Self::DeadLetter(Dead::TooOld(None)),
            ("dead_letter", Some("too_old"), Some(hold)) => {
                Self::DeadLetter(Dead::TooOld(Some(HoldReason::from_word(hold)?)))
            }
            ("dead_letter", Some("put_aside"), None) => Self::DeadLetter(Dead::PutAside),
            ("expired", Some("on_arrival"), None) => Self::Expired(Late::OnArrival),
            ("expired", Some("behind"), Some(hold)) => {
                Self::Expired(Late::Behind(HoldReason::from_word(hold)?))
            }
            ("expired", Some("in_queue"), None) => Self::Expired(Late::InQueue),
            ("expired", Some("no_server"), None) => Self::Expired(Late::NoServer),
            ("expired", Some("retry_too_late"), Some(last)) => {
                Self::Expired(Late::RetryTooLate(Outcome::from_code(last)?))
            }
            ("cancelled", Some(by), None) => Self::Cancelled(Withdrawn::from_word(by)?),
            _ => return None,
        };
        // Numbers can be written in more ways than one; the store knows one.
        (end.to_code() == code).then_some(end)
    }
}

impl Withdrawn {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ByRequest => "by_request",
            Self::DestinationDeleted => "destination_deleted",
        }
    }
    /// The one that `word` names.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::ByRequest, Self::DestinationDeleted].into_iter().find(|by| by.word() == word)
    }
}

impl HoldReason {
    /// The reason that `word` names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.word() == word)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::outcome::any_outcome;

    /// Any end there can be.
    pub(crate) fn any_end() -> impl Strategy<Value = End> {
        let hold = || (0_usize..HoldReason::ALL.len()).prop_map(|place| HoldReason::ALL[place]);
        prop_oneof![
            Just(End::Delivered),
            any_outcome().prop_map(|last| End::DeadLetter(Dead::AttemptsUsedUp(last))),
            Just(End::DeadLetter(Dead::Gone)),
            any::<u16>().prop_map(|status| End::DeadLetter(Dead::PermanentStatus(status))),
            prop::option::of(hold()).prop_map(|hold| End::DeadLetter(Dead::TooOld(hold))),
            Just(End::DeadLetter(Dead::PutAside)),
            Just(End::Expired(Late::OnArrival)),
            hold().prop_map(|hold| End::Expired(Late::Behind(hold))),
            Just(End::Expired(Late::InQueue)),
            Just(End::Expired(Late::NoServer)),
            any_outcome().prop_map(|last| End::Expired(Late::RetryTooLate(last))),
            Just(End::Cancelled(Withdrawn::ByRequest)),
            Just(End::Cancelled(Withdrawn::DestinationDeleted)),
        ]
    }

    #[test]
    fn other_text_is_no_end() {
        for wrong in [
            "",
            "delivered:",
            "dead_letter",
            "dead_letter:gone:",
            "dead_letter:permanent_status:+422",
            "expired:behind",
            "expired:behind:nothing",
            "expired:retry_too_late:ok",
            "cancelled:by_chance",
        ] {
            assert_eq!(End::from_code(wrong), None, "{wrong}");
        }
        assert_eq!(HoldReason::from_word("held"), None);
    }

    proptest! {
        #[test]
        fn an_end_survives_its_code(end in any_end()) {
            prop_assert_eq!(End::from_code(&end.to_code()), Some(end));
        }

        #[test]
        fn any_text_is_read_or_refused(code in "[a-z_]{0,12}(:[a-z_]{0,16}){0,2}(:[a-z0-9+-]{0,6})?") {
            if let Some(end) = End::from_code(&code) {
                prop_assert_eq!(end.to_code(), code);
            }
        }
    }
}
