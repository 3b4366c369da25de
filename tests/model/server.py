"""An API server of a few lines for the model test: objects, watches, and answers that go wrong.

Owns: what the API server does with each request (a Binding is checked like a real one, rules B2, B3), what of
each change a watch shows, and the faults of single calls. Does not own: who changes objects beside the
scheduler (`tests.model.workloads`).
"""

from __future__ import annotations

import asyncio
import enum
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

from groups.contract import RUN_ANNOTATION

Object = dict[str, Any]
#: What a server answers: a status and a body.
Answer = tuple[int, Any]

NAMESPACE: Final = "ns"
KINDS: Final = ("pods", "nodes", "podgroups", "persistentvolumeclaims", "persistentvolumes")


class Fate(enum.Enum):
    """What happens to one call that matters: a Binding, the deletion of a pod, or the reading of a pod."""

    FINE = "carried out and answered"
    NEVER_ARRIVES = "the request is lost, and no answer comes"
    ANSWER_LOST = "carried out, and no answer comes"
    ARRIVES_LATE = "carried out after the client has given it up"
    ANSWERED_LATE = "carried out now, answered later"
    CUT_BEFORE = "the connection is cut before it is carried out"
    CUT_AFTER = "carried out, and the connection is cut"
    FAILS_BEFORE = "500, not carried out"
    FAILS_AFTER = "500, carried out"
    TOO_MANY = "429"
    FORBIDDEN = "403"
    DOUBLED = "carried out twice, and the second answer comes"
    KILLED_BEFORE = "the process is killed, and the request is lost"
    KILLED_AFTER = "the process is killed after it was carried out"


@dataclass(frozen=True, slots=True, eq=False)
class Late:
    """A request that is on its way while its client has given it up."""

    method: str
    path: str
    body: Any


class ApiServer:
    """Objects by collection and key, and the changes that watches show."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Object]] = {kind: {} for kind in KINDS}
        self.version = 100
        self.up = True
        #: Collections whose watches show nothing for now, though they stay open.
        self.silent: set[str] = set()
        #: What happens to the next calls that matter; later ones are fine.
        self.fates: deque[Fate] = deque()
        #: Requests that will be carried out later.
        self.on_their_way: set[Late] = set()
        #: Called with a pod and a node when a Binding is carried out.
        self.on_bound: Callable[[Object, str], None] = lambda pod, node: None
        self._log: dict[str, list[tuple[int, bytes]]] = {kind: [] for kind in KINDS}
        self._oldest = 0
        self._watches = 0
        self._changed = asyncio.Event()

    # Changes

    def put(self, kind: str, item: Object) -> None:
        """Create an object, or write a changed one."""
        key = key_of(item)
        known = key in self.objects[kind]
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self.objects[kind][key] = item
        self._show(kind, "MODIFIED" if known else "ADDED", item)

    def remove(self, kind: str, key: str) -> None:
        """Delete an object for good."""
        item = self.objects[kind].pop(key)
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self._show(kind, "DELETED", item)

    def delete_pod(self, key: str) -> None:
        """Delete a pod: at once while it has no node, later by its kubelet otherwise."""
        pod = self.objects["pods"][key]
        if not pod["spec"].get("nodeName") or pod["status"].get("phase") in ("Succeeded", "Failed"):
            self.remove("pods", key)
        elif "deletionTimestamp" not in pod["metadata"]:
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self.put("pods", pod)

    def _show(self, kind: str, what: str, item: Object) -> None:
        line = json.dumps({"type": what, "object": item}).encode() + b"\n"
        self._log[kind].append((self.version, line))
        self.wake()

    def wake(self) -> None:
        """Let every watch look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def cut_watches(self) -> None:
        """End every open watch."""
        self._watches += 1
        self.wake()

    def compact(self) -> None:
        """Forget the changes so far: a watch from before has to list again (410)."""
        self._oldest = self.version
        self._log = {kind: [] for kind in KINDS}
        self.cut_watches()

    def settle(self) -> None:
        """Carry out every request that is on its way."""
        for late in list(self.on_their_way):
            self.arrive(late)

    def arrive(self, late: Late) -> None:
        """Carry out a request that was on its way, once."""
        if late in self.on_their_way:
            self.on_their_way.discard(late)
            self.answer(late.method, late.path, late.body)

    # Requests

    def answer(self, method: str, path: str, body: Any) -> Answer:
        """Carry out one request."""
        parts = path.strip("/").split("/")
        if "namespaces" not in parts:
            found = list(self.objects[parts[-1]].values())
            return 200, {"metadata": {"resourceVersion": str(self.version)}, "items": found}
        _, kind, *rest = parts[parts.index("namespaces") + 1 :]
        if kind not in KINDS:  # events
            return 201, {}
        key = f"{NAMESPACE}/{rest[0]}"
        item = self.objects[kind].get(key)
        if item is None:
            return 404, {"code": 404, "message": f"{kind} {key} not found"}
        if rest[1:] == ["binding"]:
            return self._bind(item, body)
        if method == "GET":
            return 200, item
        meta = body.get("metadata", {}) if method == "PATCH" else body.get("preconditions", {})
        if any(meta[name] != item["metadata"][name] for name in ("uid", "resourceVersion") if name in meta):
            return 409, {"code": 409, "message": "the precondition failed"}
        if method == "DELETE":
            self.delete_pod(key)
            return 200, {}
        return self._patch_status(kind, item, body["status"]["conditions"])

    def _patch_status(self, kind: str, item: Object, conditions: list[Object]) -> Answer:
        new = {one["type"] for one in conditions}
        kept = [one for one in item["status"].get("conditions", ()) if one["type"] not in new]
        item["status"]["conditions"] = [*kept, *conditions]
        self.put(kind, item)
        return 200, item

    def _bind(self, pod: Object, body: Any) -> Answer:
        """As the API server does: uid, node and deletion are checked, the node's existence is not."""
        meta, wanted = pod["metadata"], body["metadata"]
        if wanted["uid"] != meta["uid"]:
            return 409, {"code": 409, "message": "the UID in the precondition is another one"}
        if "deletionTimestamp" in meta or pod["spec"].get("nodeName"):
            return 409, {"code": 409, "message": "the pod is being deleted, or is assigned to a node already"}
        node = body["target"]["name"]
        meta.setdefault("annotations", {})[RUN_ANNOTATION] = wanted["annotations"][RUN_ANNOTATION]
        self.on_bound(pod, node)
        pod["spec"]["nodeName"] = node
        self.put("pods", pod)
        return 201, {}

    async def lines(self, kind: str, version: int) -> AsyncIterator[bytes]:
        """What happened in a collection after `version`, as it happens; ends when watches are cut."""
        watches = self._watches
        if version < self._oldest:
            yield json.dumps({"type": "ERROR", "object": {"code": 410}}).encode() + b"\n"
            return
        while self.up and watches == self._watches:
            changed = self._changed
            if kind not in self.silent:
                for at, line in [one for one in self._log[kind] if one[0] > version]:
                    version = at
                    yield line
            await changed.wait()


def key_of(item: Object) -> str:
    """The key of an object in its collection."""
    meta = item["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else str(meta["name"])
