"""The record of each pod that uses room on a node."""

from __future__ import annotations

import enum
from typing import NamedTuple

from scheduler_core.kinds import PodKind


class State(enum.Enum):
    """Why room is counted for a pod."""

    SEEN = "seen"  # the API server shows it on the node
    ASSUMED = "assumed"  # decided by us, and not yet shown by the API server
    HELD = "held"  # reserved for a member of a gang that is partly on nodes


class Placed(NamedTuple):
    """A pod on a node. `gang` is empty for pods that are in no gang; `started` is an RFC 3339 time.

    `kind` is None for a pod whose requests cannot be read: it closes its node.
    """

    kind: PodKind | None
    node: str
    gang: str = ""
    priority: int = 0
    started: str = ""
    state: State = State.SEEN
