"""Get the serving certificate, and tell the API server to trust it: the webhook's only API calls.

Owns: the Secret that all replicas share, the caBundle of our MutatingWebhookConfiguration, and errors about
both. Does not own: cryptography (`certs`), or renewal while the process runs.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import structlog

from certs.authority import new_bundle
from certs.bundle import Bundle, CertificateError, expires, verify
from groups.errors import FluenceError
from kube.backoff import ROLES_DEADLINE_S, Backoff, once_roles_are_read, persist
from kube.errors import Conflict, Forbidden, KubeError, NotFound, is_transient
from kube.session import Kube
from webhook.settings import WebhookSettings

#: A stored certificate that ends sooner is replaced at start, because nothing renews it later.
RENEW_BEFORE: Final = dt.timedelta(days=30)
_SECRET_TYPE: Final = "kubernetes.io/tls"  # noqa: S105  (a type of Secret)
_CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"

T = TypeVar("T")

_log = structlog.get_logger("fluence.webhook")


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    resource_version: str = ""


class _Secret(msgspec.Struct, frozen=True):
    metadata: _Meta
    type: str = ""
    data: dict[str, str] | None = None


class _ClientConfig(msgspec.Struct, frozen=True, rename="camel"):
    ca_bundle: str = ""


class _Webhook(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    client_config: _ClientConfig


class _Configuration(msgspec.Struct, frozen=True):
    metadata: _Meta
    webhooks: list[_Webhook] | None = None


def utc_now() -> dt.datetime:
    """The wall clock."""
    return dt.datetime.now(dt.UTC)


async def obtain(kube: Kube, settings: WebhookSettings, now: Callable[[], dt.datetime] = utc_now) -> Bundle:
    """The bundle in the Secret; if there is none that can be used, a new one is stored first.

    Replicas that start together get the same one: the one that loses the race reads again (case C126).
    """
    what = f'secrets "{settings.tls_secret}" in namespace "{settings.namespace}"'

    async def attempt() -> Bundle:
        return await _obtain_once(kube, settings, now())

    return await _persist(attempt, settings, what, retry_also=(Conflict,))


async def _obtain_once(kube: Kube, settings: WebhookSettings, now: dt.datetime) -> Bundle:
    collection = f"/api/v1/namespaces/{settings.namespace}/secrets"
    one = f"{collection}/{settings.tls_secret}"
    names = settings.subject_names
    try:
        stored = await kube.get_as(one, _Secret)
    except NotFound:
        bundle = new_bundle(names, now)
        await kube.post(collection, _secret_body(settings, bundle))
        _log.info("certificate made", secret=settings.tls_secret, names=names)
        return bundle
    try:
        bundle = read_secret(stored.data or {})
        verify(bundle, names, now)
        _check_life_left(bundle, now)
    except CertificateError as error:
        bundle = new_bundle(names, now)
        body = _secret_body(settings, bundle)
        # If it was changed in between, the answer is 409, and we read it again.
        body["metadata"]["resourceVersion"] = stored.metadata.resource_version
        if stored.type != _SECRET_TYPE:
            # The type of a Secret cannot be changed, so another type is kept.
            body["type"] = stored.type
        await kube.put(one, body)
        _log.warning("certificate replaced", secret=settings.tls_secret, reason=str(error))
    return bundle


def _check_life_left(bundle: Bundle, now: dt.datetime) -> None:
    end = expires(bundle)
    if end - now < RENEW_BEFORE:
        raise CertificateError(f"the certificate ends soon, at {end:%Y-%m-%dT%H:%M:%SZ}")


def read_secret(data: Mapping[str, str]) -> Bundle:
    """The bundle in the data of a Secret; CertificateError where it is not base64."""
    parts = {}
    for key in ("ca.crt", "tls.crt", "tls.key"):
        try:
            parts[key] = base64.b64decode(data.get(key, ""), validate=True)
        except (binascii.Error, ValueError) as error:
            raise CertificateError(f"{key} is not base64") from error
    return Bundle(ca=parts["ca.crt"], cert=parts["tls.crt"], key=parts["tls.key"])


def _secret_body(settings: WebhookSettings, bundle: Bundle) -> dict[str, Any]:
    parts = {"ca.crt": bundle.ca, "tls.crt": bundle.cert, "tls.key": bundle.key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": settings.tls_secret,
            "namespace": settings.namespace,
            "labels": {"app.kubernetes.io/part-of": "fluence"},
        },
        "type": _SECRET_TYPE,
        "data": {key: base64.b64encode(value).decode() for key, value in parts.items()},
    }


async def publish(kube: Kube, settings: WebhookSettings, authority: bytes) -> None:
    """Put `authority` into every clientConfig of our MutatingWebhookConfiguration."""
    path = f"{_CONFIGURATIONS}/{settings.webhook_configuration}"
    bundle = base64.b64encode(authority).decode()
    what = f'mutatingwebhookconfigurations "{settings.webhook_configuration}"'

    async def attempt() -> None:
        found = await kube.get_as(path, _Configuration)
        stale = [one for one in found.webhooks or () if one.client_config.ca_bundle != bundle]
        if not stale:
            return
        # Merged by name: other fields, and changes made in between, are kept.
        entries = [{"name": one.name, "clientConfig": {"caBundle": bundle}} for one in stale]
        await kube.patch(path, {"webhooks": entries}, "strategic")
        _log.info("caBundle published", configuration=found.metadata.name, webhooks=len(stale))

    # Helm creates the configuration some seconds after our Deployment.
    await _persist(attempt, settings, what, retry_also=(Conflict, NotFound))


async def _persist(
    attempt: Callable[[], Awaitable[T]],
    settings: WebhookSettings,
    what: str,
    retry_also: tuple[type[KubeError], ...],
) -> T:
    """Try until the deadline; then raise an error that says what is missing and what to do."""
    patience_s = min(ROLES_DEADLINE_S, settings.startup_deadline_s)

    def say_that_it_waits(error: KubeError, delay_s: float) -> None:
        _log.warning("waiting", needed=what, error=str(error), retry_in_seconds=round(delay_s, 2))

    try:
        return await persist(
            lambda: once_roles_are_read(attempt, deadline_s=patience_s),
            deadline_s=settings.startup_deadline_s,
            backoff=Backoff(most_s=5.0),
            worth_retrying=lambda error: is_transient(error) or isinstance(error, retry_also),
            on_retry=say_that_it_waits,
        )
    except Forbidden as error:
        raise FluenceError(
            f"the webhook lacks a right on {what}: {error}; give its service account the role of the "
            "chart, or use --cert-dir"
        ) from error
    except NotFound as error:
        raise FluenceError(
            f"{what} cannot be found or made: {error}; install the chart, or name another namespace or object"
        ) from error
    except KubeError as error:
        raise FluenceError(f"{what} could not be read or written: {error}") from error


def server_context(bundle: Bundle) -> ssl.SSLContext:
    """A TLS context that serves `bundle`."""
    # Python's ssl module reads certificates from files only.
    with tempfile.TemporaryDirectory(prefix="fluence-tls-") as name:
        folder = Path(name)
        cert, key = folder / "tls.crt", folder / "tls.key"
        cert.write_bytes(bundle.cert)
        key.touch(mode=0o600)
        key.write_bytes(bundle.key)
        return file_context(folder)


def file_context(folder: Path) -> ssl.SSLContext:
    """A TLS context that serves `tls.crt` and `tls.key` of a folder; FluenceError if it cannot."""
    cert, key = folder / "tls.crt", folder / "tls.key"
    for path in (cert, key):
        try:
            path.open("rb").close()
        except OSError as error:
            raise FluenceError(
                f"{path} cannot be read ({error.strerror}): put a certificate there, or leave out --cert-dir"
            ) from error
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or str(error)
        raise FluenceError(
            f"{cert} and {key} are no certificate and its unencrypted key in PEM ({reason})"
        ) from error
    return context


def _no_password() -> str:
    # Without this OpenSSL asks for a password on the terminal and waits for ever.
    return ""
