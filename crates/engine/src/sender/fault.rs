//! Why no response came, in the words of the rules, and as a sentence for the customer.
//!
//! The sentence is coarse on purpose: with more, a destination would be a tool to look around our network.

use std::io;

use rustls::{AlertDescription, CertificateError, Error as TlsError};
use tidegate_core::outcome::{NetworkFault, Outcome};

/// No response.
#[derive(Debug)]
pub(super) enum Fault {
    /// The address may not be dialled.
    Blocked,
    /// The URL is http, where https alone may be sent to.
    Insecure,
    /// It took too long.
    Timeout,
    /// It broke on the way.
    Network(NetworkFault),
    /// TLS failed, for a reason that the customer can mend.
    Tls(&'static str),
}

impl Fault {
    /// What broke an exchange on a new connection: what came is not HTTP or beyond its limits, or nothing came.
    pub(super) fn of_fresh(unusable: bool) -> Self {
        Self::Network(if unusable { NetworkFault::BadResponse } else { NetworkFault::Reset })
    }

    /// The same on a kept connection: there a close is most likely the peer's own time limit.
    pub(super) fn of_reused(unusable: bool) -> Self {
        Self::Network(if unusable { NetworkFault::BadResponse } else { NetworkFault::ReusedConnectionClosed })
    }

    /// What broke the TLS handshake.
    pub(super) fn of_tls(error: &io::Error) -> Self {
        tls_fault(error).map_or(Self::Network(NetworkFault::Tls), Self::Tls)
    }

    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::Blocked | Self::Insecure => Outcome::Blocked,
            Self::Timeout => Outcome::Timeout,
            Self::Network(fault) => Outcome::NetworkError(*fault),
            Self::Tls(_) => Outcome::NetworkError(NetworkFault::Tls),
        }
    }

    pub(super) fn sentence(&self) -> String {
        match self {
            Self::Timeout => "no answer in time".to_owned(),
            Self::Insecure => "the URL is http, and this server sends to https alone".to_owned(),
            Self::Tls(sentence) => format!("TLS failed: {sentence}"),
            _ => self.outcome().to_string(),
        }
    }
}

/// What is wrong with the TLS under a connection, if that is what broke it.
pub(super) fn tls_fault(error: &io::Error) -> Option<&'static str> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()).map(tls_sentence)
}

fn tls_sentence(error: &TlsError) -> &'static str {
    match error {
        TlsError::InvalidCertificate(fault) => match fault {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the certificate has expired"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the certificate is not valid yet"
            }
            CertificateError::UnknownIssuer => "the certificate comes from an unknown authority",
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "the certificate is for another name"
            }
            CertificateError::Revoked => "the certificate was revoked",
            _ => "the certificate does not hold",
        },
        TlsError::PeerIncompatible(_) => "no common version or cipher",
        TlsError::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server demands a certificate of the client"
        }
        TlsError::AlertReceived(
            AlertDescription::ProtocolVersion | AlertDescription::InsufficientSecurity,
        ) => "no common version or cipher",
        TlsError::AlertReceived(_) => "the server refused the handshake",
        _ => "the server does not speak TLS as it should",
    }
}
