"""A process that writes as fast as it can while it leads: `python -m tests.support.leading_process ...`."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import uvloop

from kube.errors import KubeError
from kube.lease import Lease
from kube.session import Kube
from kube.term import LeaseTimes, Term
from kube.watchdog import AlarmWatchdog

#: As many as the binder of the scheduler has.
WRITERS = 32


async def main(kubeconfig: str, identity: str, duration_s: int) -> None:
    async def write(term: Term) -> None:
        while True:
            try:
                await term.kube.post("/writes", {"from": identity})
            except KubeError:
                # A writer that does not notice the end of its term must not do harm.
                await asyncio.sleep(0)

    async def work(term: Term) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(WRITERS):
                tasks.create_task(write(term))

    async with await Kube.connect(Path(kubeconfig), unacknowledged_s=LeaseTimes(duration_s).margin_s) as kube:
        lease = Lease(kube, "ns", "l", identity, duration_s=duration_s, watchdog=AlarmWatchdog())
        leading = asyncio.ensure_future(lease.lead(work))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leading.cancel)
        await asyncio.wait([leading])


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
