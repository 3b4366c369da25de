"""`fluence controller`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluence.commands.options import with_settings
from fluence.settings import ControllerSettings

if TYPE_CHECKING:
    from fluence.probes import Probes


@with_settings(ControllerSettings)
def controller(settings: ControllerSettings) -> None:
    """Keep a PodGroup for each group of pods: make it, count its members, delete it at the end.

    Several may run: one leads by a Lease, the others wait.

    \b
    In a cluster:     fluence controller --namespace fluence-system
    On this machine:  fluence controller --kubeconfig ~/.kube/config --log-level debug
    """
    # Imported here: kubernetes_asyncio would slow down `fluence label` and `fluence version`.
    import controller.settings
    from controller.process import ControllerProcess
    from fluence.commands.process import identity, run_process
    from groups.workloads.rules import read_rules
    from kube.session import Kube
    from kube.term import LeaseTimes
    from kube.watchdog import AlarmWatchdog

    told = controller.settings.ControllerSettings(
        identity=identity(),
        kubeconfig=settings.kubeconfig,
        namespace=settings.namespace,
        scheduler_name=settings.scheduler_name,
        lease_name=settings.controller_lease,
        lease_duration_s=settings.lease_seconds,
    )

    rules = read_rules(settings.rules)

    async def work(probes: Probes) -> None:
        # What the kernel still sends when a write was given up must not outlive the lease.
        margin_s = LeaseTimes(settings.lease_seconds).margin_s
        async with await Kube.connect(
            settings.kubeconfig, user_agent="fluence-controller", unacknowledged_s=margin_s
        ) as kube:
            one = ControllerProcess(kube, told, rules=rules, watchdog=AlarmWatchdog())
            probes.not_ready = one.not_ready
            await one.run()

    run_process("controller", settings, work)
