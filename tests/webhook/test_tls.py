"""The webhook's only API calls, for its Secret and its caBundle: faults, by script."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from certs.authority import new_bundle
from certs.bundle import Bundle, CertificateError, verify
from groups.errors import FluenceError
from kube.session import Kube
from tests.support.fake_api import FakeApi, fake_api
from webhook import tls
from webhook.settings import WebhookSettings

SETTINGS = WebhookSettings(hosts=("127.0.0.1",), startup_deadline_s=5.0)
NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
SECRETS = "/api/v1/namespaces/fluence-system/secrets"
SECRET = f"{SECRETS}/fluence-webhook-tls"
CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/fluence"
Script = tuple[FakeApi, Kube]


@pytest.fixture
async def scripted() -> AsyncIterator[Script]:
    async with fake_api() as both:
        yield both


def now() -> dt.datetime:
    return NOW


def status(code: int, message: str = "scripted") -> web.Response:
    return web.json_response({"code": code, "message": message}, status=code)


def secret(bundle: Bundle, version: str = "7", **more: Any) -> dict[str, Any]:
    parts = {"ca.crt": bundle.ca, "tls.crt": bundle.cert, "tls.key": bundle.key}
    return {
        "metadata": {"name": "fluence-webhook-tls", "resourceVersion": version},
        "type": "kubernetes.io/tls",
        "data": {key: base64.b64encode(value).decode() for key, value in parts.items()},
        **more,
    }


def sent(api: FakeApi, what: str) -> list[Any]:
    """The bodies of the requests of one kind."""
    return [json.loads(body) for name, _, _, body in api.requests if name == what]


def in_turn(*answers: Any) -> Callable[[web.Request], Any]:
    """Each answer once, the last one for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


async def test_a_missing_secret_is_made_once(scripted: Script) -> None:
    """Case C125."""
    api, kube = scripted
    api.script("GET", SECRET, lambda _: status(404))
    api.script("POST", SECRETS, lambda _: {})
    bundle = await tls.obtain(kube, SETTINGS, now)
    verify(bundle, ["127.0.0.1"], NOW)
    (body,) = sent(api, f"POST {SECRETS}")
    assert body["type"] == "kubernetes.io/tls"
    assert tls.read_secret(body["data"]) == bundle
    assert len(api.requests) == 2


async def test_a_good_secret_is_taken_as_it_is(scripted: Script) -> None:
    api, kube = scripted
    stored = new_bundle(["127.0.0.1"], NOW)
    api.script("GET", SECRET, lambda _: secret(stored))
    assert await tls.obtain(kube, SETTINGS, now) == stored
    assert len(api.requests) == 1


async def test_whoever_loses_the_race_serves_the_winners_certificate(scripted: Script) -> None:
    """Case C126: replicas that start together end with one authority."""
    api, kube = scripted
    winner = new_bundle(["127.0.0.1"], NOW)
    api.script("GET", SECRET, in_turn(status(404), secret(winner)))
    api.script("POST", SECRETS, lambda _: status(409, "it exists"))
    assert await tls.obtain(kube, SETTINGS, now) == winner


GOOD = new_bundle(["127.0.0.1"], NOW)


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(secret(dataclasses.replace(GOOD, key=new_bundle(["x"], NOW).key)), id="key-of-another"),
        pytest.param(secret(Bundle(GOOD.ca, GOOD.key, GOOD.cert)), id="swapped"),
        pytest.param(secret(Bundle(b"", GOOD.cert, b"")), id="only-tls.crt"),
        pytest.param(secret(new_bundle(["old.svc"], NOW)), id="other-names"),
        pytest.param(secret(new_bundle(["127.0.0.1"], NOW - dt.timedelta(days=340))), id="ends-soon"),
        pytest.param(secret(new_bundle(["127.0.0.1"], NOW - dt.timedelta(days=400))), id="ended"),
        pytest.param(secret(GOOD, data=None), id="no-data"),
        pytest.param(secret(GOOD, data={"tls.crt": "***"}), id="no-base64"),
    ],
)
async def test_a_bad_secret_is_replaced_and_only_the_one_that_was_seen(
    scripted: Script, stored: dict[str, Any]
) -> None:
    """Case C131: its version is a precondition, so that nobody's newer one is lost."""
    api, kube = scripted
    api.script("GET", SECRET, lambda _: stored)
    api.script("PUT", SECRET, lambda _: {})
    bundle = await tls.obtain(kube, SETTINGS, now)
    verify(bundle, ["127.0.0.1"], NOW)
    (body,) = sent(api, f"PUT {SECRET}")
    assert body["metadata"]["resourceVersion"] == "7"
    assert tls.read_secret(body["data"]) == bundle


async def test_a_secret_of_another_type_keeps_its_type(scripted: Script) -> None:
    """The API server refuses to change it."""
    api, kube = scripted
    api.script("GET", SECRET, lambda _: secret(GOOD, type="Opaque", data={}))
    api.script("PUT", SECRET, lambda _: {})
    await tls.obtain(kube, SETTINGS, now)
    assert sent(api, f"PUT {SECRET}")[0]["type"] == "Opaque"


