"""A small client of the API server for scripts and tests: plain dictionaries in and out.

Owns: requests with a deadline, and failures as `ApiFailure`. Does not own: retries, caches, models; the
product itself uses the package `kube` instead.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import aiohttp
import msgspec
import yaml

from devcluster.errors import DevclusterError

Object = dict[str, Any]

_PATCH_TYPES: Final = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


class ApiFailure(DevclusterError):
    """The API server refused a request: `status` is the HTTP code, `reason` the reason that it gave."""

    def __init__(self, request: str, status: int, reason: str, message: str) -> None:
        super().__init__(f"{request}: {status} {reason}: {message}")
        self.status, self.reason, self.message = status, reason, message


class Api:
    """A session with one API server, as the user of one kubeconfig."""

    def __init__(self, kubeconfig: Path, *, timeout_s: float = 30.0) -> None:
        self.server, self.token, ca = read_kubeconfig(kubeconfig)
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=ca), limit=100),
            headers={"Authorization": f"Bearer {self.token}", "User-Agent": "devcluster"},
            timeout=aiohttp.ClientTimeout(total=timeout_s),
            # An event with all managed fields is longer than the longest line that aiohttp reads by default.
            read_bufsize=2**22,
        )

    async def __aenter__(self) -> Api:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    async def get(self, path: str, **params: str) -> Object:
        """GET one object."""
        return await self.request("GET", path, params=params)

    async def find(self, path: str, **params: str) -> Object | None:
        """GET one object, or None where there is none."""
        try:
            return await self.get(path, **params)
        except ApiFailure as failure:
            if failure.status == 404:
                return None
            raise

    async def items(self, path: str, **params: str) -> list[Object]:
        """GET a whole collection."""
        found: list[Object] = (await self.get(path, **params)).get("items") or []
        return found

    async def post(self, path: str, body: Object, **params: str) -> Object:
        """POST a new object."""
        return await self.request("POST", path, body, params=params)

    async def put(self, path: str, body: Object) -> Object:
        """PUT a whole object."""
        return await self.request("PUT", path, body)

    async def patch(self, path: str, body: Any, kind: str = "merge", **params: str) -> Object:
        """PATCH by a `merge`, `strategic`, `json` or (server-side) `apply` patch."""
        return await self.request("PATCH", path, body, content_type=_PATCH_TYPES[kind], params=params)

    async def delete(self, path: str, **options: Any) -> Object:
        """DELETE an object or a collection; `options` are those of DeleteOptions."""
        return await self.request("DELETE", path, {"propagationPolicy": "Background", **options})

    async def delete_collection(self, path: str, selector: str = "", **options: Any) -> Object:
        """DELETE every object of a collection that the label selector matches."""
        params = {"labelSelector": selector} if selector else {}
        return await self.request("DELETE", path, options, params=params)

    async def watch(self, path: str, **params: str) -> AsyncIterator[tuple[str, Object]]:
        """Yield events of a collection as (`ADDED`, object) until the connection ends. Does not reconnect."""
        async with self._http.get(
            self.server + path,
            params={**params, "watch": "true"},
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            await _check(f"WATCH {path}", answer)
            async for line in answer.content:
                event = msgspec.json.decode(line)
                yield event["type"], event["object"]

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: dict[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        """Send one request and return the answer; raises ApiFailure."""
        data = None if body is None else msgspec.json.encode(body)
        async with self._http.request(
            method, self.server + path, params=params, data=data, headers={"Content-Type": content_type}
        ) as answer:
            await _check(f"{method} {path}", answer)
            found: Object = msgspec.json.decode(await answer.read())
            return found


async def _check(request: str, answer: aiohttp.ClientResponse) -> None:
    if answer.status < 400:
        return
    raw = await answer.read()
    try:
        said = msgspec.json.decode(raw, type=dict)
    except msgspec.DecodeError:
        said = {"message": raw.decode(errors="replace")}
    raise ApiFailure(request, answer.status, said.get("reason") or "", said.get("message") or "")


def read_kubeconfig(path: Path) -> tuple[str, str, Path]:
    """Server, token and authority of a kubeconfig that devcluster wrote."""
    content = yaml.safe_load(path.read_text())
    cluster = content["clusters"][0]["cluster"]
    return (
        cluster["server"],
        content["users"][0]["user"]["token"],
        Path(cluster["certificate-authority"]),
    )
