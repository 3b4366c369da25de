"""`fluence scheduler`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluence.commands.options import with_settings
from fluence.settings import SchedulerSettings

if TYPE_CHECKING:
    from fluence.probes import Probes


@with_settings(SchedulerSettings)
def scheduler(settings: SchedulerSettings) -> None:
    """Place whole groups on nodes and bind their pods.

    Several may run: one leads by a Lease, the others wait. Each can be killed at any moment; the next leader
    finds everything in the API server.

    \b
    In a cluster:     fluence scheduler --namespace fluence-system
    On this machine:  fluence scheduler --kubeconfig ~/.kube/config --log-level debug
    """
    # Imported here: numpy and kubernetes_asyncio would slow down `fluence label` and `fluence version`.
    import scheduler.settings
    from fluence.commands.process import identity, run_process
    from kube.session import Kube
    from kube.term import LeaseTimes
    from kube.watchdog import AlarmWatchdog
    from scheduler.process import SchedulerProcess

    told = scheduler.settings.SchedulerSettings(
        identity=identity(),
        kubeconfig=settings.kubeconfig,
        namespace=settings.namespace,
        scheduler_name=settings.scheduler_name,
        lease_name=settings.scheduler_lease,
        lease_duration_s=settings.lease_seconds,
    )

    async def work(probes: Probes) -> None:
        # What the kernel still sends when a write was given up must not outlive the lease.
        margin_s = LeaseTimes(settings.lease_seconds).margin_s
        async with await Kube.connect(
            settings.kubeconfig, user_agent="fluence-scheduler", unacknowledged_s=margin_s
        ) as kube:
            one = SchedulerProcess(kube, told, watchdog=AlarmWatchdog())
            probes.not_ready = one.not_ready
            await one.run()

    run_process("scheduler", settings, work)
