"""Run one process of Fluence: logs, probes, signals, and an orderly end.

Owns: everything that the three processes have in common around their work. Does not own: the work.
It is imported only by commands that run a process, since uvloop and aiohttp take their time to load.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
import uvloop

from fluence import logs
from fluence.probes import Probes
from fluence.settings import Settings
from groups.errors import FluenceError
from kube.errors import Forbidden, Unauthorized, Unreachable

log = structlog.get_logger(__name__)

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

Work = Callable[[Probes], Awaitable[None]]


def identity() -> str:
    """A name that no other process has: a host may run several."""
    return f"{socket.gethostname()}-{secrets.token_hex(4)}"


def run_process(name: str, settings: Settings, work: Work) -> None:
    """Run `work` until it fails or a signal comes; FluenceError when it fails."""
    logs.configure(settings.log_level, name)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(name, settings, work))


async def _run(name: str, settings: Settings, work: Work) -> None:
    told = _listen_to_signals()
    async with Probes(settings.probe_host, settings.probe_port) as probes:
        working = asyncio.create_task(_advised(work, probes), name=name)
        waiting = asyncio.create_task(told.wait(), name="signals")
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if working.done():
            await working
            raise FluenceError(f"the {name} ended by itself")
        probes.stop_serving()
        # Leases are released and open answers are given on the way out.
        working.cancel()
        await asyncio.wait({working})
        if not working.cancelled() and (error := working.exception()) is not None:
            raise error
        log.info("stopped")


def _listen_to_signals() -> asyncio.Event:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        log.info("stopping", signal=number.name)
        told.set()
        # Whoever is in a hurry sends it again, and then it ends the process at once.
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)

    for each in _SIGNALS:
        loop.add_signal_handler(each, stop, each)
    return told


async def _advised(work: Work, probes: Probes) -> None:
    """Do the work; what the API server refuses at the start is told with what to do about it."""
    try:
        await work(probes)
    except* Forbidden as errors:
        raise _with_advice(errors, "give its account the roles of the chart") from errors
    except* Unauthorized as errors:
        raise _with_advice(errors, "give a kubeconfig with valid credentials by --kubeconfig") from errors
    except* Unreachable as errors:
        raise _with_advice(
            errors, "is the API server up, and the address in the kubeconfig right?"
        ) from errors


def _with_advice(errors: BaseExceptionGroup[FluenceError], advice: str) -> FluenceError:
    first: BaseException = errors
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return FluenceError(f"{first}: {advice}")
