"""The process on a real socket: TLS, keep-alive, the wrong start and the orderly end."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from pathlib import Path

import pytest

from groups.errors import FluenceError
from tests.webhook.reviews import pod, review
from tests.webhook.serving import running, trusting, write_certificate
from webhook.app import Readiness
from webhook.server import serve
from webhook.settings import WebhookSettings


@pytest.fixture
def cert_dir(tmp_path: Path) -> Path:
    return write_certificate(tmp_path)


async def test_reviews_are_answered_over_tls_on_one_connection(cert_dir: Path) -> None:
    """Rule W28: an API server keeps its connections."""
    async with running(cert_dir, Readiness()) as (_, port), trusting(cert_dir) as client:
        for _ in range(3):
            async with client.post(
                f"https://127.0.0.1:{port}/mutate", json=review(pod({"name": "p"}))
            ) as answer:
                assert answer.status == 200
                assert (await answer.json())["response"]["allowed"] is True
                assert answer.headers.get("connection", "").lower() != "close"


async def test_readiness_comes_with_the_server_and_goes_with_it(cert_dir: Path) -> None:
    readiness = Readiness()
    async with running(cert_dir, readiness) as (task, port):
        assert readiness.ready
        async with trusting(cert_dir) as client, client.get(f"https://127.0.0.1:{port}/readyz") as answer:
            assert answer.status == 200
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not readiness.ready
    with pytest.raises(OSError, match=r"refused|Connect call failed"):
        await asyncio.open_connection("127.0.0.1", port)


async def test_a_review_under_way_is_answered_before_the_end(cert_dir: Path) -> None:
    """An admission must not get lost when the process is told to stop."""
    async with running(cert_dir, Readiness()) as (task, port):
        context = ssl.create_default_context(cafile=str(cert_dir / "ca.crt"))
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        body = json.dumps(review(pod({"name": "p"}))).encode()
        head = (
            "POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
        )
        writer.write(head.encode())
        # The server asks for the body: the request has reached it and is under way.
        assert (await reader.readline()).startswith(b"HTTP/1.1 100")
        task.cancel()
        await asyncio.sleep(0)
        writer.write(body)
        answer = await asyncio.wait_for(reader.read(), 10)
        assert b"HTTP/1.1 200" in answer
        assert b'"patchType":"JSONPatch"' in answer
        writer.close()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_port_that_is_taken_is_named(cert_dir: Path) -> None:
    """Bad input of the issue."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        settings = WebhookSettings(host="127.0.0.1", port=port, cert_dir=cert_dir)
        with pytest.raises(FluenceError, match=f"port {port} on 127.0.0.1 is taken .* --port"):
            await serve(settings)


async def test_an_address_that_is_none_is_named(cert_dir: Path) -> None:
    with pytest.raises(FluenceError, match='"not an address" is no address'):
        await serve(WebhookSettings(host="not an address", port=0, cert_dir=cert_dir))


async def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(FluenceError, match=r"tls\.crt cannot be read"):
        await serve(WebhookSettings(host="127.0.0.1", port=0, cert_dir=tmp_path))


async def test_a_kubeconfig_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(FluenceError, match=r"kubeconfig .*nowhere does not exist"):
        await serve(WebhookSettings(host="127.0.0.1", port=0, kubeconfig=tmp_path / "nowhere"))
