"""The demo, step by step; exit code 0 only if every step was observed."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

from devcluster import cluster as clusters
from devcluster.api import Api
from devcluster.demo import observe, show
from devcluster.nodes import create_nodes, node_object
from devcluster.progress import to_stderr
from devcluster.spec import ClusterSpec
from groups.contract import GROUP_LABEL, SCHEDULER_NAME, SIZE_LABEL
from groups.errors import FluenceError

_MANIFESTS: Final = Path(__file__).with_name("manifests.yaml")
_SOON_S: Final = 30.0
_MICROSECONDS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
TRAIN, BIG, TRIO = "fluence-group-default-train", "fluence-group-default-too-big", "trio"

T = TypeVar("T")


class NotSeen(FluenceError):
    """Something that the demo promises did not happen in time."""


async def _until(what: str, look: Callable[[], Awaitable[T]], deadline_s: float = _SOON_S) -> T:
    """Call `look` until it returns something; raises NotSeen after the deadline."""
    end_s = time.monotonic() + deadline_s
    while not (found := await look()):
        if time.monotonic() > end_s:
            raise NotSeen(f"{what} (waited {deadline_s:.0f} s)")
        await asyncio.sleep(0.1)
    show.seen(what)
    return found


async def story(cluster: clusters.RunningCluster) -> None:
    """Everything that the demo shows, in order."""
    async with cluster.api() as api:
        await _labels(cluster, api)
        await _groups(api)
        await _who_scheduled(api)
        await _why_it_waits(api)
        await _room_appears(api)
        await _groups_go(api)


async def _labels(cluster: clusters.RunningCluster, api: Api) -> None:
    show.title(
        1,
        "A Job that asks for Fluence gets two labels; the same Job for another scheduler gets none",
        f"kubectl apply -f {_MANIFESTS.name}",
    )
    cluster.kubectl("apply", "-f", _MANIFESTS)
    ours = await observe.template_labels(api, "train")
    show.labels("train", ours)
    if ours != {GROUP_LABEL: TRAIN, SIZE_LABEL: "4"}:
        raise NotSeen(f"the webhook's labels on job/train; it has {ours}")
    show.seen("the webhook added group name and size to job/train")
    theirs = await observe.template_labels(api, "train-default")
    show.labels("train-default", theirs)
    if theirs:
        raise NotSeen(f"job/train-default left alone; it has {theirs}")
    show.seen("job/train-default was left alone")


async def _groups(api: Api) -> None:
    show.title(
        2,
        "The controller makes a PodGroup for each gang",
        "kubectl get podgroups.scheduling.x-k8s.io -o wide",
    )

    async def stamped() -> list[observe.Group]:
        found = await observe.groups(api)
        good = {one.name for one in found if _MICROSECONDS.fullmatch(one.created)}
        return found if good >= {TRAIN, BIG, TRIO} else []

    show.groups(await _until("three PodGroups, each stamped to the microsecond", stamped))


async def _who_scheduled(api: Api) -> None:
    show.title(
        3,
        "Each gang starts whole; events say who scheduled it",
        "kubectl get events -o custom-columns=R:.reason,C:.reportingComponent,M:.message",
    )

    async def all_told() -> list[observe.Scheduled]:
        found = await observe.scheduled(api)
        by: dict[str, set[str]] = {}
        for one in found:
            by.setdefault(one.component, set()).add(one.pod.rpartition("-")[0])
        ours = sum(1 for one in found if one.component == SCHEDULER_NAME)
        return found if ours >= 7 and {"train", "trio"} <= by[SCHEDULER_NAME] and len(found) >= 11 else []

    found = await _until("7 pods scheduled by fluence, 4 by the default scheduler", all_told)
    show.scheduled(found)
    wrong = [one for one in found if one.pod.startswith("train-default") == (one.component == SCHEDULER_NAME)]
    if wrong:
        raise NotSeen(f"each pod scheduled by the scheduler that it names; {wrong[0]}")
    if any(one.pod.startswith("too-big") for one in found):
        raise NotSeen("no pod of the gang that does not fit is bound")


async def _why_it_waits(api: Api) -> None:
    show.title(
        4, "A gang that does not fit holds nothing and says why", "kubectl describe pod -l job-name=too-big"
    )

    async def told() -> str:
        group = next((one for one in await observe.groups(api) if one.name == BIG), None)
        message = await observe.pod_condition(api, BIG)
        return message if group is not None and "10" in message and "cpu" in message and group.reason else ""

    show.reason("too-big", await _until("the reason, with numbers, on pods and group", told))
    bound, members = await observe.members_bound(api, BIG)
    if (bound, members) != (0, 10):
        raise NotSeen(f"0 of 10 members bound; it is {bound} of {members}")
    show.seen("0 of its 10 members are bound")


async def _room_appears(api: Api) -> None:
    show.title(5, "It starts once there is room for all its members", "kubectl apply -f another-node.yaml")
    await create_nodes(api, [node_object("another-node", cpu="16", memory="32Gi")])

    async def whole() -> bool:
        return (await observe.members_bound(api, BIG))[0] == 10

    await _until("all 10 members of too-big are bound", whole)
    show.scheduled([one for one in await observe.scheduled(api) if one.pod.startswith("too-big")])


async def _groups_go(api: Api) -> None:
    show.title(6, "Groups that are done are deleted", "kubectl get podgroups.scheduling.x-k8s.io --watch")

    async def none_left() -> bool:
        return not await observe.groups(api)

    await _until("no PodGroup is left", none_left, deadline_s=60.0)


def main() -> int:
    """Run the demo; the exit code of the process."""
    keep = os.environ.get("KEEP", "") not in ("", "0")
    name = "demo" if keep else f"demo-{os.getpid()}"
    spec = ClusterSpec(name=name, nodes=4, cpu="4", memory="8Gi", owner_pid=None if keep else os.getpid())
    started_s = time.monotonic()
    try:
        cluster = clusters.start(spec, to_stderr)
    except FluenceError as error:
        show.missed(str(error))
        return 1
    code = 1
    try:
        asyncio.run(story(cluster))
        show.console.print(
            f"\n[bold green]All of it was seen[/bold green], {time.monotonic() - started_s:.0f} s."
        )
        code = 0
    except FluenceError as error:
        show.missed(str(error))
        show.console.print(
            f"logs: {cluster.folder.path}" if keep else "KEEP=1 make demo leaves the cluster up to look at"
        )
    finally:
        if keep:
            _what_next(cluster)
        else:
            cluster.down()
    return code


def _what_next(cluster: clusters.RunningCluster) -> None:
    show.console.print(
        "\nThe cluster is up. What to type next:\n"
        f"  export KUBECONFIG={cluster.kubeconfig}\n"
        "  kubectl apply -f manifests/examples/job.yaml\n"
        "  kubectl get podgroups.scheduling.x-k8s.io -o wide\n"
        "  kubectl get events -o custom-columns=R:.reason,C:.reportingComponent,M:.message\n"
        f"  .venv/bin/python -m devcluster logs scheduler --name {cluster.name}\n"
        f"  .venv/bin/python -m devcluster down --name {cluster.name}",
        highlight=False,
        soft_wrap=True,
    )


if __name__ == "__main__":
    sys.exit(main())
