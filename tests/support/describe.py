"""Describe a test's namespace, for the message of a test that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from devcluster.api import ApiFailure, Object
from groups.contract import GROUP_LABEL, SIZE_LABEL

#: So many lines of each process of Fluence about the namespace.
_LOG_LINES: Final = 15

if TYPE_CHECKING:
    from tests.support.world import World


async def state(world: World) -> str:
    """Nodes, pods, groups, events and the end of each log of Fluence, one line each."""
    lines = [f"namespace {world.namespace} of cluster {world.cluster.name}:"]
    nodes = await world.api.items("/api/v1/nodes", labelSelector=f"devcluster/test={world.namespace}")
    lines += map(_node, nodes)
    lines += [line for pod in await world.pods() for line in _pod(pod)]
    try:
        lines += map(_group, await world.pod_groups())
    except ApiFailure as failure:
        lines.append(f"  no PodGroups: {failure}")
    lines += map(_event, await world.events())
    for name in ("webhook", "controller", "scheduler"):
        lines += _log(world, name)
    return "\n".join(lines)


def _log(world: World, name: str) -> list[str]:
    try:
        text = world.cluster.process(name).log.read_text(errors="replace")
    except OSError as error:
        return [f"  no log of {name}: {error}"]
    lines = [line for line in text.splitlines() if world.namespace in line or '"level":"error"' in line]
    return [f"  {name}: {line}" for line in lines[-_LOG_LINES:]]


def _node(node: Object) -> str:
    ready = [c["status"] for c in node["status"].get("conditions") or [] if c["type"] == "Ready"]
    taints = [f"{t['key']}:{t['effect']}" for t in node["spec"].get("taints") or []]
    return (
        f"  node {node['metadata']['name']} {node['status']['allocatable']} "
        f"Ready={ready} taints={taints} unschedulable={node['spec'].get('unschedulable', False)}"
    )


def _pod(pod: Object) -> list[str]:
    labels = pod["metadata"].get("labels") or {}
    first = (
        f"  pod {pod['metadata']['name']} node={pod['spec'].get('nodeName')} {pod['status'].get('phase')} "
        f"scheduler={pod['spec'].get('schedulerName')} "
        f"group={labels.get(GROUP_LABEL)} size={labels.get(SIZE_LABEL)}"
    )
    return [first] + [
        f"      {c['type']}={c['status']} {c.get('reason', '')} {c.get('message', '')}"
        for c in pod["status"].get("conditions") or []
        if c["status"] != "True"
    ]


def _group(group: Object) -> str:
    return f"  PodGroup {group['metadata']['name']} {group.get('spec')} {group.get('status')}"


def _event(event: Object) -> str:
    return (
        f"  event {event.get('reason')} on {event['regarding'].get('kind')} {event['regarding'].get('name')} "
        f"by {event.get('reportingController')}: {event.get('note')}"
    )
