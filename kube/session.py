"""One HTTP session with the API server: every request has a deadline, every failure one kind of error.

Owns: requests, streams, the mapping of failures to `kube.errors`. Does not own: retries (see
`kube.backoff.persist`), caches, or what the bytes mean.

The session is aiohttp's own, since the one of kubernetes-asyncio reads proxy settings from the
environment on every request and hides failed answers.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, TypeVar

import aiohttp
import msgspec
from aiohttp import hdrs

from kube.credentials import Credentials
from kube.errors import ApiError, Unauthorized, Unreachable, error_of

T = TypeVar("T")
Params = Mapping[str, str]
PatchType = Literal["merge", "strategic", "json"]

_PATCH_TYPES: Final[Mapping[PatchType, str]] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
_JSON: Final = "application/json"
DEFAULT_TIMEOUT_S: Final = 15.0
_CONNECT_TIMEOUT_S: Final = 5.0
#: The largest watch line: an object of etcd's limit of 1.5 MiB, with room for escapes and managedFields.
MAX_LINE_BYTES: Final = 16 * 2**20

_encode = msgspec.json.Encoder().encode


class Kube:
    """A session with one API server. Use `connect`, and close it (or use `async with`)."""

    def __init__(self, credentials: Credentials, user_agent: str, connections: int = 100) -> None:
        self._credentials = credentials
        self._server = credentials.server
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections, ssl=credentials.tls()),
            headers={hdrs.USER_AGENT: user_agent, hdrs.ACCEPT: _JSON},
            read_bufsize=2**21,
            trust_env=False,
        )

    @classmethod
    async def connect(cls, kubeconfig: Path | None = None, *, user_agent: str = "fluence") -> Kube:
        """Read the configuration (ConfigError where there is none) and open a session; sends nothing."""
        return cls(await Credentials.find(kubeconfig), user_agent)

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
        """PUT `body`; it must be a whole object, so never one decoded into a slim struct."""
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
        """DELETE; with `uid` only that very object (409 if another one has taken its name)."""
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
        """Open a stream and yield its lines; Unreachable when nothing comes for `silence_s` seconds."""
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
