"""The server on a real socket with TLS: whatever comes, however slowly, gets an answer that is understood."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.webhook.reviews import SZ, pod, review, workload
from tests.webhook.serving import RawClient, head, running, trust, write_certificate
from webhook.app import Readiness
from webhook.connection import HEAD_DEADLINE_S
from webhook.endpoint import BODY_DEADLINE_S, MAX_BODY_BYTES, body_deadline_s

GOOD = json.dumps(review(pod({"name": "p"}))).encode()
CHART = Path(__file__).parents[2] / "manifests/chart"


@pytest.fixture(scope="module")
def cert_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
async def port(cert_dir: Path) -> AsyncIterator[int]:
    async with running(cert_dir, Readiness()) as (_, port):
        yield port


@pytest.fixture
async def client(port: int, cert_dir: Path) -> AsyncIterator[RawClient]:
    async with RawClient.connect(port, trust(cert_dir)) as client:
        yield client


async def still_serves(port: int, cert_dir: Path) -> bool:
    async with RawClient.connect(port, trust(cert_dir)) as client:
        return (await client.post(GOOD)).response["allowed"] is True


def changed(**request: Any) -> bytes:
    body = review(pod({"name": "p"}))
    body["request"] |= request
    return json.dumps(body).encode()


def nested(depth: int) -> bytes:
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    return changed(object="DEEP").replace(b'"DEEP"', deep)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b"{", "truncated", id="cut"),
        pytest.param(b"null", "object", id="null"),
        pytest.param(GOOD + b" junk", "trailing", id="more-after-the-end"),
        pytest.param(GOOD.replace(b'"p"', b'"\xff"'), "UTF-8", id="no-utf-8"),
        pytest.param(GOOD.decode().encode("utf-16"), "AdmissionReview", id="utf-16"),
        pytest.param(b"[" * 100_000, "AdmissionReview", id="deep-lists"),
        pytest.param(nested(100_000), "too deeply", id="deep-object"),
        pytest.param(
            GOOD.replace(b"admission.k8s.io/v1", b"admission.k8s.io/v1beta1"),
            "admission.k8s.io/v1beta1",
            id="v1beta1",
        ),
        pytest.param(GOOD.replace(b"AdmissionReview", b"ConversionReview"), "ConversionReview", id="kind"),
        pytest.param(changed(uid=""), "request.uid", id="no-uid"),
        pytest.param(changed(object=[1]), "request.object", id="odd-object"),
        pytest.param(changed(kind="Pod"), "request.kind", id="odd-kind"),
    ],
)
async def test_what_is_no_review_is_a_400_that_says_why(client: RawClient, body: bytes, says: str) -> None:
    """Case C35."""
    answer = await client.post(body)
    assert answer.status == 400
    assert says in answer.body.decode()
    assert len(answer.body) < 500


@pytest.mark.parametrize(
    ("body", "allowed"),
    [
        pytest.param(changed(object=None, operation="DELETE"), True, id="no-object"),
        pytest.param(changed(object=None), True, id="null-object-on-create"),
        pytest.param(changed(object={}), True, id="empty-object"),
        pytest.param(changed(kind={"group": "example.com", "version": "v1", "kind": "Any"}), True, id="kind"),
        pytest.param(changed(kind={"group": "", "version": "v1", "kind": "ConfigMap"}), True, id="configmap"),
        pytest.param(changed(kind={}), True, id="no-kind"),
        pytest.param(nested(500), True, id="quite-deep-object"),
        pytest.param(json.dumps(review(pod({"name": "p", "labels": {SZ: 5}}))).encode(), False, id="number"),
        pytest.param(
            json.dumps(review(workload("Job", parallelism=10**30))).encode(), True, id="huge-number"
        ),
        pytest.param(json.dumps(review(workload("Job", parallelism=1e300))).encode(), True, id="huge-float"),
        pytest.param(
            json.dumps(review(pod({"name": "p", "labels": {f"k{n}": "v" for n in range(50_000)}}))).encode(),
            True,
            id="many-labels",
        ),
    ],
)
async def test_what_is_a_review_is_a_200_with_its_uid(client: RawClient, body: bytes, allowed: bool) -> None:
    """Cases C07, C33 and C35, rules W5 and W6."""
    answer = await client.post(body)
    assert answer.response["uid"] == "u-1"
    assert answer.response["allowed"] is allowed
    assert not answer.closes


async def test_a_connection_serves_on_after_a_denial(client: RawClient) -> None:
    """Rule W28: one connection carries the reviews of everybody."""
    denied = json.dumps(review(pod({"name": "p", "labels": {SZ: "abc"}}))).encode()
    for body, allowed in [(denied, False), (GOOD, True), (denied, False), (GOOD, True)]:
        assert (await client.post(body)).response["allowed"] is allowed


async def test_a_wrong_content_type_is_a_415(client: RawClient) -> None:
    """Case C35."""
    answer = await client.post(GOOD, content_type="text/plain")
    assert answer.status == 415
    assert b"application/json" in answer.body
    assert answer.closes


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"])
async def test_anything_but_post_is_a_405(client: RawClient, method: str) -> None:
    """Case C35."""
    await client.send(f"{method} /mutate HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert (await client.reader.readline()).startswith(b"HTTP/1.1 405")


async def test_another_path_is_a_404(client: RawClient) -> None:
    await client.send(b"POST /mutate/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    assert (await client.answer()).status == 404


async def test_what_is_too_large_is_a_413_that_the_client_can_read(client: RawClient) -> None:
    """Rule W4: to close while it is still sending would take the answer away from it."""
    answer = await client.post(b" " * (MAX_BODY_BYTES + 1))
    assert answer.status == 413
    assert str(MAX_BODY_BYTES) in answer.body.decode()


async def test_what_has_no_end_is_a_413(port: int, client: RawClient, cert_dir: Path) -> None:
    """Rule W4: a length need not be declared; memory is bounded all the same."""
    await client.send(head(0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked"))
    chunk = b"%x\r\n" % 2**20 + b" " * 2**20 + b"\r\n"

    async def send_for_ever() -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                await client.send(chunk)

    sending = asyncio.create_task(send_for_ever())
    answer = await client.answer()
    sending.cancel()
    assert answer.status == 413
    assert await still_serves(port, cert_dir)


async def test_a_body_may_come_in_chunks(client: RawClient) -> None:
    await client.send(head(0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked"))
    for start in range(0, len(GOOD), 100):
        part = GOOD[start : start + 100]
        await client.send(b"%x\r\n%b\r\n" % (len(part), part))
    await client.send(b"0\r\n\r\n")
    assert (await client.answer()).response["allowed"] is True


async def test_half_a_body_is_a_408_before_the_api_server_gives_up(client: RawClient) -> None:
    """Rule W16: after its timeout nobody would hear our reason."""
    began_s = time.monotonic()
    await client.send(head(len(GOOD), timeout="1s") + GOOD[:100])
    answer = await client.answer()
    assert answer.status == 408
    assert b"0.8 s" in answer.body
    assert time.monotonic() - began_s > 0.7
    assert await client.until_closed() == b""


async def test_a_body_that_trickles_is_a_408(client: RawClient) -> None:
    """The deadline is for the whole: a byte now and then does not put it off."""
    await client.send(head(len(GOOD), timeout="1s"))

    async def trickle() -> None:
        with contextlib.suppress(ConnectionError):
            for byte in GOOD:
                await client.send(bytes([byte]))
                await asyncio.sleep(0.1)

    trickling = asyncio.create_task(trickle())
    assert (await client.answer()).status == 408
    trickling.cancel()


async def test_half_a_head_ends_the_connection(client: RawClient) -> None:
    began_s = time.monotonic()
    await client.send(head(len(GOOD))[:40])
    assert await client.until_closed() == b""
    assert time.monotonic() - began_s >= HEAD_DEADLINE_S * 0.9


async def test_a_head_that_trickles_ends_the_connection(client: RawClient) -> None:
    async def trickle() -> None:
        with contextlib.suppress(ConnectionError):
            for byte in head(len(GOOD), more="X: " + "x" * 1000 + "\r\n"):
                await client.send(bytes([byte]))
                await asyncio.sleep(0.05)

    trickling = asyncio.create_task(trickle())
    assert await client.until_closed() == b""
    trickling.cancel()


async def test_who_is_slow_holds_up_nobody_else(port: int, cert_dir: Path) -> None:
    """Rule W28: reviews of others come on connections of their own."""
    async with contextlib.AsyncExitStack() as stack:
        for number in range(20):
            slow = await stack.enter_async_context(RawClient.connect(port, trust(cert_dir)))
            await slow.send(
                head(len(GOOD))[: 40 * (number % 2)] if number % 4 < 2 else head(len(GOOD)) + b"{"
            )
        for _ in range(20):
            assert await still_serves(port, cert_dir)


async def test_an_idle_connection_is_kept_longer_than_a_head_may_take(client: RawClient) -> None:
    """Rule W28: an API server opens connections ahead of need, and keeps them."""
    await client.send(b"\r\n")
    await asyncio.sleep(HEAD_DEADLINE_S + 0.2)
    assert (await client.post(GOOD)).response["allowed"] is True


@pytest.mark.parametrize(
    "junk",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x00\x05hello",
        b"\x00" * 100,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
async def test_junk_on_the_port_hurts_nobody(port: int, cert_dir: Path, junk: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(junk)
    with contextlib.suppress(ConnectionError):
        await asyncio.wait_for(reader.read(), 10)
    writer.close()
    assert await still_serves(port, cert_dir)


@pytest.mark.parametrize(
    "junk", [b"\x00\x01\x02\r\n\r\n", b"POST /mutate HTTP/9.9\r\n\r\n", b"no request at all\r\n\r\n"]
)
async def test_junk_inside_tls_is_a_400(client: RawClient, junk: bytes) -> None:
    await client.send(junk)
    assert (await client.reader.readline()).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("length", ["-1", "x", "1, 2", "99999999999999999999999999"])
async def test_a_length_that_is_none_is_a_4xx(client: RawClient, length: str) -> None:
    await client.send(head(0).replace(b"Length: 0", f"Length: {length}".encode()))
    assert (await client.reader.readline()).startswith(b"HTTP/1.1 4")


async def test_two_requests_in_one_packet_get_two_answers(client: RawClient) -> None:
    await client.send(2 * (head(len(GOOD)) + GOOD))
    for _ in range(2):
        assert (await client.answer()).response["allowed"] is True


@given(st.integers(1, 30))
def test_the_deadline_for_a_body_is_below_any_timeout_of_a_registration(seconds: int) -> None:
    """Rule W16: timeoutSeconds may be 1 to 30, and comes with each request."""
    assert 0 < body_deadline_s(b"timeout=%ds" % seconds) < seconds


def test_the_deadline_without_a_timeout_is_below_the_one_of_the_chart() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert body_deadline_s(b"") == BODY_DEADLINE_S < values["webhook"]["timeoutSeconds"]


@pytest.mark.parametrize(
    "query", [b"timeout=abc", b"timeout=", b"timeout=-1s", b"xtimeout=1s", b"timeout=99999s"]
)
def test_a_timeout_that_is_none_is_passed_over(query: bytes) -> None:
    assert body_deadline_s(query) == BODY_DEADLINE_S
