//! Rules for what people write freely: names, ids of their own, credentials.

use tidegate_core::headers::CustomHeaders;
use tidegate_core::id::{AccountId, DestinationId};
use tidegate_core::invalid::Invalid;

use super::AuthShown;
use crate::policy::sealed::{AuthConfig, AuthKind};

/// The longest name, in characters.
const MAX_NAME: usize = 200;
/// The longest id of an owner's own.
const MAX_EXTERNAL_ID: usize = 128;
/// The longest bearer token, in bytes: with `Bearer ` before it, it fits the limit of a header.
const MAX_TOKEN: usize = 4_000;

/// A name: 1 to 200 characters, none of them a control character.
pub(crate) fn check_name(name: &str) -> Result<(), Invalid> {
    let length = name.chars().count();
    if name.trim().is_empty() || length > MAX_NAME || name.chars().any(char::is_control) {
        return Err(Invalid::new("name", name, "1 to 200 characters, no control characters"));
    }
    Ok(())
}

/// An owner's own id for a destination, an operator's for an account: it stands wherever the id may, so it must fit a path and never look like an id.
pub(crate) fn check_external_id(id: &str) -> Result<(), Invalid> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:@-".contains(&byte);
    let fits = (1..=MAX_EXTERNAL_ID).contains(&id.len()) && id.bytes().all(allowed);
    let ours = DestinationId::parse(id).is_ok() || AccountId::parse(id).is_ok();
    if !fits || matches!(id, "." | "..") || ours {
        let rule = "1 to 128 letters, digits and ._:@- that do not make an id of ours";
        return Err(Invalid::new("external_id", id, rule));
    }
    Ok(())
}

/// Checks an `auth_config`, and says what may be told of it. Faults never quote a credential.
pub(crate) fn check_auth(auth: &AuthConfig) -> Result<AuthShown, Invalid> {
    let unknown = |field: &str, kind: &str| {
        Invalid::new(field, "given", format!("not with type {kind}")).under("auth_config")
    };
    match auth.kind {
        AuthKind::Bearer => {
            if auth.name.is_some() {
                return Err(unknown("name", "bearer"));
            }
            if auth.value.is_some() {
                return Err(unknown("value", "bearer"));
            }
            let token = auth.token.as_deref().unwrap_or_default();
            check_credential("token", token)?;
            Ok(AuthShown { kind: AuthKind::Bearer, name: "authorization".to_owned() })
        }
        AuthKind::Header => {
            if auth.token.is_some() {
                return Err(unknown("token", "header"));
            }
            let name = auth.name.as_deref().unwrap_or_default();
            if name.is_empty() {
                return Err(Invalid::missing("auth_config.name", "the name of a header"));
            }
            check_credential("value", auth.value.as_deref().unwrap_or_default())?;
            CustomHeaders::parse([(name, "x")]).map_err(|fault| renamed(fault, "name"))?;
            Ok(AuthShown { kind: AuthKind::Header, name: name.to_ascii_lowercase() })
        }
    }
}

fn check_credential(field: &str, credential: &str) -> Result<(), Invalid> {
    let rule = "1 to 4000 bytes without control characters or blanks at the ends";
    if credential.is_empty() {
        return Err(Invalid::missing(field, rule).under("auth_config"));
    }
    let refused = || Invalid::new(field, "(not shown)", rule).under("auth_config");
    if credential.len() > MAX_TOKEN {
        return Err(refused());
    }
    CustomHeaders::parse([("x-credential", credential)]).map(|_| ()).map_err(|_| refused())
}

fn renamed(mut fault: Invalid, field: &str) -> Invalid {
    fault.field = format!("auth_config.{field}");
    fault
}
