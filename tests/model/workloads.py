"""Everything beside the scheduler that changes objects in the model: workloads, controllers and kubelets.

Each actor does its work once a second of virtual time unless it is paused: it is late then, as its real
counterpart may be. Owns: what they write. Does not own: the API server (`tests.model.server`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from groups.contract import GROUP_LABEL, ON_STRANDED_ANNOTATION
from tests.model.server import NAMESPACE, ApiServer, Object

#: The cpus of each node; a node that is made anew under its name has the same.
NODE_CPUS: Final = {"a4": 4, "b4": 4, "c2": 2, "d3": 3}
ACTORS: Final = ("job controller", "group controller", "garbage collector", "kubelets", "pod collector")


@dataclass(frozen=True, slots=True)
class Workload:
    """A Job, or pods without an owner.

    `cpus` are those of its members, which repeat. `stable`: a pod that is made again has the same name.
    """

    name: str
    uid: str
    size: int
    cpus: tuple[int, ...]
    timeout_s: int
    priority: int = 0
    on_stranded: str = ""
    is_bare: bool = False
    stable: bool = False


class Workloads:
    """Owners, and the actors that work for them."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._numbers = itertools.count(1)
        #: The workloads that exist, by name. Pods without an owner live on without an entry.
        self.owners: dict[str, Workload] = {}
        #: Every owner's uid by the uid of the PodGroup that was made for it; empty for bare pods.
        self.owner_of_run: dict[str, str] = {}
        #: Workloads without an owner, whose pods are not made again.
        self.bare: dict[str, Workload] = {}
        #: Until when an actor does nothing.
        self.paused_until_s: dict[str, float] = {}

    # What users do

    def add_node(self, name: str, cpus: int | None = None) -> None:
        """A node, with a uid of its own."""
        allocatable = {"cpu": str(cpus or NODE_CPUS[name]), "memory": "64Gi", "pods": "110"}
        status = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]}
        meta = {"name": name, "uid": self._uid("node"), "labels": {"kubernetes.io/hostname": name}}
        self._server.put("nodes", {"metadata": meta, "spec": {}, "status": status})

    def add_foreign_pod(self, name: str, node: str, cpus: int) -> None:
        """A pod that another scheduler has bound."""
        self._put_pod(name, "", cpus, scheduler="other", node=node)

    def create(self, name: str, **wanted: Any) -> None:
        """A workload of this name; it takes the place of one that exists."""
        made = Workload(name, self._uid("job"), **wanted)
        self.owners.pop(name, None)
        self.bare.pop(name, None)
        if made.is_bare:
            self.bare[name] = made
            for number in range(made.size):
                key = f"{NAMESPACE}/{name}-bare-{number}"
                if key not in self._server.objects["pods"]:
                    self._put_pod(f"{name}-bare-{number}", name, made.cpus[number % len(made.cpus)])
        else:
            self.owners[name] = made

    def delete(self, name: str) -> None:
        """Delete a workload; the garbage collector follows. Bare pods are deleted by hand."""
        self.owners.pop(name, None)
        if self.bare.pop(name, None):
            for key, pod in list(self._server.objects["pods"].items()):
                if pod["metadata"]["labels"].get(GROUP_LABEL) == name and not _owner(pod):
                    self._server.delete_pod(key)

    # What controllers do

    def tick(self, now_s: float) -> None:
        """Let every actor that is not paused do what it has to do now."""
        work: dict[str, Callable[[], None]] = {
            "kubelets": self._run_pods,
            "pod collector": self._collect_lost_pods,
            "garbage collector": self._collect_garbage,
            "group controller": self._keep_groups,
            "job controller": self._make_pods,
        }
        for actor in ACTORS:
            if self.paused_until_s.get(actor, 0.0) <= now_s:
                work[actor]()

    def _make_pods(self) -> None:
        for owner in self.owners.values():
            own = [pod for pod in self._pods() if _owner(pod) == owner.uid]
            alive = [pod for pod in own if pod["status"]["phase"] != "Failed" and not _leaves(pod)]
            places = {pod["metadata"]["labels"]["place"] for pod in alive}
            for place in range(owner.size):
                if str(place) not in places:
                    self._make_member(owner, place)

    def _make_member(self, owner: Workload, place: int) -> None:
        cpus = owner.cpus[place % len(owner.cpus)]
        name = f"{owner.name}-{place}" if owner.stable else f"{owner.name}-{place}-{next(self._numbers)}"
        present = self._server.objects["pods"].get(f"{NAMESPACE}/{name}")
        if present is None:
            self._put_pod(name, owner.name, cpus, owner=owner.uid, place=place, priority=owner.priority)
        elif _owner(present) == owner.uid and present["status"]["phase"] == "Failed":
            self._server.delete_pod(f"{NAMESPACE}/{name}")

    def _keep_groups(self) -> None:
        groups = self._server.objects["podgroups"]
        for key, group in list(groups.items()):
            name = group["metadata"]["name"]
            owner = self.owners.get(name)
            made_for = self.owner_of_run[group["metadata"]["uid"]]
            wanted = owner.uid if owner else ("" if name in self.bare else None)
            if made_for != wanted:
                self._server.remove("podgroups", key)
        for made in (*self.owners.values(), *self.bare.values()):
            if f"{NAMESPACE}/{made.name}" not in groups:
                self._make_group(made)

    def _make_group(self, made: Workload) -> None:
        number = next(self._numbers)
        uid = f"run-{number}"
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": made.name, "uid": made.uid}
        annotations = {ON_STRANDED_ANNOTATION: made.on_stranded} if made.on_stranded else {}
        self.owner_of_run[uid] = "" if made.is_bare else made.uid
        meta = {
            "name": made.name,
            "namespace": NAMESPACE,
            "uid": uid,
            "annotations": annotations,
            "ownerReferences": [] if made.is_bare else [owner],
        }
        spec = {"minMember": made.size, "scheduleTimeoutSeconds": made.timeout_s}
        stamp = f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}.000000Z"
        self._server.put("podgroups", {"metadata": meta, "spec": spec, "status": {"creationTime": stamp}})

    def _collect_garbage(self) -> None:
        alive = {owner.uid for owner in self.owners.values()}
        for key, pod in list(self._server.objects["pods"].items()):
            if (owner := _owner(pod)) and owner not in alive:
                self._server.delete_pod(key)

    def _collect_lost_pods(self) -> None:
        for key, pod in list(self._server.objects["pods"].items()):
            node = pod["spec"].get("nodeName")
            if node and node not in self._server.objects["nodes"]:
                self._server.remove("pods", key)

    def _run_pods(self) -> None:
        for key, pod in list(self._server.objects["pods"].items()):
            if pod["spec"].get("nodeName") not in self._server.objects["nodes"]:
                continue
            if _leaves(pod):
                self._server.remove("pods", key)
            elif pod["status"]["phase"] == "Pending":
                pod["status"]["phase"] = "Running"
                self._server.put("pods", pod)

    # Inside

    def _pods(self) -> list[Object]:
        return list(self._server.objects["pods"].values())

    def _uid(self, kind: str) -> str:
        return f"{kind}-{next(self._numbers)}"

    def _put_pod(
        self,
        name: str,
        group: str,
        cpus: int,
        *,
        owner: str = "",
        place: int = 0,
        priority: int = 0,
        scheduler: str = "fluence",
        node: str = "",
    ) -> None:
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": group, "uid": owner, "controller": True}
        labels = {"place": str(place)} | ({GROUP_LABEL: group} if group else {})
        meta = {
            "name": name,
            "namespace": NAMESPACE,
            "uid": self._uid("pod"),
            "labels": labels,
            "ownerReferences": [reference] if owner else [],
        }
        container = {"name": "c", "resources": {"requests": {"cpu": str(cpus)}}}
        spec: dict[str, Any] = {"schedulerName": scheduler, "containers": [container], "priority": priority}
        if node:
            spec["nodeName"] = node
        self._server.put("pods", {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})


def cpus_of(pod: Object) -> int:
    """What a pod of the model asks for."""
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def _owner(pod: Object) -> str:
    return next((str(one["uid"]) for one in pod["metadata"]["ownerReferences"]), "")


def _leaves(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]
