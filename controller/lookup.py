"""Find the object behind a pod: in the caches, else by one request.

Owns: which kinds are kept in caches, and the way from an object to the one that it belongs to, as from a
ReplicaSet to its Deployment. Does not own: what the object means (`controller.owners`).

Kinds of Kubernetes itself are cached from the start. A custom kind need not exist at all: its cache begins
with the first pod that names such an owner, in the version that the pod names.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

import structlog

from controller.objects import BuiltInWorkload, CustomWorkload
from controller.owners import Owner, Workload, deleted_owner, owner_of, read_workload, unknown_owner
from groups.contract import SCHEDULER_NAME
from groups.objects import OwnerReference, key_of
from groups.workloads.rules import Rule, Rules
from kube.errors import Forbidden, NotFound
from kube.reflector import Collection, Reflector
from kube.session import Kube

_MOST_DELETED: Final = 10_000

log = structlog.get_logger(__name__)


def _base(rule: Rule, version: str) -> str:
    return f"/apis/{rule.group}/{version}" if rule.group else f"/api/{version}"


def _wire_kind(rule: Rule) -> type[BuiltInWorkload] | type[CustomWorkload]:
    return BuiltInWorkload if rule.is_built_in else CustomWorkload


class OwnerLookup:
    """Caches of all kinds that a rule counts. `on_change` is called with the uid of a changed object."""

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
        self._begun: asyncio.Queue[Reflector[Workload]] = asyncio.Queue()
        self._refused: set[tuple[str, str]] = set()
        # An object that is deleted never comes back under the same uid.
        self._deleted: OrderedDict[str, None] = OrderedDict()
        self._at_start = tuple(self._reflectors.values())

    @property
    def reflectors(self) -> list[Reflector[Workload]]:
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
            self._log_once(rule, error)
            return unknown_owner(reference)
        if workload is None:
            return deleted_owner(reference)
        behind = workload.metadata.controller
        if behind is not None and self._rules.behind(rule, behind) is not None:
            return await self.find(namespace, behind)
        return owner_of(reference, workload)

    def _reflector(self, rule: Rule, version: str) -> Reflector[Workload]:
        collection = Collection(f"{_base(rule, version)}/{rule.resource}")
        reflector = Reflector(self._kube, collection, _wire_kind(rule), convert=self._reader(rule))
        reflector.subscribe(self._changed)
        return reflector

    def _reader(self, rule: Rule) -> Callable[[Any], Workload]:
        return lambda wire: read_workload(rule, wire, self._scheduler_name)

    def _cached(self, rule: Rule, namespace: str, reference: OwnerReference) -> Workload | None:
        reflector = self._reflectors.get((rule.group, rule.kind))
        if reflector is None:
            reflector = self._reflector(rule, _version(rule, reference))
            self._reflectors[rule.group, rule.kind] = reflector
            self._begun.put_nowait(reflector)
        found = reflector.items.get(key_of(namespace, reference.name))
        return found if found is not None and found.metadata.uid == reference.uid else None

    async def _get(self, rule: Rule, namespace: str, reference: OwnerReference) -> Workload | None:
        """Ask the server: a cache may be a moment behind that of the pods."""
        if reference.uid in self._deleted:
            return None
        path = f"{_base(rule, _version(rule, reference))}/namespaces/{namespace}/{rule.resource}"
        try:
            found = await self._kube.get_as(f"{path}/{reference.name}", _wire_kind(rule))
        except NotFound:
            self._remember_deleted(reference.uid)
            return None
        if found.metadata.uid != reference.uid:
            # Another object has taken the name (case C53).
            self._remember_deleted(reference.uid)
            return None
        return read_workload(rule, found, self._scheduler_name)

    def _log_once(self, rule: Rule, error: Forbidden) -> None:
        if (rule.group, rule.kind) not in self._refused:
            self._refused.add((rule.group, rule.kind))
            log.warning(
                "owners are not counted: give the controller get, list and watch on them",
                kind=rule.kind,
                resource=f"{rule.resource}.{rule.group}",
                error=str(error),
            )

    def _remember_deleted(self, uid: str) -> None:
        self._deleted[uid] = None
        if len(self._deleted) > _MOST_DELETED:
            self._deleted.popitem(last=False)

    def _changed(self, old: Workload | None, new: Workload | None) -> None:
        if new is None and old is not None:
            self._remember_deleted(old.metadata.uid)
            self._on_change(old.metadata.uid)
        elif new is not None and (old is None or _plan_inputs(old) != _plan_inputs(new)):
            self._on_change(new.metadata.uid)


def _version(rule: Rule, reference: OwnerReference) -> str:
    """The version that a pod names, where the rule knows it: the server is sure to have it."""
    version = reference.api_version.rpartition("/")[2]
    return version if version in rule.versions else rule.versions[0]


def _plan_inputs(workload: Workload) -> tuple[object, ...]:
    """What of a workload can change a plan; its counters of ready pods and the like cannot."""
    return (
        workload.state,
        workload.members,
        workload.sizes,
        workload.completions,
        workload.has_succeeded,
        workload.group_label,
        workload.size_label,
        workload.metadata.controller,
    )
