//! The body of POST and PATCH, and what it does to a destination.

use serde::Deserialize;
use tidegate_core::invalid::Invalid;
use tidegate_core::sign::Secret;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use super::header_pairs::HeaderPairs;
use super::text::check_external_id;
use super::{Draft, EnvelopeWord};
use crate::policy::Change;
use crate::policy::breaker::BreakerDocument;
use crate::policy::changes::PolicyChanges;
use crate::policy::document::{OnExhaustedWord, OrderingWord};
use crate::policy::rate::RateLimitDocument;
use crate::policy::retry::RetryDocument;
use crate::policy::schedule::ScheduleDocument;
use crate::policy::sealed::AuthConfig;
use crate::policy::timeout::TimeoutDocument;

/// What to change of a destination: fields that are absent stay as they are, `null` removes a policy, so that the
/// account's default holds.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DestinationPatch {
    /// Where it is: http or https, no user info, no fragment.
    #[serde(default)]
    #[schema(value_type = String, max_length = 2048, example = "https://example.com/hooks")]
    pub(crate) url: Change<String>,
    /// Its name; by default the URL's host.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 200)]
    pub(crate) name: Change<String>,
    /// An id of your own, usable wherever the id is: letters, digits and `._:@-`.
    #[serde(default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128)]
    pub(crate) external_id: Change<String>,
    /// `false` switches it off: deliveries wait. `true` also enables one that was disabled.
    #[serde(default)]
    #[schema(value_type = bool, default = true)]
    pub(crate) active: Change<bool>,
    /// The outbound events that it gets, as patterns; `[]`: only what routes or `destination_ids` send.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>, max_items = 100)]
    pub(crate) event_types: Change<Vec<String>>,
    /// Requests in flight at most.
    #[serde(default)]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 1_000)]
    pub(crate) max_concurrency: Change<u64>,
    /// In which order it gets its deliveries.
    #[serde(default)]
    #[schema(value_type = Option<OrderingWord>)]
    pub(crate) ordering: Change<OrderingWord>,
    /// What follows in a line when a delivery is dead.
    #[serde(default)]
    #[schema(value_type = Option<OnExhaustedWord>)]
    pub(crate) on_exhausted: Change<OnExhaustedWord>,
    /// Pins the timeout; `null` unpins it.
    #[serde(default)]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 120)]
    pub(crate) timeout_seconds: Change<u64>,
    /// How the timeout is found otherwise.
    #[serde(default)]
    #[schema(value_type = Option<TimeoutDocument>)]
    pub(crate) timeout: Change<TimeoutDocument>,
    /// How fast.
    #[serde(default)]
    #[schema(value_type = Option<RateLimitDocument>)]
    pub(crate) rate_limit: Change<RateLimitDocument>,
    /// Quiet hours: a single window.
    #[serde(default)]
    #[schema(value_type = Option<ScheduleDocument>)]
    pub(crate) delivery_schedule: Change<ScheduleDocument>,
    /// Quiet hours: a list of windows.
    #[serde(default)]
    #[schema(value_type = Option<Vec<ScheduleDocument>>, max_items = 20)]
    pub(crate) delivery_schedules: Change<Vec<ScheduleDocument>>,
    /// How to retry.
    #[serde(default)]
    #[schema(value_type = Option<RetryDocument>)]
    pub(crate) retry_policy: Change<RetryDocument>,
    /// When to stop trying.
    #[serde(default)]
    #[schema(value_type = Option<BreakerDocument>)]
    pub(crate) circuit_breaker: Change<BreakerDocument>,
    /// Statuses that are final at once: 400 to 599, but not 429.
    #[serde(default)]
    #[schema(value_type = Option<Vec<u16>>)]
    pub(crate) permanent_statuses: Change<Vec<u16>>,
    /// What the body is.
    #[serde(default)]
    #[schema(value_type = Option<EnvelopeWord>)]
    pub(crate) envelope: Change<EnvelopeWord>,
    /// `whsec_…` or `whsk_…`. A PATCH replaces the one before at once; `/rotate-secret` lets them overlap.
    #[serde(default)]
    #[schema(value_type = String, write_only)]
    pub(crate) signing_secret: Change<String>,
    /// How requests authenticate themselves.
    #[serde(default)]
    #[schema(value_type = Option<AuthConfig>, write_only)]
    pub(crate) auth_config: Change<AuthConfig>,
    /// Headers to send besides ours: at most 32, of at most 4 KiB.
    #[serde(default)]
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    pub(crate) custom_headers: Change<HeaderPairs>,
}

