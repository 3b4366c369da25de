"""Find the object behind a pod: in the caches, else by one request.

Owns: which kinds are kept in caches (those that a rule counts), and the way from a ReplicaSet to its
Deployment. Does not own: what the object means (`controller.owners`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from controller.objects import Workload
from controller.owners import Owner, describe, gone_owner, unknown_owner
from fluence.workloads.rules import Rule, Rules
from fluence.workloads.shapes import OwnerRef
from kube.errors import NotFound
from kube.objects import Key, OwnerReference
from kube.reflector import Collection, Reflector
from kube.session import Kube

_REMEMBERED_GONE: Final = 10_000


def _base(rule: Rule) -> str:
    return f"/apis/{rule.api_version}" if rule.group else f"/api/{rule.version}"


def _path(rule: Rule, namespace: str, name: str) -> str:
    return f"{_base(rule)}/namespaces/{namespace}/{rule.resource}/{name}"


class OwnerLookup:
    """Caches of all kinds that a rule counts. `on_change` hears the uid of an object that changed."""

    def __init__(self, kube: Kube, rules: Rules, on_change: Callable[[str], None]) -> None:
        self._kube = kube
        self._rules = rules
        self._on_change = on_change
        self._reflectors = {(rule.group, rule.kind): self._reflector(kube, rule) for rule in _counted(rules)}
        # An object that is gone never comes back under the same uid.
        self._gone: OrderedDict[str, None] = OrderedDict()

    @property
    def reflectors(self) -> list[Reflector[Workload]]:
        """The caches, to be run."""
        return list(self._reflectors.values())

    async def find(self, namespace: str, reference: OwnerReference) -> Owner:
        """The owner that `reference` leads to; for a Deployment's ReplicaSet that is the Deployment."""
        rule = self._rules.counted_owner(
            OwnerRef(reference.api_version, reference.kind, reference.name, reference.uid)
        )
        if rule is None:
            return unknown_owner(reference)
        workload = self._cached(rule, namespace, reference) or await self._get(rule, namespace, reference)
        if workload is None:
            return gone_owner(reference)
        behind = workload.metadata.controller
        if rule.pods_belong_to is not None and behind is not None and behind.kind == rule.pods_belong_to.kind:
            return await self.find(namespace, behind)
        return describe(rule, reference, workload)

    def _reflector(self, kube: Kube, rule: Rule) -> Reflector[Workload]:
        reflector = Reflector(kube, Collection(f"{_base(rule)}/{rule.resource}"), Workload)
        reflector.subscribe(self._changed)
        return reflector

    def _cached(self, rule: Rule, namespace: str, reference: OwnerReference) -> Workload | None:
        found = self._reflectors[rule.group, rule.kind].items.get(Key(f"{namespace}/{reference.name}"))
        return found if found is not None and found.metadata.uid == reference.uid else None

    async def _get(self, rule: Rule, namespace: str, reference: OwnerReference) -> Workload | None:
        """Ask the server: a cache may be a moment behind that of the pods."""
        if reference.uid in self._gone:
            return None
        try:
            found = await self._kube.get_as(_path(rule, namespace, reference.name), Workload)
        except NotFound:
            self._forget(reference.uid)
            return None
        if found.metadata.uid != reference.uid:
            # Another object has taken the name (case C53).
            self._forget(reference.uid)
            return None
        return found

    def _forget(self, uid: str) -> None:
        self._gone[uid] = None
        if len(self._gone) > _REMEMBERED_GONE:
            self._gone.popitem(last=False)

    def _changed(self, old: Workload | None, new: Workload | None) -> None:
        if new is None and old is not None:
            self._forget(old.metadata.uid)
            self._on_change(old.metadata.uid)
        elif new is not None and (old is None or _telling(old) != _telling(new)):
            self._on_change(new.metadata.uid)


def _counted(rules: Rules) -> Iterator[Rule]:
    return (rule for rule in rules.all if rule.named_by == "object")


def _telling(workload: Workload) -> Mapping[str, Any]:
    """What of a workload can change a plan; its counters of ready pods and the like cannot."""
    meta = workload.metadata
    return {
        "spec": workload.spec,
        "status": msgspec.structs.asdict(workload.status),
        "labels": meta.labels,
        "going": meta.deletion_timestamp,
        "owner": meta.controller,
    }
