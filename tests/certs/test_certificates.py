"""The authority, the serving certificate, and which bundles are refused."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given, settings
from hypothesis import strategies as st

from certs.authority import new_bundle
from certs.bundle import Bundle, CertificateError, expires, verify
from webhook.settings import service_names

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
NAMES = (*service_names("fluence-webhook", "fluence-system"), "127.0.0.1")
BUNDLE = new_bundle(NAMES, NOW)
OTHER = new_bundle(NAMES, NOW)


def leaf(bundle: Bundle) -> x509.Certificate:
    return x509.load_pem_x509_certificate(bundle.cert)


def authority(bundle: Bundle) -> x509.Certificate:
    return x509.load_pem_x509_certificate(bundle.ca)


label = st.from_regex(r"[a-z]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True)
hosts = st.one_of(st.lists(label, min_size=1, max_size=4).map(".".join), st.ip_addresses().map(str))
lifetimes = st.timedeltas(dt.timedelta(minutes=10), dt.timedelta(days=4000))


@settings(deadline=None, max_examples=30)
@given(
    st.lists(hosts, min_size=1, max_size=5),
    st.timedeltas(dt.timedelta(days=-3000), dt.timedelta(days=3000)),
    lifetimes,
)
def test_a_new_bundle_is_accepted_for_all_its_names(
    names: list[str], age: dt.timedelta, lifetime: dt.timedelta
) -> None:
    """Cases C125 and C129."""
    now = NOW - age
    bundle = new_bundle(names, now, lifetime=lifetime)
    for clock in (now, now - dt.timedelta(hours=23), now + lifetime - dt.timedelta(seconds=2)):
        if clock < authority(bundle).not_valid_after_utc:
            verify(bundle, names, clock)
    assert leaf(bundle).not_valid_after_utc <= authority(bundle).not_valid_after_utc
    with pytest.raises(CertificateError, match="not valid for"):
        verify(bundle, [*names, "somewhere.else.example"], now)


def test_the_certificate_names_every_name_of_the_service() -> None:
    """Case C125, rule W27."""
    names = leaf(BUNDLE).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [
        "fluence-webhook.fluence-system.svc",
        "fluence-webhook",
        "fluence-webhook.fluence-system",
        "fluence-webhook.fluence-system.svc.cluster.local",
    ]
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_the_authority_may_sign_and_the_certificate_may_only_serve() -> None:
    """Case C125."""
    signer = authority(BUNDLE).extensions
    assert signer.get_extension_for_class(x509.BasicConstraints).value.ca
    assert signer.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    served = leaf(BUNDLE).extensions
    assert not served.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not served.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert list(served.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.SERVER_AUTH
    ]
    key = load_pem_private_key(BUNDLE.key, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert isinstance(key.curve, ec.SECP256R1)


def test_both_are_valid_for_a_clock_that_is_a_day_behind() -> None:
    """Case C129."""
    for certificate in (leaf(BUNDLE), authority(BUNDLE)):
        assert dt.timedelta(hours=24) == NOW - certificate.not_valid_before_utc
    assert expires(BUNDLE) == leaf(BUNDLE).not_valid_after_utc


def test_a_long_name_does_not_break_the_subject() -> None:
    name = ".".join(["a" * 60] * 4)
    verify(new_bundle([name], NOW), [name], NOW)


def test_the_private_key_is_not_shown() -> None:
    assert "PRIVATE" not in repr(BUNDLE)


@pytest.mark.parametrize(
    ("bundle", "says"),
    [
        pytest.param(
            dataclasses.replace(BUNDLE, key=OTHER.key), "key of another certificate", id="foreign-key"
        ),
        pytest.param(dataclasses.replace(BUNDLE, ca=OTHER.ca), "not signed by", id="foreign-authority"),
        pytest.param(Bundle(BUNDLE.ca, cert=BUNDLE.key, key=BUNDLE.cert), "private key where", id="swapped"),
        pytest.param(Bundle(b"", BUNDLE.cert, b""), "missing or empty", id="only-tls.crt"),
        pytest.param(dataclasses.replace(BUNDLE, key=b""), "tls.key is missing", id="no-key"),
        pytest.param(dataclasses.replace(BUNDLE, key=b"x"), "tls.key holds no", id="nonsense-key"),
        pytest.param(
            dataclasses.replace(BUNDLE, cert=b"x"), "tls.crt holds no certificate", id="nonsense-cert"
        ),
        pytest.param(dataclasses.replace(BUNDLE, ca=BUNDLE.cert), "no authority", id="leaf-as-authority"),
        pytest.param(
            dataclasses.replace(BUNDLE, cert=BUNDLE.ca, key=BUNDLE.key), "another", id="authority-as-leaf"
        ),
    ],
)
def test_a_wrong_bundle_is_refused_with_the_reason(bundle: Bundle, says: str) -> None:
    """Case C131."""
    with pytest.raises(CertificateError, match=says):
        verify(bundle, NAMES, NOW)


def test_a_certificate_of_another_namespace_is_refused() -> None:
    """Case C131."""
    with pytest.raises(CertificateError, match=r"not valid for fluence-webhook\.elsewhere\.svc"):
        verify(BUNDLE, service_names("fluence-webhook", "elsewhere"), NOW)


@pytest.mark.parametrize(
    ("clock", "says"),
    [(NOW - dt.timedelta(days=2), "not valid before"), (NOW + dt.timedelta(days=366), "ended at")],
)
def test_an_expired_or_not_yet_valid_certificate_is_refused(clock: dt.datetime, says: str) -> None:
    with pytest.raises(CertificateError, match=says):
        verify(BUNDLE, NAMES, clock)


async def test_a_real_client_accepts_the_served_chain(tmp_path: Path) -> None:
    """Cases C125 and C129: a TLS handshake by address and by name, checked against the authority alone."""
    bundle = new_bundle(NAMES, dt.datetime.now(dt.UTC))
    (tmp_path / "crt").write_bytes(bundle.cert)
    (tmp_path / "key").write_bytes(bundle.key)
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(tmp_path / "crt", tmp_path / "key")

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=serving)
    port = server.sockets[0].getsockname()[1]
    trusting = ssl.create_default_context(cadata=bundle.ca.decode())
    trusting.verify_flags |= ssl.VERIFY_X509_STRICT
    async with server:
        for name in ("127.0.0.1", "fluence-webhook.fluence-system.svc"):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=trusting, server_hostname=name
            )
            assert await reader.read() == b"hello"
            writer.close()
            await writer.wait_closed()
