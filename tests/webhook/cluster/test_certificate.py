"""The certificate that the webhook made for itself, as the API server sees it (case C125)."""

from __future__ import annotations

import base64
import ssl
from typing import Any

import aiohttp

from certs.bundle import verify
from devcluster.chart import NAMESPACE
from tests.support.world import World
from webhook.tls import read_secret, utc_now

CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/fluence"


async def test_the_published_authority_verifies_the_served_certificate(world: World) -> None:
    """Case C125: every entry of the registration trusts what is served at its address."""
    configuration: dict[str, Any] = await world.api.get(CONFIGURATION)
    assert [hook["name"].partition(".")[0] for hook in configuration["webhooks"]] == ["pods", "workloads"]
    for hook in configuration["webhooks"]:
        authority = base64.b64decode(hook["clientConfig"]["caBundle"]).decode()
        context = ssl.create_default_context(cadata=authority)
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as client,
            client.post(
                hook["clientConfig"]["url"], data=b"", headers={"Content-Type": "application/json"}
            ) as answer,
        ):
            assert answer.status == 400


async def test_the_secret_holds_the_pair_and_its_authority(world: World) -> None:
    """Case C131: type and keys are those that other tools expect."""
    secret = await world.api.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/fluence-webhook-tls")
    assert secret["type"] == "kubernetes.io/tls"
    assert set(secret["data"]) == {"ca.crt", "tls.crt", "tls.key"}
    verify(read_secret(secret["data"]), ["127.0.0.1"], utc_now())
