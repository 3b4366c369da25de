"""The cluster as whole numbers: what nodes have, what pods use, and what we have assumed."""

from __future__ import annotations

from scheduler_core.constraints import Repulsion, Requests
from scheduler_core.gang import Placement
from scheduler_core.nodes import Node


class Ledger:
    """What every node has and what every pod on it uses."""

    #: Rises whenever room or eligibility may have grown: refused gangs are worth another try only then.
    gains: int = 0

    def upsert_node(self, node: Node) -> None:
        """Add the node or take over what changed; usage that is known for it counts from now on."""
        raise NotImplementedError

    def remove_node(self, name: str) -> None:
        """Forget the node; the usage of its pods is remembered in case it comes back."""
        raise NotImplementedError

    def add_usage(
        self, uid: str, node: str, requests: Requests, repulsions: tuple[Repulsion, ...] = ()
    ) -> None:
        """Count a pod that the API server shows on a node, once; an assumption about it is confirmed."""
        raise NotImplementedError

    def remove_usage(self, uid: str) -> None:
        """The pod is gone or terminal: give back what it used, be it bound or assumed."""
        raise NotImplementedError

    def assume(self, placement: Placement) -> None:
        """Count a placement before the API server knows of it. Undo: `forget` for each pod."""
        raise NotImplementedError

    def forget(self, uid: str) -> bool:
        """Undo an assumption; False if there is none any more (the pod was seen bound, or is gone)."""
        raise NotImplementedError

    def is_open(self, name: str) -> bool:
        """Whether the node exists and is not being deleted: to be checked just before binding (T7)."""
        raise NotImplementedError
