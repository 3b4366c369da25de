"""The nodes of a cluster as the matcher sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler_core.constraints import Taint


@dataclass(frozen=True, slots=True)
class Node:
    """One node: `allocatable` in whole numbers (`requests.capacity`), never `capacity` (rule R6)."""

    name: str
    allocatable: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    network_unavailable: bool = False
    deleting: bool = False
