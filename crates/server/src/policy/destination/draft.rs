//! A destination while it is being written: each field with its rule.

use std::collections::BTreeMap;

use tidegate_core::dial::{Host, Target};
use tidegate_core::headers::CustomHeaders;
use tidegate_core::invalid::Invalid;
use tidegate_core::pattern::Patterns;
use tidegate_core::sign::Secret;

use super::header_pairs::HeaderPairs;
use super::text::{check_auth, check_name};
use super::{DestinationDocument, EnvelopeWord, everything};
use crate::policy::sealed::AuthConfig;
use crate::policy::{Change, DestinationSecrets, PolicyDocument};

/// A destination with its secrets, in memory, while it is being changed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Draft {
    /// What is kept in clear.
    pub(crate) document: DestinationDocument,
    /// What is kept encrypted.
    pub(crate) secrets: DestinationSecrets,
    /// Its owner's id for it.
    pub(crate) external_id: Option<String>,
}

impl Draft {
    /// A destination of which only the URL is known.
    pub(super) fn at(url: String) -> Self {
        let document = DestinationDocument {
            name: String::new(),
            url,
            active: true,
            event_types: everything(),
            envelope: EnvelopeWord::default(),
            custom_headers: BTreeMap::new(),
            auth: None,
            policies: PolicyDocument::default(),
        };
        Self { document, secrets: DestinationSecrets::default(), external_id: None }
    }

    /// Headers of its own and the one that authenticates must not be the same.
    pub(super) fn check_headers(&self) -> Result<(), Invalid> {
        let Some(auth) = &self.document.auth else { return Ok(()) };
        let taken = |name: &&String| name.eq_ignore_ascii_case(&auth.name);
        match self.document.custom_headers.keys().find(taken) {
            Some(name) => Err(Invalid::new(
                format!("custom_headers.{name}"),
                "the header of auth_config",
                "a name that auth_config does not use",
            )),
            None => Ok(()),
        }
    }

    /// `url`.
    pub(super) fn set_url(&mut self, url: Change<String>, https_only: bool) -> Result<(), Invalid> {
        match url {
            Change::Keep => Ok(()),
            Change::Remove => Err(Invalid::new("url", "null", "a URL")),
            Change::Set(url) => {
                Target::parse(&url, https_only)?.url().clone_into(&mut self.document.url);
                Ok(())
            }
        }
    }

    /// `name`; by default the URL's host.
    pub(super) fn set_name(&mut self, name: Change<String>) -> Result<(), Invalid> {
        match name {
            Change::Keep => {}
            Change::Set(name) => {
                check_name(&name)?;
                self.document.name = name;
            }
            Change::Remove => {
                self.document.name = match Target::parse(&self.document.url, false)?.host() {
                    Host::Name(name) => name.clone(),
                    Host::Address(address) => address.to_string(),
                };
            }
        }
        Ok(())
    }

    /// `event_types`; by default all.
    pub(super) fn set_event_types(&mut self, event_types: Change<Vec<String>>) -> Result<(), Invalid> {
        match event_types {
            Change::Keep => {}
            Change::Remove => self.document.event_types = everything(),
            Change::Set(patterns) => {
                Patterns::parse(&patterns).map_err(|fault| fault.under("event_types"))?;
                self.document.event_types = patterns;
            }
        }
        Ok(())
    }

    /// `custom_headers`.
    pub(super) fn set_headers(&mut self, headers: Change<HeaderPairs>) -> Result<(), Invalid> {
        match headers {
            Change::Keep => {}
            Change::Remove => self.document.custom_headers.clear(),
            Change::Set(HeaderPairs(pairs)) => {
                let checked = CustomHeaders::parse(pairs)?;
                let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
                self.document.custom_headers = checked.iter().map(owned).collect();
            }
        }
        Ok(())
    }

    /// `auth_config`.
    pub(super) fn set_auth(&mut self, auth: Change<AuthConfig>) -> Result<(), Invalid> {
        match auth {
            Change::Keep => {}
            Change::Remove => (self.document.auth, self.secrets.auth) = (None, None),
            Change::Set(auth) => {
                self.document.auth = Some(check_auth(&auth)?);
                self.secrets.auth = Some(auth);
            }
        }
        Ok(())
    }

    /// `signing_secret`: replaces the one before at once.
    pub(super) fn set_signing_secret(&mut self, secret: Change<String>) -> Result<(), Invalid> {
        match secret {
            Change::Keep => Ok(()),
            Change::Remove => {
                Err(Invalid::new("signing_secret", "null", "a secret: every request is signed"))
            }
            Change::Set(text) => {
                self.secrets.replace(&Secret::parse(&text)?);
                Ok(())
            }
        }
    }
}
