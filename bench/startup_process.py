"""A scheduler or a controller that starts on a large cluster, and measures itself.

`python -m bench.startup_process scheduler|controller KUBECONFIG` prints one line of JSON once the process has
listed everything, leads, and has nothing left to do.

A ticking task is always due. Between two of its turns other tasks hold the event loop: the time that the
loop's own thread used then is a block. (Time on the clock would include what other programs take.)
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

import psutil
import uvloop

from controller.process import ControllerProcess
from controller.settings import ControllerSettings
from kube.session import Kube
from scheduler.process import SchedulerProcess
from scheduler.settings import SchedulerSettings

#: The process is at rest once it uses less than this share of a core.
_AT_REST: Final = 0.15
_REST_S: Final = 2.0


class Ticker:
    """The longest time for which the event loop did not come back to one task."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.at_s = 0.0

    async def run(self) -> None:
        """Tick until cancelled."""
        started_s = time.monotonic()
        while True:
            before_s = time.thread_time()
            await asyncio.sleep(0.001)
            took_s = time.thread_time() - before_s
            if took_s > self.longest_s:
                self.longest_s, self.at_s = took_s, time.monotonic() - started_s


async def _run(which: str, kubeconfig: Path) -> dict[str, Any]:
    async with await Kube.connect(kubeconfig, user_agent=f"bench-{which}") as kube:
        process: SchedulerProcess | ControllerProcess
        if which == "scheduler":
            process = SchedulerProcess(kube, SchedulerSettings("bench", kubeconfig))
        else:
            process = ControllerProcess(kube, ControllerSettings("bench", kubeconfig))
        ticker, started_s = Ticker(), time.monotonic()
        tasks = [asyncio.create_task(process.run()), asyncio.create_task(ticker.run())]
        while process.not_ready():
            _fail_early(tasks)
            await asyncio.sleep(0.05)
        listed_s = time.monotonic() - started_s
        await _until_at_rest(tasks)
        found = {
            "mb": round(psutil.Process().memory_info().rss / 2**20, 1),
            "block_ms": round(ticker.longest_s * 1e3, 1),
            "block_at_s": round(ticker.at_s, 2),
            "listed_s": round(listed_s, 2),
            "frozen": gc.get_freeze_count(),
        }
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return found


async def _until_at_rest(tasks: list[asyncio.Task[None]]) -> None:
    while True:
        before_s = time.process_time()
        await asyncio.sleep(_REST_S)
        _fail_early(tasks)
        # The ticker itself takes a few percent.
        if time.process_time() - before_s < _AT_REST * _REST_S:
            return


def _fail_early(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done():
            task.result()


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_run(sys.argv[1], Path(sys.argv[2])))))
