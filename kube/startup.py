"""Wait at the start of a process until the API server answers and serves what the process needs."""

from __future__ import annotations

import contextlib
from typing import Final

import structlog

from groups.errors import FluenceError
from kube.backoff import ROLES_DEADLINE_S, Backoff, once_roles_are_read, persist
from kube.errors import Forbidden, KubeError, NotFound
from kube.session import Kube

_START_DEADLINE_S: Final = 60.0
_log = structlog.get_logger(__name__)


async def require_collection(
    kube: Kube, path: str, *, missing: str, roles_deadline_s: float = ROLES_DEADLINE_S
) -> None:
    """Return once the collection at `path` can be listed; the wait for an API server that is away is logged.

    Raises FluenceError with the text `missing` if the server does not know the collection, Forbidden if the
    right to list it is missing for longer than `roles_deadline_s`, and the last error if the server is away
    for a minute.
    """

    async def attempt() -> None:
        await once_roles_are_read(lambda: _list_one(kube, path), deadline_s=roles_deadline_s)

    try:
        await persist(
            attempt, deadline_s=_START_DEADLINE_S, backoff=Backoff(most_s=5.0), on_retry=_log_the_wait
        )
    except NotFound as error:
        raise FluenceError(missing) from error


def _log_the_wait(error: KubeError, delay_s: float) -> None:
    _log.warning("waiting for the API server", error=str(error), retry_in_seconds=round(delay_s, 2))


async def _list_one(kube: Kube, path: str) -> None:
    try:
        await kube.get(path, {"limit": "1"})
    except NotFound:
        # A new API server does not serve custom resources yet. It is not ready then, so this is tried again.
        with contextlib.suppress(Forbidden, NotFound):
            await kube.get("/readyz")
        await kube.get(path, {"limit": "1"})
