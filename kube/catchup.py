"""Wait until a local copy of a collection shows everything that has happened in the API server.

Owns: the check whether a reflector is up to date. Does not own: the reflector (`kube.reflector`).

A process that begins to lead acts on its copies. They may be old: their watch may have been silent for
minutes, or broken without an error, while another process led and wrote.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import structlog

from kube.backoff import Backoff
from kube.errors import KubeError
from kube.reflector import Reflector

_POLL_S: Final = 0.02
#: After this many checks in a row without a new line, a new watch has delivered everything.
_QUIET_LOOKS: Final = 10
log = structlog.get_logger(__name__)


async def catch_up(reflector: Reflector[Any]) -> None:
    """Return once `reflector.items` shows every change that had happened when this was called.

    The newest version is read from the API server. If the reflector has not reached it, its watch is resumed
    by a new request, which costs no list. Waits while the API server is away.
    """
    newest = await _newest_version(reflector)
    if reflector.is_synced and is_reached(reflector.version, newest):
        return
    answers, lines, quiet_looks = reflector.answers, reflector.lines, 0
    reflector.resume()
    while quiet_looks < _QUIET_LOOKS:
        await asyncio.sleep(_POLL_S)
        if reflector.answers == answers or not reflector.is_synced:
            continue
        if is_reached(reflector.version, newest):
            return
        # The version of a collection without changes stays behind the version of the server.
        quiet_looks = quiet_looks + 1 if reflector.lines == lines else 0
        lines = reflector.lines


def is_reached(version: str, newest: str) -> bool:
    """Whether a resource version is at least `newest`: versions of one API server are numbers that rise."""
    return version.isdecimal() and newest.isdecimal() and int(version) >= int(newest)


async def _newest_version(reflector: Reflector[Any]) -> str:
    backoff = Backoff(most_s=5.0)
    while True:
        try:
            return await reflector.newest_version()
        except KubeError as error:
            log.warning("not up to date yet", collection=reflector.collection.path, error=str(error))
        await asyncio.sleep(backoff.next_delay_s())
