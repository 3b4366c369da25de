"""A test's part of a cluster: its namespace and nodes, the objects that it creates, and what it waits for.

    async def test_a_gang_is_bound_whole(world):
        await world.node("a", cpu="4")
        await world.gang("g", 3)
        await world.until_bound("g", 3)

Owns: creating and observing objects as an administrator. Does not own: their content (`objects`).
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from devcluster.api import Api, ApiFailure, Object
from devcluster.cluster import RunningCluster
from devcluster.nodes import node_object
from devcluster.workloads import READY_ANNOTATION, Outcome, run_annotations
from groups.contract import GROUP_LABEL, POD_GROUP_API_VERSION
from tests.support import describe, objects
from tests.support.history import History

T = TypeVar("T")

#: "Soon" on a machine that is busy with other tests.
SOON_S: Final = 30.0
_POLL_S: Final = 0.1
_SETUP_S: Final = 30.0

_COLLECTIONS: Final = {
    "Pod": "pods",
    "Service": "services",
    "ConfigMap": "configmaps",
    "Job": "jobs",
    "CronJob": "cronjobs",
    "Deployment": "deployments",
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "PodGroup": "podgroups",
    "PodDisruptionBudget": "poddisruptionbudgets",
}


class World:
    """One namespace and the nodes that only its pods can use."""

    def __init__(self, cluster: RunningCluster, api: Api, namespace: str) -> None:
        self.cluster = cluster
        self.api = api
        self.namespace = namespace

    # Nodes

    async def add_node(
        self,
        name: str,
        *,
        cpu: str = "4",
        memory: str = "8Gi",
        pods: int = 110,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
        extended: Mapping[str, str] | None = None,
        ready: bool = True,
        unschedulable: bool = False,
    ) -> str:
        """Add a node for this test alone; its real name (`node_name(name)`)."""
        real = self.node_name(name)
        await self.api.post(
            "/api/v1/nodes",
            node_object(
                real,
                cpu=cpu,
                memory=memory,
                pods=pods,
                labels={objects.TEST_KEY: self.namespace, **(labels or {})},
                taints=[objects.taint_of(self.namespace), *taints],
                extended=extended,
                ready=ready,
                unschedulable=unschedulable,
            ),
        )
        return real

    async def node(self, name: str, *, ready: bool = True, **more: Any) -> str:
        """Add a node as `add_node` does, and wait until it can be used; its real name."""
        real = await self.add_node(name, ready=ready, **more)
        if ready:
            await self.until_ready(name)
        return real

    def node_name(self, name: str) -> str:
        """The cluster-wide name of the node that this test calls `name`."""
        return f"{self.namespace}-{name}"

    async def until_ready(self, name: str) -> None:
        """Wait until a node is Ready and no longer has the taint of new nodes."""

        async def usable() -> bool:
            node = await self.api.get(self._node(name))
            taints = node["spec"].get("taints") or []
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])
            return ready and not any(t["key"] == "node.kubernetes.io/not-ready" for t in taints)

        await self.wait_for(usable, what=f"node {name} becomes usable")

    async def set_ready(self, name: str, ready: bool) -> None:
        """Let the fake kubelet of a node start or stop (status Unknown is set by `patch_node_status`)."""
        value = "true" if ready else "false"
        await self.patch_node(name, {"metadata": {"annotations": {READY_ANNOTATION: value}}})
        if ready:
            await self.until_ready(name)
        else:
            await self.patch_node_status(name, {"conditions": [{"type": "Ready", "status": "False"}]})

    async def patch_node(self, name: str, patch: Object) -> Object:
        """Change a node's labels, taints, `unschedulable` and so on."""
        return await self.api.patch(self._node(name), patch, "strategic")

    async def patch_node_status(self, name: str, status: Object) -> Object:
        """Change a node's allocatable resources or conditions."""
        return await self.api.patch(f"{self._node(name)}/status", {"status": status}, "strategic")

    async def delete_node(self, name: str) -> None:
        """Delete a node."""
        await self.api.delete(self._node(name))

    def _node(self, name: str) -> str:
        return f"/api/v1/nodes/{self.node_name(name)}"

    # Objects

    def pod(self, name: str, **more: Any) -> Object:
        """A bare pod for `create`; see `objects.pod_spec` and `objects.template` for `more`."""
        return objects.pod(self.namespace, name, **more)

    def job(self, name: str, parallelism: int = 1, completions: int | None = None, **more: Any) -> Object:
        """A Job for `create`."""
        return objects.job(self.namespace, name, parallelism, completions, **more)

    def replicated(self, kind: str, name: str, replicas: int, **more: Any) -> Object:
        """A Deployment, ReplicaSet or StatefulSet for `create`."""
        return objects.replicated(self.namespace, kind, name, replicas, **more)

    async def create(self, *wanted: Object) -> list[Object]:
        """Create objects in this order; returns them as the API server stored them."""
        return [await self.api.post(self.path(body["kind"], api=body["apiVersion"]), body) for body in wanted]

    async def gang(self, name: str, size: int, *, count: int | None = None, **more: Any) -> list[str]:
        """Create `count` (or `size`) pods with both labels, and return their names."""
        pods = [
            self.pod(f"{name}-{number}", group=name, size=size, **more)
            for number in range(size if count is None else count)
        ]
        await self.create(*pods)
        return [pod["metadata"]["name"] for pod in pods]

    async def create_pod_group(self, name: str, min_member: int, **spec: Any) -> Object:
        """Create a PodGroup as a user."""
        (made,) = await self.create(objects.pod_group(name, min_member, **spec))
        return made

    async def delete(self, kind: str, name: str, **options: Any) -> None:
        """Delete one object; a pod disappears once its fake kubelet has confirmed it."""
        await self.api.delete(self.path(kind, name), **options)

    async def patch(self, kind: str, name: str, body: Any, *, patch: str = "merge", sub: str = "") -> Object:
        """Patch one object, or its subresource `sub`."""
        return await self.api.patch(self.path(kind, name) + (f"/{sub}" if sub else ""), body, patch)

    async def finish(self, pod: str, outcome: Outcome = "succeed") -> None:
        """End a running pod now."""
        annotations = run_annotations("0s", outcome)
        await self.patch("Pod", pod, {"metadata": {"annotations": annotations}})

    def path(self, kind: str, name: str = "", *, api: str | None = None) -> str:
        """The path of a collection in the test's namespace, or of one object."""
        version = api or _version(kind)
        base = f"/api/{version}" if version == "v1" else f"/apis/{version}"
        collection = f"{base}/namespaces/{self.namespace}/{_COLLECTIONS[kind]}"
        return f"{collection}/{name}" if name else collection

    # What is there

    async def pods(self, group: str | None = None) -> list[Object]:
        """All pods of the test, or the members of one group, by name."""
        params = {} if group is None else {"labelSelector": f"{GROUP_LABEL}={group}"}
        found = await self.api.items(self.path("Pod"), **params)
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    async def get(self, kind: str, name: str) -> Object:
        """One object; ApiFailure with status 404 where there is none."""
        return await self.api.get(self.path(kind, name))

    async def bound(self, group: str) -> int:
        """How many members of a group have a node."""
        return sum(1 for pod in await self.pods(group) if pod["spec"].get("nodeName"))

    async def placement(self, group: str) -> dict[str, str | None]:
        """Each member's node, by the short name that this test gave it."""
        prefix = f"{self.namespace}-"
        return {
            pod["metadata"]["name"]: (pod["spec"].get("nodeName") or "").removeprefix(prefix) or None
            for pod in await self.pods(group)
        }

    async def pod_group(self, name: str) -> Object | None:
        """A PodGroup, or None where there is none."""
        return await self.api.find(self.path("PodGroup", name))

    async def pod_groups(self) -> list[Object]:
        """All PodGroups of the test."""
        return await self.api.items(self.path("PodGroup"))

    async def phase(self, name: str) -> str | None:
        """The phase of a PodGroup."""
        group = await self.pod_group(name)
        phase: str | None = (group or {}).get("status", {}).get("phase")
        return phase

    async def events(self, regarding: str | None = None, reason: str | None = None) -> list[Object]:
        """Events (events.k8s.io/v1) of the test, about one object or for one reason."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        return [
            event
            for event in await self.api.items(path)
            if regarding in (None, event["regarding"].get("name")) and reason in (None, event.get("reason"))
        ]

    async def condition(self, pod: str, kind: str = "PodScheduled") -> Object | None:
        """A condition of a pod."""
        conditions = (await self.get("Pod", pod))["status"].get("conditions") or []
        return next((one for one in conditions if one["type"] == kind), None)

    async def group_condition(self, name: str, kind: str = "Scheduled") -> Object | None:
        """A condition of a PodGroup."""
        group = await self.pod_group(name) or {}
        conditions = group.get("status", {}).get("conditions") or []
        return next((one for one in conditions if one["type"] == kind), None)

    # Waiting

    async def wait_for(
        self,
        condition: Callable[[], Awaitable[T]],
        *,
        deadline_s: float = SOON_S,
        what: str = "the condition holds",
    ) -> T:
        """Poll until the answer is true, and return it; fail and describe the namespace at the deadline."""
        end_s = time.monotonic() + deadline_s
        while True:
            if answer := await condition():
                return answer
            if time.monotonic() > end_s:
                raise AssertionError(f"not within {deadline_s:.0f} s: {what}\n{await describe.state(self)}")
            await asyncio.sleep(_POLL_S)

    async def until_bound(self, group: str, count: int, *, deadline_s: float = SOON_S) -> None:
        """Wait until exactly `count` members have a node."""

        async def enough() -> bool:
            return await self.bound(group) == count

        await self.wait_for(enough, deadline_s=deadline_s, what=f"{count} members of {group} are bound")

    async def until_phase(self, group: str, *phases: str, deadline_s: float = SOON_S) -> None:
        """Wait until a PodGroup has one of these phases."""

        async def reached() -> bool:
            return await self.phase(group) in phases

        await self.wait_for(reached, deadline_s=deadline_s, what=f"{group} is {' or '.join(phases)}")

    async def until_gone(self, kind: str, name: str, *, deadline_s: float = SOON_S) -> None:
        """Wait until an object is no longer there."""

        async def gone() -> bool:
            return await self.api.find(self.path(kind, name)) is None

        await self.wait_for(gone, deadline_s=deadline_s, what=f"{kind} {name} is gone")

    async def until_refused(self, group: str, *, deadline_s: float = SOON_S) -> str:
        """Wait until every member says Unschedulable (so none is bound); the message of the first."""

        async def refused() -> str:
            conditions: list[Object] = [
                next((c for c in pod["status"].get("conditions") or [] if c["type"] == "PodScheduled"), {})
                for pod in await self.pods(group)
            ]
            if conditions and all(
                c.get("status") == "False" and c.get("reason") == "Unschedulable" for c in conditions
            ):
                return str(conditions[0].get("message") or "no message")
            return ""

        return await self.wait_for(
            refused, deadline_s=deadline_s, what=f"every pod of {group} is Unschedulable"
        )

    @contextlib.asynccontextmanager
    async def history(self) -> AsyncIterator[History]:
        """Record all events of the test's pods in the block, from a watch."""
        async with History.of(self.api, self.path("Pod")) as history:
            yield history


