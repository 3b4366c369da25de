"""Fake nodes: their objects, and how many of them are created at once."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from devcluster.api import Api, Object
from devcluster.workloads import READY_ANNOTATION

_AT_ONCE: Final = 64


def node_object(
    name: str,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    extended: Mapping[str, str] | None = None,
    ready: bool = True,
    unschedulable: bool = False,
) -> Object:
    """A node as its kubelet would register it, with its status."""
    resources = {"cpu": cpu, "memory": memory, "pods": str(pods), **(extended or {})}
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": "KubeletReady" if ready else "KubeletNotReady",
        "message": "a fake kubelet posts ready status" if ready else "told not to be ready",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                **(labels or {}),
            },
            "annotations": {} if ready else {READY_ANNOTATION: "false"},
        },
        "spec": {"taints": [dict(taint) for taint in taints], "unschedulable": unschedulable},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [condition],
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                **dict.fromkeys(
                    ("machineID", "systemUUID", "bootID", "osImage", "kubeProxyVersion", "kernelVersion"), ""
                ),
                "containerRuntimeVersion": "kwok",
                "kubeletVersion": "kwok",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    }


def names(count: int) -> list[str]:
    """`node-0` and so on, with leading zeros, so that they sort by number."""
    width = len(str(max(count - 1, 0)))
    return [f"node-{number:0{width}}" for number in range(count)]


async def create_nodes(api: Api, nodes: Iterable[Object]) -> None:
    """Create all of them, many at once."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def create(node: Object) -> None:
        async with limit:
            await api.post("/api/v1/nodes", node)

    async with asyncio.TaskGroup() as group:
        for node in nodes:
            group.create_task(create(node))


def is_usable(node: Object) -> bool:
    """Whether it is Ready and no longer has the taint that every new node gets at first."""
    conditions = node.get("status", {}).get("conditions") or []
    taints = node.get("spec", {}).get("taints") or []
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and all(taint["key"] != "node.kubernetes.io/not-ready" for taint in taints)
