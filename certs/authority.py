"""Make an authority and a serving certificate signed by it: EC P-256 (cases C125 and C129).

The authority's private key is not returned, so nothing can be signed with it later: a stolen Secret contains
the key of one server only.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.bundle import Bundle

AUTHORITY_NAME: Final = "Fluence webhook authority"
#: Clocks differ (case C129): a new certificate must be valid for a server whose clock is behind.
BACKDATED: Final = dt.timedelta(hours=24)
AUTHORITY_LIFETIME: Final = dt.timedelta(days=3650)
LIFETIME: Final = dt.timedelta(days=365)
_COMMON_NAME_LENGTH: Final = 64  # the limit of X.520


def new_bundle(
    names: Sequence[str],
    now: dt.datetime,
    *,
    lifetime: dt.timedelta = LIFETIME,
    authority_lifetime: dt.timedelta = AUTHORITY_LIFETIME,
) -> Bundle:
    """A new authority and a serving certificate for `names` (DNS names and IP addresses)."""
    if not names:
        raise ValueError("a serving certificate needs at least one name")
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _authority(authority_key, now, authority_lifetime)
    key = ec.generate_private_key(ec.SECP256R1())
    leaf = _leaf(key, names, authority, authority_key, now, lifetime)
    return Bundle(
        ca=authority.public_bytes(Encoding.PEM),
        cert=leaf.public_bytes(Encoding.PEM),
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def _authority(key: ec.EllipticCurvePrivateKey, now: dt.datetime, lifetime: dt.timedelta) -> x509.Certificate:
    name = _name(AUTHORITY_NAME)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        _builder(name, name, key.public_key(), now, now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )


def _leaf(
    key: ec.EllipticCurvePrivateKey,
    names: Sequence[str],
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    now: dt.datetime,
    lifetime: dt.timedelta,
) -> x509.Certificate:
    end = min(now + lifetime, authority.not_valid_after_utc)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    subject = _name(names[0][:_COMMON_NAME_LENGTH])
    return (
        _builder(subject, authority.subject, key.public_key(), now, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_subject(n) for n in names]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: dt.datetime,
    end: dt.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(end)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _subject(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(
    *, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )
