//! Changing the signing secret without a gap: for a while both sign.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use tidegate_core::invalid::check_range;
use tidegate_core::sign::Secret;
use tidegate_core::time::{Millis, Timestamp};
use utoipa::ToSchema;

use super::write::{Rewrite, random, rewrite};
use crate::api::error::ApiError;
use crate::api::etag::IfMatch;
use crate::api::extract::{OptionalJson, PathText};
use crate::api::openapi::WriteRefusals;
use crate::api::{App, Data, as_optional_text, ok};
use crate::auth::{Call, Editor};

/// How long the old secret goes on signing where nobody says otherwise: a day is enough for a deployment.
const DEFAULT_OVERLAP: i64 = 86_400;
/// How long at most: a secret that is to go should go.
const MAX_OVERLAP: i64 = 7 * 86_400;

/// The new secret.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RotateBody {
    /// `whsec_…` or `whsk_…`; without it the server makes one and shows it in the answer.
    #[schema(write_only)]
    signing_secret: Option<String>,
    /// How long the one before signs as well: a day if not said; 0 ends it at once.
    #[schema(minimum = 0, maximum = 604_800)]
    overlap_seconds: Option<i64>,
}

/// What was changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Rotated {
    /// The new secret if the server made it; it is never shown again.
    #[schema(required = true)]
    signing_secret: Option<String>,
    /// What receivers verify with, where it is an Ed25519 key.
    #[schema(required = true)]
    signing_public_key: Option<String>,
    /// Until when the one before signs as well.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    previous_valid_until: Option<Timestamp>,
}

/// Rotate the signing secret.
///
/// While old and new overlap, every request carries a signature of each; at most three secrets sign.
#[utoipa::path(
    post,
    path = "/v1/destinations/{id}/rotate-secret",
    tag = "destinations",
    params(("id" = String, Path, description = "Its id or external id.")),
    request_body = Option<RotateBody>,
    responses((status = 200, description = "It signs with the new one from now on.", body = Data<Rotated>), WriteRefusals)
)]
pub(super) async fn rotate(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    PathText(name): PathText,
    OptionalJson(body): OptionalJson<RotateBody>,
) -> Result<axum::Json<Data<Rotated>>, ApiError> {
    let overlap =
        check_range("overlap_seconds", body.overlap_seconds.unwrap_or(DEFAULT_OVERLAP), 0, MAX_OVERLAP)?;
    let secret = match &body.signing_secret {
        Some(text) => Secret::parse(text)?,
        None => Secret::generate(random(&app)),
    };
    let now = app.engine.now().wall;
    let action = "destination.rotate_secret";
    let how = Rewrite { name: &name, if_match: &IfMatch::Any, action, active: None };
    rewrite(&app, &caller, how, |draft| {
        draft.secrets.rotate(now, &secret, Millis::seconds(overlap));
        Ok(())
    })
    .await
    .map(|entry| {
        ok(Rotated {
            signing_secret: body.signing_secret.is_none().then(|| secret.reveal()),
            signing_public_key: entry.spec.signing_public_key.clone(),
            previous_valid_until: entry.spec.previous_secret_valid_until,
        })
    })
}
