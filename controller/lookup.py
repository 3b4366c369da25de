"""Find the object behind a pod: in the caches, else by one request.

Owns: which kinds are kept in caches, and the way from an object to the one that it belongs to, as from a
ReplicaSet to its Deployment. Does not own: what the object means (`controller.owners`).

Kinds of Kubernetes itself are cached from the start. The kind of a custom resource need not exist at all:
its cache begins with the first pod that names such an owner, for then it does, and in the version
that the pod names.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
import structlog

from controller.objects import AnyWorkload, Workload
from controller.owners import Owner, describe, gone_owner, unknown_owner
from groups.contract import SCHEDULER_NAME
from groups.objects import Key, OwnerReference
from groups.workloads.rules import Rule, Rules
from kube.errors import Forbidden, NotFound
from kube.reflector import Collection, Reflector
from kube.session import Kube

_REMEMBERED_GONE: Final = 10_000

log = structlog.get_logger(__name__)


def _base(rule: Rule, version: str) -> str:
    return f"/apis/{rule.group}/{version}" if rule.group else f"/api/{version}"


def _kind_of(rule: Rule) -> type[Workload] | type[AnyWorkload]:
    return Workload if rule.is_built_in else AnyWorkload


class OwnerLookup:
    """Caches of all kinds that a rule counts. `on_change` hears the uid of an object that changed."""

    def __init__(
        self,
        kube: Kube,
        rules: Rules,
        on_change: Callable[[str], None],
        scheduler_name: str = SCHEDULER_NAME,
    ) -> None:
        self._kube = kube
        self._rules = rules
        self._on_change = on_change
        self._scheduler_name = scheduler_name
        self._reflectors = {
            (rule.group, rule.kind): self._reflector(rule, rule.versions[0])
            for rule in rules.all
            if rule.is_counted and rule.is_built_in
        }
        self._begun: asyncio.Queue[Reflector[Any]] = asyncio.Queue()
        self._refused: set[tuple[str, str]] = set()
        # An object that is gone never comes back under the same uid.
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._at_start = tuple(self._reflectors.values())

    @property
    def reflectors(self) -> list[Reflector[Any]]:
        """The caches that are needed from the start, to be run."""
        return list(self._at_start)

    async def run(self) -> None:
        """Keep the caches of custom resources, each from when it is first needed, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                reflector = await self._begun.get()
                tasks.create_task(reflector.run(), name=f"reflector {reflector.collection.path}")

    async def find(self, namespace: str, reference: OwnerReference) -> Owner:
        """The owner that `reference` leads to; for a Deployment's ReplicaSet that is the Deployment."""
        rule = self._rules.counted_owner(reference)
        if rule is None:
            return unknown_owner(reference)
        try:
            workload = self._cached(rule, namespace, reference) or await self._get(rule, namespace, reference)
        except Forbidden as error:
            if rule.is_built_in:
                raise
            # Pods that carry their size do not need the object: they must not wait for a right on it.
            self._tell_once(rule, error)
            return unknown_owner(reference)
        if workload is None:
            return gone_owner(reference)
        behind = workload.metadata.controller
        if behind is not None and self._rules.behind(rule, behind) is not None:
            return await self.find(namespace, behind)
        return describe(rule, reference, workload, self._scheduler_name)

    def _reflector(self, rule: Rule, version: str) -> Reflector[Any]:
        collection = Collection(f"{_base(rule, version)}/{rule.resource}")
        reflector: Reflector[Any] = Reflector(self._kube, collection, _kind_of(rule))
        reflector.subscribe(self._changed)
        return reflector

    def _cached(self, rule: Rule, namespace: str, reference: OwnerReference) -> Any:
        reflector = self._reflectors.get((rule.group, rule.kind))
        if reflector is None:
            reflector = self._reflector(rule, _version(rule, reference))
            self._reflectors[rule.group, rule.kind] = reflector
            self._begun.put_nowait(reflector)
        found = reflector.items.get(Key(f"{namespace}/{reference.name}"))
        return found if found is not None and found.metadata.uid == reference.uid else None

    async def _get(self, rule: Rule, namespace: str, reference: OwnerReference) -> Any:
        """Ask the server: a cache may be a moment behind that of the pods."""
        if reference.uid in self._gone:
            return None
        path = f"{_base(rule, _version(rule, reference))}/namespaces/{namespace}/{rule.resource}"
        try:
            found = await self._kube.get_as(f"{path}/{reference.name}", _kind_of(rule))
        except NotFound:
            self._forget(reference.uid)
            return None
        if found.metadata.uid != reference.uid:
            # Another object has taken the name (case C53).
            self._forget(reference.uid)
            return None
        return found

    def _tell_once(self, rule: Rule, error: Forbidden) -> None:
        if (rule.group, rule.kind) not in self._refused:
            self._refused.add((rule.group, rule.kind))
            log.warning(
                "owners are not counted: give the controller get, list and watch on them",
                kind=rule.kind,
                resource=f"{rule.resource}.{rule.group}",
                error=str(error),
            )

    def _forget(self, uid: str) -> None:
        self._gone[uid] = None
        if len(self._gone) > _REMEMBERED_GONE:
            self._gone.popitem(last=False)

    def _changed(self, old: Any, new: Any) -> None:
        if new is None and old is not None:
            self._forget(old.metadata.uid)
            self._on_change(old.metadata.uid)
        elif new is not None and (old is None or _telling(old) != _telling(new)):
            self._on_change(new.metadata.uid)


def _version(rule: Rule, reference: OwnerReference) -> str:
    """The version that a pod names, where the rule knows it: it is one that the server has."""
    version = reference.api_version.rpartition("/")[2]
    return version if version in rule.versions else rule.versions[0]


def _telling(workload: Workload | AnyWorkload) -> Mapping[str, Any]:
    """What of a workload can change a plan; its counters of ready pods and the like cannot."""
    meta, status = workload.metadata, workload.status
    return {
        "spec": workload.spec,
        "status": msgspec.structs.asdict(status) if isinstance(status, msgspec.Struct) else status,
        "labels": meta.labels,
        "going": meta.deletion_timestamp,
        "owner": meta.controller,
    }
