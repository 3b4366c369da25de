"""What happened to pods, in order, from a watch: for statements such as "never two of five"."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from devcluster.api import Api, Object
from groups.contract import GROUP_LABEL


@dataclass
class History:
    """Every event of a collection of pods since the history began."""

    seen: list[tuple[str, Object]] = field(default_factory=list)
    #: (pod, node) in the order in which pods got their node.
    bindings: list[tuple[str, str]] = field(default_factory=list)
    _groups: dict[str, str] = field(default_factory=dict)
    _bound: set[str] = field(default_factory=set)

    @classmethod
    @contextlib.asynccontextmanager
    async def of(cls, api: Api, path: str) -> AsyncIterator[History]:
        """Watch the collection until the block ends."""
        history = cls()
        version = (await api.get(path))["metadata"]["resourceVersion"]
        task = asyncio.create_task(history._follow(api, path, version))
        try:
            yield history
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _follow(self, api: Api, path: str, version: str) -> None:
        async for kind, pod in api.watch(path, resourceVersion=version):
            self._note(kind, pod)

    def _note(self, kind: str, pod: Object) -> None:
        self.seen.append((kind, pod))
        name, uid, node = pod["metadata"]["name"], pod["metadata"]["uid"], pod["spec"].get("nodeName")
        self._groups[name] = (pod["metadata"].get("labels") or {}).get(GROUP_LABEL, "")
        if node and uid not in self._bound:
            self._bound.add(uid)
            self.bindings.append((name, node))

    def bound_of(self, group: str) -> list[str]:
        """The members of a group that ever got a node, in the order of their bindings."""
        return [pod for pod, _ in self.bindings if self._groups[pod] == group]

    def groups_in_order(self) -> list[str]:
        """Groups in the order in which their first member got its node."""
        return list(dict.fromkeys(self._groups[pod] for pod, _ in self.bindings))
