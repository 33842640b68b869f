//! Secrets at rest: XChaCha20-Poly1305 under one key of the installation.
//!
//! A sealed secret begins with the fingerprint of its key, so that another key is told apart from a damaged row; and it is
//! bound to its owner, so that a row copied to another destination does not open.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};
use tidegate_core::id::{AccountId, DestinationId};
use zeroize::Zeroizing;

/// The form of what is sealed, for the day on which another is needed.
const FORMAT: u8 = 1;
const FINGERPRINT: usize = 8;
const NONCE: usize = 24;

/// Seals and opens secrets.
pub(crate) struct Secrets {
    cipher: XChaCha20Poly1305,
    fingerprint: [u8; FINGERPRINT],
}

/// Why a secret, or the key for all of them, cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretsError {
    /// The key is not 32 bytes in base64.
    #[error("{0} does not hold a key: it must be 32 bytes, base64 (make one with `openssl rand -base64 32`)")]
    Malformed(String),
    /// The key file cannot be read or made.
    #[error("the key file {path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// There is no key file, and nothing allows to make one.
    #[error(
        "the key file {0} is not there, and secrets in the store are sealed with it: put it back (from a backup), or name where it is (--secret-key-file, or TIDEGATE_SECRET_KEY); without it none of them can be read"
    )]
    Missing(PathBuf),
    /// Others may read the key file.
    #[error("the key file {0} can be read by others: chmod 600 {0}")]
    Exposed(PathBuf),
    /// What is in the store was sealed with another key.
    #[error(
        "the secrets in the store are under key {stored}, this one is {given}: start with the key they were sealed with (TIDEGATE_SECRET_KEY or --secret-key-file)"
    )]
    OtherKey {
        /// The fingerprint in the store.
        stored: String,
        /// Ours.
        given: String,
    },
    /// It was changed, cut off, or belongs to another destination.
    #[error(
        "a stored secret is damaged or belongs to another destination: restore it from a backup, or set it anew"
    )]
    Damaged,
    /// No random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
}

impl Secrets {
    /// From 32 bytes in base64; `source` says where they stood, for the error.
    pub(crate) fn from_text(text: &str, source: &str) -> Result<Self, SecretsError> {
        let malformed = || SecretsError::Malformed(source.to_owned());
        let bytes = Zeroizing::new(STANDARD.decode(text.trim()).map_err(|_| malformed())?);
        let bytes: Zeroizing<[u8; 32]> =
            Zeroizing::new(bytes.as_slice().try_into().map_err(|_| malformed())?);
        Ok(Self::new(&bytes))
    }

    /// From a file, which only its owner may read; made where there is none and `make` allows it.
    pub(crate) fn from_file(path: &Path, make: bool) -> Result<Self, SecretsError> {
        let failed = |error| SecretsError::File { path: path.to_owned(), error };
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
                if mode & 0o077 != 0 {
                    return Err(SecretsError::Exposed(path.to_owned()));
                }
                Self::from_text(&Zeroizing::new(text), &path.display().to_string())
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                if make {
                    Self::make_file(path)
                } else {
                    Err(SecretsError::Missing(path.to_owned()))
                }
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn make_file(path: &Path) -> Result<Self, SecretsError> {
        let failed = |error| SecretsError::File { path: path.to_owned(), error };
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(bytes.as_mut()).map_err(|error| SecretsError::Random(error.to_string()))?;
        let text = Zeroizing::new(format!("{}\n", STANDARD.encode(bytes.as_ref())));
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        // The name must be as durable as what will be sealed under it.
        if let Some(directory) = path.parent() {
            File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)?;
        }
        Ok(Self::new(&bytes))
    }

    fn new(key: &[u8; 32]) -> Self {
        let hash = Sha256::new().chain_update("tidegate secret key").chain_update(key).finalize();
        let fingerprint = std::array::from_fn(|place| hash[place]);
        Self { cipher: XChaCha20Poly1305::new(&Key::from(*key)), fingerprint }
    }

    /// What the key is known by; says nothing about it.
    pub(crate) fn fingerprint(&self) -> String {
        hex(&self.fingerprint)
    }

    /// Seals `plain` for this destination.
    pub(crate) fn seal(
        &self,
        account: AccountId,
        destination: DestinationId,
        plain: &[u8],
    ) -> Result<Vec<u8>, SecretsError> {
        self.seal_for(&owner(account, destination), plain)
    }

