//! Where and how requests to a destination are made, from its document and its secrets.

use tidegate_core::dial::Target;
use tidegate_core::headers::CustomHeaders;
use tidegate_core::invalid::Invalid;
use tidegate_core::sign::Secret;
use tidegate_engine::sender::{Auth, Endpoint, Envelope, Settings, SigningKey};

use super::destination::EnvelopeWord;
use super::sealed::{AuthConfig, AuthKind};
use super::{DestinationDocument, DestinationSecrets};

/// The endpoint of a destination. `Err`: its URL or its credentials cannot be used, so nothing can be sent. Headers or a
/// secret that cannot be used (any more) are left out and told.
pub(crate) fn compile(
    document: &DestinationDocument,
    secrets: &DestinationSecrets,
) -> Result<(Endpoint, Vec<Invalid>), Invalid> {
    // Whether http is allowed is asked when a URL is written, and again by the sender.
    let target = Target::parse(&document.url, false)?;
    let mut faults = Vec::new();
    let mut keys = Vec::new();
    for signing in &secrets.signing {
        match Secret::parse(&signing.secret) {
            Ok(secret) => keys.push(SigningKey { secret, valid_until: signing.ends_at() }),
            Err(fault) => faults.push(fault),
        }
    }
    let headers = CustomHeaders::parse(&document.custom_headers).unwrap_or_else(|fault| {
        faults.push(fault);
        CustomHeaders::default()
    });
    let envelope = match document.envelope {
        EnvelopeWord::Raw => Envelope::Raw,
        EnvelopeWord::Standard => Envelope::Standard,
    };
    let auth = secrets.auth.as_ref().map(auth);
    Ok((Endpoint::new(Settings { target, secrets: keys, headers, auth, envelope })?, faults))
}

fn auth(config: &AuthConfig) -> Auth {
    match config.kind {
        AuthKind::Bearer => Auth::Bearer(config.token.clone().unwrap_or_default()),
        AuthKind::Header => Auth::Header {
            name: config.name.clone().unwrap_or_default(),
            value: config.value.clone().unwrap_or_default(),
        },
    }
}
