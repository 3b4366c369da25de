"""A serving certificate with its key and authority, as PEM, and the check that it can be used.

Owns: which bundles can be used (case C131). Does not own: making one (`certs.authority`) or storing it.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from groups.errors import FluenceError


class CertificateError(FluenceError):
    """A certificate bundle cannot be used; the text says why."""


@dataclass(frozen=True)
class Bundle:
    """PEM texts: the authority's certificate, and the serving certificate with its private key."""

    ca: bytes
    cert: bytes
    key: bytes = field(repr=False)


def verify(bundle: Bundle, names: Sequence[str], now: dt.datetime) -> None:
    """Raise CertificateError unless a client that trusts `bundle.ca` would accept the server now.

    `names` are the DNS names and IP addresses at which clients call it.
    """
    authority = _certificate(bundle.ca, "ca.crt")
    leaf = _certificate(bundle.cert, "tls.crt")
    _check_key(bundle.key, leaf)
    _check_authority(authority)
    _check_chain(leaf, authority)
    _check_purpose(leaf)
    _check_names(leaf, names)
    for what, certificate in (("authority", authority), ("certificate", leaf)):
        _check_time(what, certificate, now)


def expires(bundle: Bundle) -> dt.datetime:
    """When the serving certificate ends."""
    return _certificate(bundle.cert, "tls.crt").not_valid_after_utc


def _certificate(pem: bytes, where: str) -> x509.Certificate:
    if not pem.strip():
        raise CertificateError(f"{where} is missing or empty")
    if b"PRIVATE KEY-----" in pem:
        raise CertificateError(f"{where} holds a private key where a certificate belongs")
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise CertificateError(f"{where} holds no certificate in PEM: {error}") from error


def _check_key(pem: bytes, leaf: x509.Certificate) -> None:
    if not pem.strip():
        raise CertificateError("tls.key is missing or empty")
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError("tls.key holds no unencrypted private key in PEM") from error
    ours, theirs = (
        one.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        for one in (key.public_key(), leaf.public_key())
    )
    if ours != theirs:
        raise CertificateError("tls.key is the key of another certificate than tls.crt")


def _check_authority(authority: x509.Certificate) -> None:
    try:
        constraints = authority.extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = authority.extensions.get_extension_for_class(x509.KeyUsage).value
    except (x509.ExtensionNotFound, ValueError) as error:
        raise CertificateError("ca.crt is no authority: it lacks its constraints or key usage") from error
    if not constraints.ca or not usage.key_cert_sign:
        raise CertificateError("ca.crt is no authority: it may not sign certificates")


def _check_chain(leaf: x509.Certificate, authority: x509.Certificate) -> None:
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature) as error:
        raise CertificateError("tls.crt was not signed by ca.crt") from error


def _check_purpose(leaf: x509.Certificate) -> None:
    try:
        uses = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except (x509.ExtensionNotFound, ValueError) as error:
        raise CertificateError("tls.crt is not meant for a server") from error
    if ExtendedKeyUsageOID.SERVER_AUTH not in uses:
        raise CertificateError("tls.crt is not meant for a server")


def _check_names(leaf: x509.Certificate, names: Sequence[str]) -> None:
    try:
        valid_for = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError) as error:
        raise CertificateError("tls.crt names no hosts (subjectAltName)") from error
    known = {str(address) for address in valid_for.get_values_for_type(x509.IPAddress)}
    known.update(valid_for.get_values_for_type(x509.DNSName))
    for name in names:
        if _normal(name) not in known:
            raise CertificateError(f"tls.crt is not valid for {name}")


def _normal(name: str) -> str:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name


def _check_time(what: str, certificate: x509.Certificate, now: dt.datetime) -> None:
    if now < certificate.not_valid_before_utc:
        raise CertificateError(
            f"the {what} is not valid before {certificate.not_valid_before_utc:%Y-%m-%dT%H:%M:%SZ}"
        )
    if now >= certificate.not_valid_after_utc:
        raise CertificateError(f"the {what} ended at {certificate.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}")