def _version(kind: str) -> str:
    if kind in {"Pod", "Service", "ConfigMap"}:
        return "v1"
    if kind == "PodGroup":
        return POD_GROUP_API_VERSION
    groups = {"Job": "batch/v1", "CronJob": "batch/v1", "PodDisruptionBudget": "policy/v1"}
    return groups.get(kind, "apps/v1")


@contextlib.asynccontextmanager
async def world_in(cluster: RunningCluster) -> AsyncIterator[World]:
    """A fresh namespace in this cluster, removed afterwards together with its nodes."""
    async with cluster.api() as api:
        namespace = f"t-{secrets.token_hex(4)}"
        await api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        world = World(cluster, api, namespace)
        try:
            await _until_pods_may_be_made(world)
            yield world
        finally:
            await _clear(api, namespace)


async def _until_pods_may_be_made(world: World) -> None:
    account = f"/api/v1/namespaces/{world.namespace}/serviceaccounts/default"

    async def there() -> bool:
        return await world.api.find(account) is not None

    await world.wait_for(there, deadline_s=_SETUP_S, what="the namespace gets its service account")


async def _clear(api: Api, namespace: str) -> None:
    """Remove the namespace, then the nodes: no controller creates pods in a namespace that is going."""
    path = f"/api/v1/namespaces/{namespace}"
    with contextlib.suppress(ApiFailure):
        await api.delete(path)
        # With force: the fake kubelets of these pods are removed together with their nodes.
        await api.delete_collection(f"{path}/pods", gracePeriodSeconds=0)
    await api.delete_collection("/api/v1/nodes", f"{objects.TEST_KEY}={namespace}")
