//! The errors of the library as failures.

use alloc::string::ToString;
use mcp_proto::exchange::{TlsFailure, TlsFailureKind};
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// Returns the failure that an error of a session is.
pub(super) fn failure(error: &Error) -> TlsFailure {
    let detail = match error {
        // The kind says already that it is about the certificate.
        Error::InvalidCertificate(why) => why.to_string(),
        other => other.to_string(),
    };
    TlsFailure::new(kind(error), detail)
}

fn kind(error: &Error) -> TlsFailureKind {
    match error {
        Error::InvalidCertificate(error) => of_certificate(error),
        Error::NoCertificatesPresented => TlsFailureKind::BadCertificate,
        Error::PeerIncompatible(_) | Error::NoApplicationProtocol => TlsFailureKind::Incompatible,
        Error::AlertReceived(
            AlertDescription::ProtocolVersion
            | AlertDescription::HandshakeFailure
            | AlertDescription::NoApplicationProtocol
            | AlertDescription::InsufficientSecurity,
        ) => TlsFailureKind::Incompatible,
        Error::AlertReceived(_) => TlsFailureKind::Refused,
        Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion) => {
            TlsFailureKind::NotTls
        }
        _ => TlsFailureKind::Violation,
    }
}

fn of_certificate(error: &CertificateError) -> TlsFailureKind {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFailureKind::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => TlsFailureKind::NotYetValid,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            TlsFailureKind::WrongName
        }
        CertificateError::UnknownIssuer => TlsFailureKind::UnknownIssuer,
        CertificateError::Revoked => TlsFailureKind::Revoked,
        _ => TlsFailureKind::BadCertificate,
    }
}
