"""The orderly end: told to stop, the webhook loses no admission (rule W28)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.webhook.reviews import pod, review
from tests.webhook.serving import (
    PATIENCE_S,
    RawClient,
    Tally,
    hammer,
    head,
    running,
    trust,
    write_certificate,
)
from webhook.app import Readiness

BODY = json.dumps(review(pod({"name": "p"}))).encode()
CONNECTIONS = 8


@pytest.fixture
def cert_dir(tmp_path: Path) -> Path:
    return write_certificate(tmp_path)


async def until(count: int, tally: Tally) -> None:
    """Wait until so many are answered."""
    async with asyncio.timeout(PATIENCE_S):
        while tally.answered < count:
            await asyncio.sleep(0.01)


async def test_no_review_on_kept_connections_is_lost(cert_dir: Path) -> None:
    """Reviews keep coming while it stops; each is answered, and each connection ends with an answer."""
    readiness, tally = Readiness(), Tally()
    async with running(cert_dir, readiness, drain_s=0.5) as (task, port):
        clients = [
            asyncio.create_task(hammer(port, trust(cert_dir), BODY, lambda: readiness.ready, tally))
            for _ in range(CONNECTIONS)
        ]
        await until(200, tally)
        task.cancel()
        await asyncio.gather(*clients)
        with pytest.raises(asyncio.CancelledError):
            await task
    assert tally.answered == tally.sent


async def test_new_connections_are_served_until_news_of_the_end_has_spread(cert_dir: Path) -> None:
    """Readiness goes first; until the drain is over an API server may still be sent here."""
    readiness = Readiness()
    async with running(cert_dir, readiness, drain_s=30.0) as (task, port):
        task.cancel()
        await asyncio.sleep(0)
        async with RawClient.connect(port, trust(cert_dir)) as client:
            answer = await client.post(BODY)
            assert answer.response["allowed"] is True
            assert answer.closes
            assert await client.until_closed() == b""
        async with RawClient.connect(port, trust(cert_dir)) as client:
            await client.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = await client.answer()
            assert (answer.status, answer.body) == (503, b"not ready: stopping")
        # Whoever stops it twice is in a hurry.
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("sent", ["half-a-head", "half-a-body", "nothing"])
async def test_what_has_begun_is_answered_when_the_drain_is_over(cert_dir: Path, sent: str) -> None:
    request = head(len(BODY)) + BODY
    cut = {"half-a-head": 40, "half-a-body": len(request) - 10, "nothing": 0}[sent]
    async with running(cert_dir, Readiness()) as (task, port):
        async with RawClient.connect(port, trust(cert_dir)) as client:
            await client.send(request[:cut])
            # An answer on another connection: what was sent before has arrived by then.
            async with RawClient.connect(port, trust(cert_dir)) as other:
                await other.post(BODY)
            task.cancel()
            # uvicorn looks ten times a second whether to end: by then it has.
            await asyncio.sleep(0.3)
            await client.send(request[cut:])
            answer = await client.answer()
            assert answer.response["allowed"] is True
            assert answer.closes
            assert await client.until_closed() == b""
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_idle_connections_do_not_put_off_the_end(cert_dir: Path) -> None:
    async with running(cert_dir, Readiness()) as (task, port), contextlib.AsyncExitStack() as stack:
        for used in (True, False):
            client = await stack.enter_async_context(RawClient.connect(port, trust(cert_dir)))
            if used:
                await client.post(BODY)
        task.cancel()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(asyncio.CancelledError):
                await task


@contextlib.asynccontextmanager
async def process(
    cert_dir: Path, *arguments: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, int, int]]:
    """`fluence webhook` as a process of its own, its port and the one of its probes."""
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        port, probes = one.getsockname()[1], two.getsockname()[1]
    with (cert_dir / "log").open("wb") as log:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fluence", "webhook", f"--cert-dir={cert_dir}", "--host=127.0.0.1",
            f"--port={port}", "--probe-host=127.0.0.1", f"--probe-port={probes}", *arguments,
            env={name: value for name, value in os.environ.items() if not name.startswith("FLUENCE_")},
            stderr=log,
        )  # fmt: skip
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await is_ready(probes):
                assert child.returncode is None, (cert_dir / "log").read_text()
                await asyncio.sleep(0.05)
        yield child, port, probes
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def is_ready(probes: int) -> bool:
    try:
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"http://127.0.0.1:{probes}/readyz") as answer,
        ):
            return answer.status == 200
    except aiohttp.ClientError:
        return False


async def test_sigterm_loses_no_admission(cert_dir: Path) -> None:
    """The process as a kubelet stops it: unready at once, serving on, then gone with exit code 0."""
    tally, told = Tally(), asyncio.Event()

    async with process(cert_dir, "--drain-seconds=1") as (child, port, probes):
        clients = [
            asyncio.create_task(hammer(port, trust(cert_dir), BODY, lambda: not told.is_set(), tally))
            for _ in range(CONNECTIONS)
        ]
        await until(200, tally)
        child.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            while await is_ready(probes):
                await asyncio.sleep(0.02)
        told.set()
        await asyncio.gather(*clients)
        async with asyncio.timeout(PATIENCE_S):
            assert await child.wait() == 0
    assert tally.answered == tally.sent


async def test_each_review_is_logged_with_uid_kind_decision_and_milliseconds(cert_dir: Path) -> None:
    async with process(cert_dir, "--drain-seconds=0") as (child, port, _):
        async with RawClient.connect(port, trust(cert_dir)) as client:
            await client.post(BODY)
        child.send_signal(signal.SIGTERM)
        await child.wait()
    lines = [json.loads(line) for line in (cert_dir / "log").read_text().splitlines()]
    (line,) = [line for line in lines if line["event"] == "review"]
    assert (line["uid"], line["kind"], line["decision"]) == ("u-1", "Pod", "labelled")
    assert 0 < line["milliseconds"] < 1000