    /// Seals `plain` for a purpose: it opens for no other.
    pub(crate) fn seal_for(&self, bound: &str, plain: &[u8]) -> Result<Vec<u8>, SecretsError> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|error| SecretsError::Random(error.to_string()))?;
        let payload = Payload { msg: plain, aad: bound.as_bytes() };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| SecretsError::Damaged)?;
        Ok([&[FORMAT][..], &self.fingerprint, &nonce, &sealed].concat())
    }

    /// Whether something sealed, if there is anything, is under this key.
    pub(crate) fn check(&self, sealed: &[u8]) -> Result<(), SecretsError> {
        match sealed.get(1..=FINGERPRINT) {
            Some(stored) if stored != self.fingerprint => {
                Err(SecretsError::OtherKey { stored: hex(stored), given: self.fingerprint() })
            }
            _ => Ok(()),
        }
    }

    /// The fingerprint of the key under which something is sealed.
    pub(crate) fn fingerprint_of(sealed: &[u8]) -> Option<String> {
        sealed.get(1..=FINGERPRINT).filter(|_| sealed[0] == FORMAT).map(hex)
    }

    /// Opens what [`seal`](Self::seal) made for the same destination.
    pub(crate) fn open(
        &self,
        account: AccountId,
        destination: DestinationId,
        sealed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, SecretsError> {
        self.open_for(&owner(account, destination), sealed)
    }

    /// Opens what [`seal_for`](Self::seal_for) made for the same purpose.
    pub(crate) fn open_for(&self, bound: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, SecretsError> {
        let (format, rest) = sealed.split_first().ok_or(SecretsError::Damaged)?;
        let (fingerprint, rest) = rest.split_at_checked(FINGERPRINT).ok_or(SecretsError::Damaged)?;
        let (nonce, message) = rest.split_first_chunk::<NONCE>().ok_or(SecretsError::Damaged)?;
        if *format != FORMAT {
            return Err(SecretsError::Damaged);
        }
        if fingerprint != self.fingerprint {
            return Err(SecretsError::OtherKey { stored: hex(fingerprint), given: self.fingerprint() });
        }
        let payload = Payload { msg: message, aad: bound.as_bytes() };
        let plain = self.cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| SecretsError::Damaged)?;
        Ok(Zeroizing::new(plain))
    }
}

fn owner(account: AccountId, destination: DestinationId) -> String {
    format!("{account}|{destination}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: AccountId = AccountId::from_bits(1);
    const DESTINATION: DestinationId = DestinationId::from_bits(2);

    #[test]
    fn a_secret_opens_for_its_destination_only() {
        let secrets = Secrets::new(&[7; 32]);
        let sealed = secrets.seal(ACCOUNT, DESTINATION, b"whsec_x").unwrap();
        assert_eq!(secrets.open(ACCOUNT, DESTINATION, &sealed).unwrap().as_slice(), b"whsec_x");
        let other = DestinationId::from_bits(3);
        assert!(matches!(secrets.open(ACCOUNT, other, &sealed), Err(SecretsError::Damaged)));
        for end in 0..sealed.len() {
            assert!(secrets.open(ACCOUNT, DESTINATION, &sealed[..end]).is_err());
        }
        assert!(!sealed.windows(7).any(|part| part == b"whsec_x"));
        assert_ne!(sealed, secrets.seal(ACCOUNT, DESTINATION, b"whsec_x").unwrap());
        assert_eq!(Secrets::fingerprint_of(&sealed), Some(secrets.fingerprint()));
        assert_eq!(Secrets::fingerprint_of(&sealed[..5]), None);
    }

    #[test]
    fn another_key_is_told_apart_from_damage() {
        let sealed = Secrets::new(&[7; 32]).seal(ACCOUNT, DESTINATION, b"x").unwrap();
        let opened = Secrets::new(&[8; 32]).open(ACCOUNT, DESTINATION, &sealed);
        assert!(matches!(opened, Err(SecretsError::OtherKey { .. })));
    }

    #[test]
    fn a_key_file_is_made_once_and_for_its_owner_only() {
        let path = std::env::temp_dir().join(format!("tidegate-key-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        assert!(Secrets::from_file(&path, false).is_err());
        let made = Secrets::from_file(&path, true).unwrap().fingerprint();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Secrets::from_file(&path, true).unwrap().fingerprint(), made);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Secrets::from_file(&path, true), Err(SecretsError::Exposed(_))));
        std::fs::remove_file(&path).unwrap();
        assert!(Secrets::from_text("short", "x").is_err());
    }
}