async def test_a_server_that_is_busy_is_asked_again(scripted: Script) -> None:
    api, kube = scripted
    stored = new_bundle(["127.0.0.1"], NOW)
    api.script("GET", SECRET, in_turn(status(503), status(500), secret(stored)))
    assert await tls.obtain(kube, SETTINGS, now) == stored


async def test_a_missing_right_ends_the_start_with_verb_resource_and_remedy(scripted: Script) -> None:
    """Bad input of the issue: one sentence that names the thing and what to do."""
    api, kube = scripted
    said = 'secrets "fluence-webhook-tls" is forbidden: User "u" cannot get resource "secrets"'
    api.script("GET", SECRET, lambda _: status(403, said))
    with pytest.raises(FluenceError) as error:
        await tls.obtain(kube, dataclasses.replace(SETTINGS, startup_deadline_s=0.2), now)
    for part in ("get", "secrets", "fluence-webhook-tls", "fluence-system", "role", "--cert-dir"):
        assert part in str(error.value)


async def test_an_api_server_that_has_not_read_its_roles_yet_is_no_missing_right(scripted: Script) -> None:
    """Case C77: it refuses everybody for a moment after its start."""
    api, kube = scripted
    stored = new_bundle(["127.0.0.1"], NOW)
    api.script("GET", SECRET, in_turn(status(403), status(403), secret(stored)))
    assert await tls.obtain(kube, SETTINGS, now) == stored


def configuration(*bundles: str) -> dict[str, Any]:
    hooks = [
        {"name": f"w{n}", "clientConfig": {"url": "https://x", **({"caBundle": one} if one else {})}}
        for n, one in enumerate(bundles)
    ]
    return {"metadata": {"name": "fluence"}, "webhooks": hooks}


async def test_the_authority_is_published_only_where_it_is_missing(scripted: Script) -> None:
    api, kube = scripted
    ours = base64.b64encode(b"PEM").decode()
    api.script("GET", CONFIGURATION, lambda _: configuration("", ours, "b2xk"))
    api.script("PATCH", CONFIGURATION, lambda _: {})
    await tls.publish(kube, SETTINGS, b"PEM")
    (body,) = sent(api, f"PATCH {CONFIGURATION}")
    assert body == {"webhooks": [{"name": name, "clientConfig": {"caBundle": ours}} for name in ("w0", "w2")]}


async def test_nothing_is_written_where_the_authority_is_there(scripted: Script) -> None:
    api, kube = scripted
    api.script("GET", CONFIGURATION, lambda _: configuration(base64.b64encode(b"PEM").decode()))
    await tls.publish(kube, SETTINGS, b"PEM")
    assert len(api.requests) == 1


async def test_a_registration_that_comes_late_is_waited_for(scripted: Script) -> None:
    """Helm makes it after the Deployment; meanwhile the log says what is waited for."""
    api, kube = scripted
    api.script("GET", CONFIGURATION, in_turn(status(404), configuration("")))
    api.script("PATCH", CONFIGURATION, lambda _: {})
    with capture_logs() as logs:
        await tls.publish(kube, SETTINGS, b"PEM")
    waits = [line["needed"] for line in logs if line["event"] == "waiting"]
    assert waits == [f'mutatingwebhookconfigurations "{SETTINGS.webhook_configuration}"']
    assert api.count(f"PATCH {CONFIGURATION}") == 1


async def test_a_registration_that_never_comes_is_named(scripted: Script) -> None:
    api, kube = scripted
    api.script("GET", CONFIGURATION, lambda _: status(404, "not found"))
    impatient = dataclasses.replace(SETTINGS, startup_deadline_s=0.2)
    with pytest.raises(
        FluenceError, match=r'mutatingwebhookconfigurations "fluence" cannot be found or made: .* chart'
    ):
        await tls.publish(kube, impatient, b"PEM")


def test_a_secret_that_is_no_base64_is_refused() -> None:
    with pytest.raises(CertificateError, match=r"ca\.crt is not base64"):
        tls.read_secret({"ca.crt": "***"})


def test_files_that_are_missing_or_wrong_are_named(tmp_path: Path) -> None:
    """Bad input of the issue."""
    with pytest.raises(FluenceError, match=r"tls\.crt cannot be read \(No such file"):
        tls.file_context(tmp_path)
    (tmp_path / "tls.crt").write_bytes(GOOD.cert)
    (tmp_path / "tls.key").write_bytes(b"nonsense")
    with pytest.raises(FluenceError, match="no certificate and its unencrypted key"):
        tls.file_context(tmp_path)
    (tmp_path / "tls.key").write_bytes(new_bundle(["x"], NOW).key)
    with pytest.raises(FluenceError, match="no certificate and its unencrypted key"):
        tls.file_context(tmp_path)
    (tmp_path / "tls.key").write_bytes(GOOD.key)
    tls.file_context(tmp_path)