/// A new destination: as a PATCH, but the URL must be there. Without a `signing_secret` the server makes one and shows it
/// once, in the answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct NewDestination(pub DestinationPatch);

impl PartialSchema for NewDestination {
    fn schema() -> RefOr<Schema> {
        let mut schema = DestinationPatch::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            object.required.push("url".to_owned());
            object.description = Some(
                "A new destination. Without a `signing_secret` the server makes one and shows it once, in the answer."
                    .to_owned(),
            );
        }
        schema
    }
}

impl ToSchema for NewDestination {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        DestinationPatch::schemas(schemas);
    }
}

impl NewDestination {
    /// The destination that it describes. `random` becomes its signing secret if it names none; that is given back, too.
    pub(crate) fn build(
        self,
        https_only: bool,
        random: [u8; 32],
    ) -> Result<(Draft, Option<String>), Invalid> {
        let Self(mut patch) = self;
        if !matches!(patch.url, Change::Set(_)) {
            return Err(Invalid::missing("url", "an absolute URL such as https://example.com/hooks"));
        }
        let made = match patch.signing_secret {
            Change::Set(_) | Change::Remove => None,
            Change::Keep => {
                let secret = Secret::generate(random).reveal();
                patch.signing_secret = Change::Set(secret.clone());
                Some(secret)
            }
        };
        if matches!(patch.name, Change::Keep) {
            patch.name = Change::Remove;
        }
        let mut draft = Draft::at(String::new());
        patch.apply(&mut draft, https_only)?;
        Ok((draft, made))
    }
}

impl DestinationPatch {
    /// Does to `draft` what it says, or says what is wrong with it first. Only what it says is checked: what was written
    /// before stays as it is.
    pub(crate) fn apply(self, draft: &mut Draft, https_only: bool) -> Result<(), Invalid> {
        draft.set_url(self.url, https_only)?;
        draft.set_name(self.name)?;
        if let Change::Set(id) = &self.external_id {
            check_external_id(id)?;
        }
        self.external_id.apply(&mut draft.external_id);
        match self.active {
            Change::Keep => {}
            Change::Remove => return Err(Invalid::new("active", "null", "true or false")),
            Change::Set(active) => draft.document.active = active,
        }
        match self.envelope {
            Change::Keep => {}
            Change::Remove => draft.document.envelope = EnvelopeWord::default(),
            Change::Set(envelope) => draft.document.envelope = envelope,
        }
        draft.set_event_types(self.event_types)?;
        draft.set_headers(self.custom_headers)?;
        draft.set_auth(self.auth_config)?;
        draft.set_signing_secret(self.signing_secret)?;
        PolicyChanges {
            max_concurrency: self.max_concurrency,
            ordering: self.ordering,
            on_exhausted: self.on_exhausted,
            timeout_seconds: self.timeout_seconds,
            timeout: self.timeout,
            rate_limit: self.rate_limit,
            delivery_schedule: self.delivery_schedule,
            delivery_schedules: self.delivery_schedules,
            retry_policy: self.retry_policy,
            circuit_breaker: self.circuit_breaker,
            permanent_statuses: self.permanent_statuses,
        }
        .apply(&mut draft.document.policies)?;
        draft.check_headers()
    }
}
