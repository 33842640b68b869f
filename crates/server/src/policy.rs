//! Documents to policies and endpoints.

use std::sync::Arc;

use tidegate_core::invalid::Invalid;
use tidegate_core::pattern::Patterns;
use tidegate_core::policy::Policy;
use tidegate_core::timeout::TimeoutParams;
use tidegate_engine::Endpoint;
use tidegate_store::catalogue::Destination;

use crate::catalogue::AccountEntry;
use crate::secrets::Secrets;

/// What a destination's document says, read.
#[derive(Debug)]
pub(crate) struct Spec {}

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
    /// Whether only https may be sent to.
    pub(crate) https_only: bool,
}

impl Compiler {
    /// Policy and endpoint of a row. Its number need not be known yet.
    pub(crate) fn compile(&self, row: &Destination, account: &AccountEntry) -> Result<Compiled, Invalid> {
        let _ = (row, account, &self.secrets, &self.timeout_params, self.https_only);
        Ok(Compiled {
            spec: Arc::new(Spec {}),
            event_types: Patterns::default(),
            policy: Arc::default(),
            endpoint: Arc::new(Endpoint {}),
        })
    }

    /// Checks the `defaults` of an account's settings: policies in the words of a destination.
    pub(crate) fn check_defaults(
        &self,
        defaults: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<(), Invalid> {
        let _ = defaults;
        Ok(())
    }
}
