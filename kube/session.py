"""One HTTP session with the API server: every request has a deadline, every failure is a KubeError.

Owns: requests, streams, and turning failures into `kube.errors`. Does not own: retries (see
`kube.backoff.persist`), caches, or the meaning of the data.

The session is a plain one of aiohttp. The one of kubernetes-asyncio reads proxy settings from the environment
on every request and hides failed answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import socket
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Protocol, TypeVar

import aiohttp
import msgspec
from aiohttp import hdrs
from aiohttp.abc import AbstractStreamWriter

from kube.credentials import Credentials
from kube.errors import ApiError, KubeError, Unauthorized, Unreachable, error_of

T = TypeVar("T")
Params = Mapping[str, str]
PatchType = Literal["merge", "strategic", "json"]

_PATCH_TYPES: Final[Mapping[PatchType, str]] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
_JSON: Final = "application/json"
_READS: Final = frozenset({"GET", "HEAD"})
DEFAULT_TIMEOUT_S: Final = 15.0
_CONNECT_TIMEOUT_S: Final = 5.0
#: The largest watch line: an object of etcd's limit of 1.5 MiB, with room for escapes and managedFields.
MAX_LINE_BYTES: Final = 16 * 2**20

_encode = msgspec.json.Encoder().encode


class WriteGuard(Protocol):
    """Decides whether a write may be sent now (`kube.term.Term`)."""

    @property
    def write_timeout_s(self) -> float:
        """The longest time for one write, with the wait for a connection."""

    def check(self) -> None:
        """Raise a KubeError if nothing may be written any more."""

    def unanswered(self) -> None:
        """Note that a write was sent, and that its outcome is not known."""


class Kube:
    """A session with one API server. Use `connect`, and close it (or use `async with`)."""

    def __init__(
        self,
        credentials: Credentials,
        user_agent: str,
        connections: int = 100,
        *,
        unacknowledged_s: float | None = None,
    ) -> None:
        """`unacknowledged_s`: how long the kernel may repeat data that the server does not acknowledge.

        Without it, a request that we gave up may still arrive minutes later, when the network works again.
        """
        self._credentials = credentials
        self._server = credentials.server
        self._guard: WriteGuard | None = None
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=connections, ssl=credentials.tls(), socket_factory=_socket_factory(unacknowledged_s)
            ),
            headers={hdrs.USER_AGENT: user_agent, hdrs.ACCEPT: _JSON},
            read_bufsize=2**21,
            trust_env=False,
        )

    @classmethod
    async def connect(
        cls,
        kubeconfig: Path | None = None,
        *,
        user_agent: str = "fluence",
        unacknowledged_s: float | None = None,
    ) -> Kube:
        """Read the configuration (ConfigError if there is none) and open a session; sends nothing."""
        credentials = await Credentials.find(kubeconfig)
        return cls(credentials, user_agent, unacknowledged_s=unacknowledged_s)

    def guarded(self, guard: WriteGuard) -> Kube:
        """This session with a guard that is asked before each write; it shares the connections.

        The guard is asked twice: first, and again when there is a connection and the bytes are handed over.
        Timeouts of writes are lowered to the guard's.
        """
        view = copy.copy(self)
        view._guard = guard
        return view

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self._server

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    async def __aenter__(self) -> Kube:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def get(
        self, path: str, params: Params | None = None, *, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> bytes:
        """GET `path`; the body of the answer, or an error of `kube.errors`."""
        return await self.request("GET", path, params=params, timeout_s=timeout_s)

    async def get_as(self, path: str, kind: type[T], params: Params | None = None) -> T:
        """GET `path` decoded into `kind` (a msgspec struct with the fields in use)."""
        return msgspec.json.decode(await self.get(path, params), type=kind)

    async def post(self, path: str, body: object, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> bytes:
        """POST `body` (bytes are sent as they are, anything else as JSON)."""
        return await self.request("POST", path, body=_bytes(body), timeout_s=timeout_s)

    async def put(self, path: str, body: object, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> bytes:
        """PUT `body`. It must be a whole object, never one that was decoded into a struct with few fields."""
        return await self.request("PUT", path, body=_bytes(body), timeout_s=timeout_s)

    async def patch(
        self,
        path: str,
        body: object,
        kind: PatchType = "merge",
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> bytes:
        """PATCH with a merge patch, a strategic merge patch (built-in kinds only) or a JSON patch."""
        return await self.request(
            "PATCH", path, body=_bytes(body), content_type=_PATCH_TYPES[kind], timeout_s=timeout_s
        )

    async def delete(
        self, path: str, *, uid: str | None = None, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> bytes:
        """DELETE; with `uid` only the object with that uid (409 if another one has its name)."""
        options: dict[str, Any] = {"propagationPolicy": "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        return await self.request("DELETE", path, body=_bytes(options), timeout_s=timeout_s)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: bytes | None = None,
        content_type: str = _JSON,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> bytes:
        """Send one request; after a 401 the credentials are read again and it is sent once more."""
        try:
            return await self._once(method, path, params, body, content_type, timeout_s)
        except Unauthorized:
            await self._credentials.refresh()
            return await self._once(method, path, params, body, content_type, timeout_s)

    async def _once(
        self,
        method: str,
        path: str,
        params: Params | None,
        body: bytes | None,
        content_type: str,
        timeout_s: float,
    ) -> bytes:
        if self._guard is None or method in _READS:
            return await self._send(method, path, params, body, content_type, timeout_s)
        guarded = _GuardedBody(body or b"", self._guard, content_type)
        self._guard.check()
        try:
            return await self._send(
                method, path, params, guarded, content_type, min(timeout_s, self._guard.write_timeout_s)
            )
        except (Unreachable, asyncio.CancelledError) as error:
            if guarded.refusal is None:
                self._guard.unanswered()
            elif isinstance(error, Unreachable):
                raise guarded.refusal from None
            raise

    async def _send(
        self,
        method: str,
        path: str,
        params: Params | None,
        body: bytes | _GuardedBody | None,
        content_type: str,
        timeout_s: float,
    ) -> bytes:
        headers = await self._headers()
        if body is not None:
            headers[hdrs.CONTENT_TYPE] = content_type
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=_CONNECT_TIMEOUT_S)
        with _failures_of(method, path):
            async with self._http.request(
                method,
                self._server + path,
                params=params,
                data=body,
                headers=headers,
                timeout=timeout,
            ) as answer:
                read = await answer.read()
                if answer.status < 400:
                    return read
                raise _error(answer, read, method, path)

    @contextlib.asynccontextmanager
    async def lines(
        self, path: str, params: Params, *, silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a stream and yield its lines; Unreachable if nothing arrives for `silence_s` seconds."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT_S, sock_read=silence_s)
        with _failures_of("GET", path):
            async with self._http.get(
                self._server + path, params=params, headers=await self._headers(), timeout=timeout
            ) as answer:
                if answer.status >= 400:
                    if answer.status == 401:
                        await self._credentials.refresh()
                    raise _error(answer, await answer.read(), "GET", path)
                yield _lines_of(answer.content)

    async def _headers(self) -> dict[str, str]:
        token = await self._credentials.authorization()
        return {hdrs.AUTHORIZATION: token} if token else {}


class _GuardedBody(aiohttp.BytesPayload):
    """A body that asks its guard once more, when there is a connection and the request is handed over.

    aiohttp sends the headers together with the body, so nothing is sent if the guard refuses.
    """

    def __init__(self, value: bytes, guard: WriteGuard, content_type: str) -> None:
        super().__init__(value, content_type=content_type)
        self._guard = guard
        self.refusal: KubeError | None = None

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        try:
            self._guard.check()
        except KubeError as error:
            self.refusal = error
            raise
        await super().write_with_length(writer, content_length)


def _socket_factory(unacknowledged_s: float | None) -> aiohttp.SocketFactoryType | None:
    # Linux only: elsewhere the kernel decides.
    if unacknowledged_s is None or not hasattr(socket, "TCP_USER_TIMEOUT"):
        return None
    limit_ms = max(1, int(unacknowledged_s * 1000))

    def make(address: aiohttp.AddrInfoType) -> socket.socket:
        made = socket.socket(family=address[0], type=address[1], proto=address[2])
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit_ms)
        return made

    return make


async def _lines_of(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    while line := await content.readline(max_line_length=MAX_LINE_BYTES):
        yield line


def _bytes(body: object) -> bytes:
    return body if isinstance(body, bytes) else _encode(body)


def _error(answer: aiohttp.ClientResponse, body: bytes, method: str, path: str) -> ApiError:
    return error_of(
        answer.status,
        body,
        doing=f"{method} {path}",
        retry_after=answer.headers.get(hdrs.RETRY_AFTER),
    )


@contextlib.contextmanager
def _failures_of(method: str, path: str) -> Any:
    try:
        yield
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        what = str(error) or type(error).__name__
        raise Unreachable(f"{method} {path}: no answer from the API server ({what})") from error
