//! From rows to what the engine needs: a policy and an endpoint for each destination.

use std::sync::Arc;

use tidegate_core::invalid::Invalid;
use tidegate_core::pattern::Patterns;
use tidegate_core::policy::Policy;
use tidegate_core::time::Timestamp;
use tidegate_core::timeout::TimeoutParams;
use tidegate_engine::sender::Endpoint;
use tidegate_store::catalogue::Destination;

use super::{
    DestinationDocument, DestinationSecrets, Draft, Ground, PolicyDocument, Reading, defaults, endpoint,
};
use crate::catalogue::AccountEntry;
use crate::secrets::{Secrets, SecretsError};

/// What a destination's document says, read; nothing in here is a secret.
#[derive(Debug)]
pub(crate) struct Spec {
    /// The document.
    pub(crate) document: DestinationDocument,
    /// Its policies, and where it says nothing, the account's.
    pub(crate) in_force: PolicyDocument,
    /// The public half of its signing secret, where it has one.
    pub(crate) signing_public_key: Option<String>,
    /// Until when the signing secret before this one is valid, if it was rotated.
    pub(crate) previous_secret_valid_until: Option<Timestamp>,
}

/// What becomes of a destination's row.
pub(crate) struct Compiled {
    /// What its document says.
    pub(crate) spec: Arc<Spec>,
    /// The types of outbound events that it gets.
    pub(crate) event_types: Patterns,
    /// Its policies, with the account's defaults.
    pub(crate) policy: Arc<Policy>,
    /// Where and how to send.
    pub(crate) endpoint: Arc<Endpoint>,
}

/// Makes policies and endpoints.
pub(crate) struct Compiler {
    /// Opens the secrets.
    pub(crate) secrets: Arc<Secrets>,
    /// The numbers of the adaptive timeout, as the operator configured them.
    pub(crate) timeout_params: TimeoutParams,
    /// Whether a URL that is written must be https. What is stored already, the sender refuses.
    pub(crate) https_only: bool,
}

impl Compiler {
    /// Policy and endpoint of a row. Its number need not be known yet. What is wrong by now with a stored part is left out
    /// and logged; only a URL or secrets that cannot be read at all are an error.
    pub(crate) fn compile(&self, row: &Destination, account: &AccountEntry) -> Result<Compiled, Invalid> {
        let document = read(&row.document)?;
        let secrets = self.open(row, account)?;
        let ground = Ground {
            defaults: defaults::read(&account.settings.document.defaults).unwrap_or_default(),
            timeout_params: self.timeout_params.clone(),
            account_paused: account.settings.document.paused(),
        };
        let (policy, mut faults) = super::compile(&document.policies, &ground, Reading::Stored);
        let (endpoint, more) = endpoint::compile(&document, &secrets)?;
        faults.extend(more);
        for fault in &faults {
            tracing::warn!(destination = %row.id, field = fault.field, "a stored setting is left out: {fault}");
        }
        for zone in policy.quiet.unknown_zones() {
            tracing::warn!(destination = %row.id, zone, "quiet hours are not kept: the time zone is unknown by now");
        }
        Ok(Compiled {
            event_types: document.patterns(),
            policy: Arc::new(policy),
            endpoint: Arc::new(endpoint),
            spec: Arc::new(Spec {
                signing_public_key: secrets.public_key(),
                previous_secret_valid_until: secrets
                    .signing
                    .get(1)
                    .and_then(super::sealed::SigningSecret::ends_at),
                in_force: document.policies.or(&ground.defaults),
                document,
            }),
        })
    }

    /// A stored destination with its secrets, to be changed.
    pub(crate) fn draft(&self, row: &Destination, account: &AccountEntry) -> Result<Draft, Invalid> {
        Ok(Draft {
            document: read(&row.document)?,
            secrets: self.open(row, account)?,
            external_id: row.external_id.clone(),
        })
    }

    /// Encrypts the secrets of a destination.
    pub(crate) fn seal(
        &self,
        account: &AccountEntry,
        destination: tidegate_core::id::DestinationId,
        secrets: &DestinationSecrets,
    ) -> Result<Vec<u8>, SecretsError> {
        self.secrets.seal(account.row.id, destination, &secrets.to_bytes())
    }

    fn open(&self, row: &Destination, account: &AccountEntry) -> Result<DestinationSecrets, Invalid> {
        let refused = |why: String| Invalid::new("secrets", why, "what this server encrypted");
        let plain =
            self.secrets.open(account.row.id, row.id, &row.secrets).map_err(|e| refused(e.to_string()))?;
        DestinationSecrets::from_bytes(&plain).ok_or_else(|| refused("unreadable".to_owned()))
    }
}

fn read(document: &str) -> Result<DestinationDocument, Invalid> {
    DestinationDocument::from_stored(document)
        .map_err(|error| Invalid::new("document", error, "a destination that this version can read"))
}
