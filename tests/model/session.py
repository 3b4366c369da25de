"""A session of one process with the API server of the model test; each call that matters has its fate."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from kube.errors import Unreachable, error_of
from kube.session import Kube
from tests.model.server import Answer, ApiServer, Fate, Late

_LATENCY_S: Final = 0.001
#: Later than the client waits for a Binding, and within the time in which the scheduler expects it.
_LATE_S: Final = 20.0
_ANSWERED_LATE_S: Final = 3.0
_FAILURES: Final[Mapping[Fate, int]] = {
    Fate.FAILS_BEFORE: 500,
    Fate.FAILS_AFTER: 500,
    Fate.TOO_MANY: 429,
    Fate.FORBIDDEN: 403,
}
_CARRIED_OUT: Final = frozenset(
    {
        Fate.FINE,
        Fate.ANSWER_LOST,
        Fate.ANSWERED_LATE,
        Fate.CUT_AFTER,
        Fate.FAILS_AFTER,
        Fate.DOUBLED,
        Fate.KILLED_AFTER,
    }
)


class ModelKube(Kube):
    """A session whose process may be killed between any two calls, and within one."""

    def __init__(self, server: ApiServer, kill: Callable[[], None]) -> None:
        # Not that of Kube, which opens a real session.
        self._guard = None
        self._model = server
        self._kill = kill
        #: Shared by the guarded copies of this session.
        self._life = {"is_alive": True}

    def die(self) -> None:
        """From now on no request of this process is sent."""
        self._life["is_alive"] = False

    async def _send(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        body: Any,
        content_type: str,
        timeout_s: float,
    ) -> bytes:
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.sleep(_LATENCY_S)
                raw = body if isinstance(body, bytes | None) else body.decode().encode()
                status, answer = await self._meet(method, path, json.loads(raw) if raw else None)
        except TimeoutError as error:
            raise Unreachable(f"{method} {path}: no answer") from error
        content = json.dumps(answer).encode()
        if status >= 400:
            retry_after = "1" if status == 429 else None
            raise error_of(status, content, doing=f"{method} {path}", retry_after=retry_after)
        return content

    async def _meet(self, method: str, path: str, body: Any) -> Answer:
        server = self._model
        if not self._life["is_alive"]:
            await asyncio.Event().wait()
        if not server.up:
            raise Unreachable(f"{method} {path}: connection refused")
        fate = server.fates.popleft() if _matters(method, path) and server.fates else Fate.FINE
        answer: Answer = (_FAILURES.get(fate, 0), {"message": fate.value})
        if fate in _CARRIED_OUT:
            first = server.answer(method, path, body)
            if fate is Fate.DOUBLED:
                first = server.answer(method, path, body)
            answer = answer if answer[0] else first
        match fate:
            case Fate.KILLED_BEFORE | Fate.KILLED_AFTER:
                self._kill()
                await asyncio.Event().wait()
            case Fate.NEVER_ARRIVES | Fate.ANSWER_LOST:
                await asyncio.Event().wait()
            case Fate.CUT_BEFORE | Fate.CUT_AFTER:
                raise Unreachable(f"{method} {path}: connection reset")
            case Fate.ANSWERED_LATE:
                answer = answer[0], json.loads(json.dumps(answer[1]))
                await asyncio.sleep(_ANSWERED_LATE_S)
            case Fate.ARRIVES_LATE:
                _send_late(server, method, path, body)
                await asyncio.Event().wait()
        return answer

    @asynccontextmanager
    async def lines(
        self, path: str, params: Mapping[str, str], *, silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        await asyncio.sleep(_LATENCY_S)
        if not self._model.up:
            raise Unreachable(f"GET {path}: connection refused")
        yield self._model.lines(path.rpartition("/")[2], int(params["resourceVersion"]))


def _matters(method: str, path: str) -> bool:
    return path.endswith("/binding") or (method in ("GET", "DELETE") and "/namespaces/ns/pods/" in path)


def _send_late(server: ApiServer, method: str, path: str, body: Any) -> None:
    late = Late(method, path, body)
    server.on_their_way.add(late)
    asyncio.get_running_loop().call_later(_LATE_S, server.arrive, late)
