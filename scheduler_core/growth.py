"""Where room may have grown, so that refused gangs are matched again only if that can help.

Owns: the version of room, and on which nodes it has grown since an earlier version. Does not own: which
changes let room grow (`ledger`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable


class RoomGrowth:
    """Versions of room. The cost of a question depends on how much has grown since, not on the cluster."""

    def __init__(self) -> None:
        #: Rises whenever room or eligibility may have grown anywhere.
        self.version = 0
        #: The last growth of each node, the latest one at the end.
        self._nodes: dict[str, int] = {}
        #: The last growth of all nodes at once.
        self._everywhere = 0
        # Many refused gangs ask the same question in a row.
        self._last: tuple[tuple[int, int], frozenset[str]] = ((0, 0), frozenset())

    def on(self, node: str) -> None:
        """Room may have grown on this node."""
        self.version += 1
        self._nodes.pop(node, None)
        self._nodes[node] = self.version

    def everywhere(self) -> None:
        """Room may have grown on any node."""
        self.version += 1
        self._everywhere = self.version
        self._nodes.clear()

    def forget(self, node: str) -> None:
        """The node is gone."""
        self._nodes.pop(node, None)
        self._last = ((0, 0), frozenset())

    def since(self, version: int, nodes: Collection[str]) -> frozenset[str]:
        """The nodes whose room may have grown since that version; `nodes` are all that exist now."""
        question = (version, self.version)
        if self._last[0] != question:
            self._last = (question, frozenset(nodes if version < self._everywhere else self._after(version)))
        return self._last[1]

    def _after(self, version: int) -> Iterable[str]:
        for node, grown in reversed(self._nodes.items()):
            if grown <= version:
                return
            yield node
