"""Write PodGroups and pod labels: each call is one request, and only a leader makes it.

Owns: paths, bodies, preconditions. Does not own: retries (a failed key comes again, with all of its state
read anew) or decisions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from controller import metrics
from controller.plan import Wanted
from controller.pods import Pod
from groups.contract import (
    CREATED_BY_ANNOTATION,
    CREATED_BY_CONTROLLER,
    MIN_MEMBER_ANNOTATION,
    OWNER_UIDS_ANNOTATION,
    POD_GROUP_API_VERSION,
    RUN_ANNOTATION,
)
from groups.objects import Key, split_key
from groups.podgroup import PodGroup, pod_groups_of
from kube.errors import Conflict, KubeError, LeaseLost, NotFound
from kube.session import Kube

#: Written once. A write of these must not rest on an old copy of the object (case C42).
_WRITTEN_ONCE: Final = frozenset({"creationTime", "scheduleStartTime"})

_decode = msgspec.json.Decoder(PodGroup).decode


def _path(key: Key) -> str:
    namespace, name = split_key(key)
    return f"{pod_groups_of(namespace)}/{name}"


class Writer:
    """The writes of the controller; LeaseLost where `may_write` says no."""

    def __init__(self, kube: Kube, may_write: Callable[[], bool]) -> None:
        self._kube = kube
        self._may_write = may_write

    async def create(self, key: Key, wanted: Wanted) -> PodGroup:
        """Make a PodGroup, or return the one that somebody else has just made (case C41)."""
        namespace, name = split_key(key)
        body = {
            "apiVersion": POD_GROUP_API_VERSION,
            "kind": "PodGroup",
            "metadata": {
                "name": name,
                "namespace": namespace,
                **_metadata(wanted, {CREATED_BY_ANNOTATION: CREATED_BY_CONTROLLER}),
            },
            "spec": {"minMember": wanted.min_member},
        }
        try:
            with self._counted("create"):
                return _decode(await self._kube.post(pod_groups_of(namespace), body))
        except Conflict:
            return _decode(await self._kube.get(_path(key)))

    async def update(self, group: PodGroup, wanted: Wanted) -> PodGroup:
        """Write the spec and the owners of a group of ours; Conflict if it has changed since it was read.

        A list is replaced as a whole by a merge patch, so that it must not rest on an old copy.
        """
        meta = _metadata(wanted)
        body: dict[str, Any] = {
            "metadata": {"resourceVersion": group.metadata.resource_version, **meta},
            "spec": {"minMember": wanted.min_member},
        }
        if wanted.min_member == group.spec.min_member:
            # The annotation stays too: where it differs, it says that the number is the user's (A3).
            del body["spec"], meta["annotations"][MIN_MEMBER_ANNOTATION]
        with self._counted("update"):
            return _decode(await self._kube.patch(_path(group.metadata.key), body))

    async def write_status(self, group: PodGroup, status: Mapping[str, Any]) -> PodGroup:
        """Write fields of the status; its conditions are the scheduler's and stay as they are."""
        meta: dict[str, Any] = {"uid": group.metadata.uid}
        if _WRITTEN_ONCE & status.keys():
            meta["resourceVersion"] = group.metadata.resource_version
        with self._counted("status"):
            return _decode(
                await self._kube.patch(
                    f"{_path(group.metadata.key)}/status", {"metadata": meta, "status": status}
                )
            )

    async def delete(self, group: PodGroup) -> None:
        """Delete this very PodGroup; one that is gone counts as deleted (case C49)."""
        with contextlib.suppress(NotFound), self._counted("delete"):
            await self._kube.delete(_path(group.metadata.key), uid=group.metadata.uid)

    async def label(self, pod: Pod, labels: Mapping[str, str]) -> None:
        """Add labels to a pod; Conflict if it has changed since it was read, since the user wins (A3)."""
        with self._counted("label"):
            await self._patch_pod(pod, labels=labels)

    async def mark(self, pod: Pod, run_uid: str) -> None:
        """Say on a pod that it counts for the PodGroup `run_uid`; Conflict if it has changed meanwhile."""
        with self._counted("mark"):
            await self._patch_pod(pod, annotations={RUN_ANNOTATION: run_uid})

    async def _patch_pod(self, pod: Pod, **changes: Mapping[str, str]) -> None:
        meta = pod.metadata
        body = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, **changes}}
        await self._kube.patch(f"/api/v1/namespaces/{meta.namespace}/pods/{meta.name}", body)

    @contextlib.contextmanager
    def _counted(self, what: str) -> Iterator[None]:
        """Around each write: it needs the lease, and is counted."""
        if not self._may_write():
            raise LeaseLost("not written: this process does not lead")
        try:
            yield
        except KubeError as error:
            metrics.WRITES.labels(what, type(error).__name__).inc()
            raise
        metrics.WRITES.labels(what, "ok").inc()


def _metadata(wanted: Wanted, more: Mapping[str, str] | None = None) -> dict[str, Any]:
    annotations = {**(more or {}), MIN_MEMBER_ANNOTATION: str(wanted.min_member)}
    if wanted.recorded:
        annotations[OWNER_UIDS_ANNOTATION] = ",".join(sorted(wanted.recorded))
    return {
        "annotations": annotations,
        "ownerReferences": [
            {
                "apiVersion": owner.api_version,
                "kind": owner.kind,
                "name": owner.name,
                "uid": owner.uid,
                # We do not manage the workload's life, and must not hold up its deletion.
                "controller": False,
            }
            for owner in wanted.owners
        ],
    }
