//! What people want of a destination or of one of its deliveries. In a cluster it may have to travel to the node that works the
//! destination: then it is a line of text in the store.

use tidegate_core::delivery::{Delivery, Withdrawn};
use tidegate_core::health::DisabledCause;
use tidegate_core::id::DeliveryId;
use tidegate_store::DestinationNo;

use crate::dispatcher::Command;

/// One wish.
#[derive(Clone, Debug)]
pub(crate) enum Wish {
    /// Of the destination.
    Command(Command),
    /// Withdraw this one, given as the store has it.
    Withdraw(Box<Delivery>, Withdrawn),
    /// Send this one, given as the store has it, without waiting for its own time.
    Hasten(Box<Delivery>),
}

/// Wishes for one destination as they travel: deliveries are named, and read by who fulfils it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Command(Command),
    Withdraw(Withdrawn, Vec<DeliveryId>),
    Hasten(DeliveryId),
}

impl Written {
    /// As they travel: many that are withdrawn from one destination go together.
    pub(crate) fn from_wishes(wishes: &[(DestinationNo, Wish)]) -> Vec<(DestinationNo, Self)> {
        let mut written: Vec<(DestinationNo, Self)> = Vec::new();
        for (destination, wish) in wishes {
            match (wish, written.last_mut()) {
                (Wish::Withdraw(delivery, by), Some((same, Self::Withdraw(one, ids))))
                    if same == destination && one == by =>
                {
                    ids.push(delivery.id);
                }
                (Wish::Withdraw(delivery, by), _) => {
                    written.push((*destination, Self::Withdraw(*by, vec![delivery.id])));
                }
                (Wish::Command(command), _) => written.push((*destination, Self::Command(*command))),
                (Wish::Hasten(delivery), _) => written.push((*destination, Self::Hasten(delivery.id))),
            }
        }
        written
    }
}

impl Written {
    /// The line.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Command(command) => command_word(*command).to_owned(),
            Self::Withdraw(by, deliveries) => {
                let words = deliveries.iter().map(ToString::to_string);
                ["withdraw".to_owned(), by.word().to_owned()]
                    .into_iter()
                    .chain(words)
                    .collect::<Vec<_>>()
                    .join(" ")
            }
            Self::Hasten(delivery) => format!("hasten {delivery}"),
        }
    }

    /// Reads the line; `None`: a newer binary wrote it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        match words.next()? {
            "withdraw" => {
                let by = Withdrawn::from_word(words.next()?)?;
                let ids = words.map(|id| DeliveryId::parse(id).ok()).collect::<Option<Vec<_>>>()?;
                Some(Self::Withdraw(by, ids))
            }
            "hasten" => Some(Self::Hasten(DeliveryId::parse(words.next()?).ok()?)),
            _ => COMMANDS.iter().copied().find(|command| command_word(*command) == text).map(Self::Command),
        }
    }
}

/// Everything that can be wanted of a destination.
const COMMANDS: [Command; 9] = [
    Command::Pause,
    Command::Resume { skip_head: false },
    Command::Resume { skip_head: true },
    Command::Disable(DisabledCause::ByRequest),
    Command::Disable(DisabledCause::Gone),
    Command::Disable(DisabledCause::Failing),
    Command::Enable,
    Command::RetryNow,
    Command::Retire,
];

const fn command_word(command: Command) -> &'static str {
    match command {
        Command::Pause => "pause",
        Command::Resume { skip_head: false } => "resume",
        Command::Resume { skip_head: true } => "resume_skip_head",
        Command::Disable(DisabledCause::ByRequest) => "disable",
        Command::Disable(DisabledCause::Gone) => "disable_gone",
        Command::Disable(DisabledCause::Failing) => "disable_failing",
        Command::Enable => "enable",
        Command::RetryNow => "retry_now",
        Command::Retire => "retire",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wish_survives_its_travel() {
        let id = DeliveryId::from_bits(77);
        let of_deliveries = [
            Written::Withdraw(Withdrawn::ByRequest, vec![id]),
            Written::Withdraw(Withdrawn::DestinationDeleted, vec![id, DeliveryId::from_bits(78)]),
            Written::Hasten(id),
        ];
        for wish in COMMANDS.map(Written::Command).into_iter().chain(of_deliveries) {
            assert_eq!(Written::parse(&wish.to_text()), Some(wish.clone()), "{}", wish.to_text());
        }
        for strange in ["", "withdraw", "withdraw by_request x", "hasten", "something newer"] {
            assert_eq!(Written::parse(strange), None, "{strange}");
        }
    }
}
