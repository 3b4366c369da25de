"""One process of the cluster: start it, wait until it is ready, end it.

Owns: the process and its log file. Does not own: which processes there are, or what they mean.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import aiohttp

from devcluster.components import Component
from devcluster.errors import ComponentFailed, PortTaken

READY_DEADLINE_S: Final = 90.0
_POLL_S: Final = 0.05
_PR_SET_PDEATHSIG: Final = 1
_libc = ctypes.CDLL(None, use_errno=True)


def dies_with_parent() -> Callable[[], None]:
    """Return a function for the child to run before its program: it then ends when this process ends."""
    parent = os.getpid()

    def tie() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # If the parent died before the line above, the kernel sends no signal.
        if os.getppid() != parent:
            os._exit(1)

    return tie


class Child:
    """A process that runs or has ended."""

    def __init__(
        self, component: Component, process: asyncio.subprocess.Process, log: Path, start: int
    ) -> None:
        self._component = component
        self._process = process
        self._log = log
        self._log_start = start

    @classmethod
    async def start(cls, component: Component, log: Path) -> Child:
        """Start the program; its output is appended to the log."""
        with log.open("ab") as output:
            start = output.tell()
            process = await asyncio.create_subprocess_exec(
                *component.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **component.environment},
                preexec_fn=dies_with_parent(),
            )
        return cls(component, process, log, start)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait until it has ended."""
        return await self._process.wait()

    async def until_ready(self, http: aiohttp.ClientSession, deadline_s: float = READY_DEADLINE_S) -> None:
        """Wait until it answers 200 at its address; ComponentFailed if it ends first or is too late."""
        name, url = self._component.name, self._component.ready_url
        end_s = time.monotonic() + deadline_s
        while time.monotonic() < end_s:
            if self.exit_code is not None:
                raise self._failed(f"{name} ended with exit code {self.exit_code} before it was ready")
            try:
                async with http.get(url) as answer:
                    if answer.status == 200:
                        return
            except (aiohttp.ClientError, TimeoutError):
                pass
            await asyncio.sleep(_POLL_S)
        raise self._failed(f"{name} was not ready after {deadline_s:.0f} s ({url})")

    def signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.exit_code is None:
            self._process.send_signal(number)

    async def stop(self) -> None:
        """Ask it to end, and kill it if it does not end in time."""
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self._component.stop_deadline_s):
                await self.wait()
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """End it now."""
        self.signal(signal.SIGKILL)
        await self.wait()

    def _failed(self, what: str) -> ComponentFailed:
        with self._log.open("rb") as log:
            log.seek(self._log_start)
            said = log.read().decode(errors="replace")
        tail = "\n".join(f"    {line[:400]}" for line in said.strip().splitlines()[-8:])
        taken = "address already in use" in said
        sentence = f"{what}; its log ({self._log}) ends with\n{tail}"
        return PortTaken(sentence) if taken else ComponentFailed(sentence)
