"""The webhook's server on a real socket of this machine, with TLS, and clients that send what they like."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from certs.authority import new_bundle
from webhook.app import Readiness
from webhook.server import serve
from webhook.settings import WebhookSettings

PATIENCE_S = 20.0


def write_certificate(folder: Path) -> Path:
    """A certificate for 127.0.0.1 in a folder for --cert-dir."""
    bundle = new_bundle(["127.0.0.1"], dt.datetime.now(dt.UTC))
    (folder / "tls.crt").write_bytes(bundle.cert)
    (folder / "tls.key").write_bytes(bundle.key)
    (folder / "ca.crt").write_bytes(bundle.ca)
    return folder


@contextlib.asynccontextmanager
async def running(
    cert_dir: Path, readiness: Readiness, *, drain_s: float = 0.0
) -> AsyncIterator[tuple[asyncio.Task[None], int]]:
    """The server in this event loop: its task and its port."""
    settings = WebhookSettings(host="127.0.0.1", port=0, cert_dir=cert_dir, drain_s=drain_s)
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(settings, readiness, bound=bound))
    await asyncio.wait([task, bound], timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield task, await bound
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def trust(cert_dir: Path) -> ssl.SSLContext:
    """What a client needs to believe the server."""
    return ssl.create_default_context(cafile=str(cert_dir / "ca.crt"))


def trusting(cert_dir: Path) -> aiohttp.ClientSession:
    """A client with one connection, which it keeps."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust(cert_dir), limit=1))


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def closes(self) -> bool:
        """Whether the server asks to close the connection."""
        return self.headers.get("connection", "").lower() == "close"

    @property
    def response(self) -> dict[str, Any]:
        """The response of an AdmissionReview."""
        assert self.status == 200, self.body
        told = json.loads(self.body)
        assert (told["apiVersion"], told["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        response: dict[str, Any] = told["response"]
        return response


class RawClient:
    """One connection on which any bytes can be sent, at any speed."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, port: int, context: ssl.SSLContext) -> AsyncIterator[RawClient]:
        """Connect, and close at the end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        try:
            yield cls(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError, ssl.SSLError):
                await writer.wait_closed()

    async def send(self, data: bytes) -> None:
        """Send these bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def post(self, body: bytes, **how: Any) -> Answer:
        """Send a whole request; its answer."""
        await self.send(head(len(body), **how) + body)
        return await self.answer()

    async def answer(self) -> Answer:
        """Read one answer; IncompleteReadError or ConnectionError where the connection ends first."""
        async with asyncio.timeout(PATIENCE_S):
            raw = await self.reader.readuntil(b"\r\n\r\n")
            first, *lines = raw.decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
            }
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return Answer(int(first.split()[1]), headers, body)

    async def until_closed(self) -> bytes:
        """What else comes until the server closes the connection."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.read()


def head(
    length: int, *, timeout: str = "5s", content_type: str = "application/json", more: str = ""
) -> bytes:
    """The head of a request as the API server sends it."""
    return (
        f"POST /mutate?timeout={timeout} HTTP/1.1\r\nHost: x\r\nUser-Agent: kube-apiserver-admission\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {length}\r\n{more}\r\n"
    ).encode()


@dataclass
class Tally:
    """What became of the reviews of `hammer`."""

    sent: int = 0
    answered: int = 0


async def hammer(
    port: int, context: ssl.SSLContext, body: bytes, may_connect: Callable[[], bool], tally: Tally
) -> None:
    """Post one review after another on a connection that is kept, as an API server does.

    A new connection is made when the server closes one, as long as `may_connect`, which is what a Service
    does for an API server. Ends when the server closes the connection and no other may be made.
    """
    request = head(len(body)) + body
    while may_connect():
        async with RawClient.connect(port, context) as client:
            closes = False
            while not closes:
                tally.sent += 1
                await client.send(request)
                answer = await client.answer()
                assert answer.response["allowed"] is True
                tally.answered += 1
                closes = answer.closes
