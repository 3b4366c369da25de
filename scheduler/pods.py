"""The pod as the scheduler keeps it: what decides about it, worked out once when its spec appears.

Owns: the slim record and how it is made of the pod on the wire. Does not own: what the record means to a gang
(`scheduler.gangs`) or to a node (`scheduler.cache`).

A cluster has many pods and few kinds of them. Labels and requests live in the shared `PodKind`; of the
metadata only what is read is kept, and texts that repeat are kept once.
"""

from __future__ import annotations

import functools
import sys

import msgspec

from groups.contract import GROUP_LABEL, RUN_ANNOTATION
from groups.errors import FluenceError
from groups.objects import Condition, ObjectMeta, OwnerReference
from scheduler import objects as api
from scheduler.decode import constraints_of, repulsions_of, requests_of, unsupported_rules
from scheduler_core.constraints import shape
from scheduler_core.kinds import PodKind, pod_kind


class CachedPod(msgspec.Struct, frozen=True, gc=False):
    """A pod of any scheduler. Its metadata have the group label, the mark of its run and its controller only.

    `kind` is None where the requests cannot be read; `unreadable` says why. `volumes` are those that may
    decide about nodes. `scheduled` is its condition PodScheduled.
    """

    metadata: ObjectMeta
    kind: PodKind | None
    scheduler_name: str = ""
    node_name: str = ""
    nominated_node_name: str = ""
    phase: str = ""
    priority: int = 0
    is_gated: bool = False
    started: str = ""
    unreadable: str = ""
    volumes: tuple[api.Volume, ...] = ()
    scheduled: Condition | None = None

    @property
    def is_finished(self) -> bool:
        """Whether its containers have ended for good."""
        return self.phase in ("Succeeded", "Failed")


def cached(pod: api.Pod) -> CachedPod:
    """The record of a pod on the wire."""
    spec, status = pod.spec, pod.status
    kind, unreadable = None, ""
    try:
        kind = _kind(pod)
    except (FluenceError, ValueError) as error:
        unreadable = str(error)
    scheduled = None if spec.node_name else pod.condition("PodScheduled")
    return CachedPod(
        metadata=_meta(pod.metadata),
        kind=kind,
        scheduler_name=sys.intern(spec.scheduler_name),
        node_name=sys.intern(spec.node_name),
        nominated_node_name=sys.intern(status.nominated_node_name),
        phase=sys.intern(status.phase),
        priority=spec.priority,
        is_gated=bool(spec.scheduling_gates),
        started=sys.intern(status.start_time),
        unreadable=unreadable,
        volumes=tuple(one for one in spec.volumes or () if one.persistent_volume_claim or one.ephemeral),
        scheduled=scheduled,
    )


def _kind(pod: api.Pod) -> PodKind:
    same = shape(requests_of(pod), constraints_of(pod.spec), tuple(unsupported_rules(pod.spec)))
    return pod_kind(sys.intern(pod.metadata.namespace), pod.metadata.labels, same, repulsions_of(pod))


def _meta(meta: ObjectMeta) -> ObjectMeta:
    owner = meta.controller
    return msgspec.structs.replace(
        meta,
        namespace=sys.intern(meta.namespace),
        creation_timestamp=sys.intern(meta.creation_timestamp),
        labels=_one(GROUP_LABEL, meta.label(GROUP_LABEL)),
        annotations=_one(RUN_ANNOTATION, meta.annotation(RUN_ANNOTATION)),
        owner_references=_owners(owner.kind, owner.name, owner.uid, owner.api_version) if owner else None,
    )


@functools.lru_cache(maxsize=16_384)
def _one(key: str, value: str) -> dict[str, str] | None:
    return {key: value} if value else None


@functools.lru_cache(maxsize=16_384)
def _owners(kind: str, name: str, uid: str, api_version: str) -> tuple[OwnerReference, ...]:
    return (OwnerReference(kind, name, uid, api_version, controller=True),)
