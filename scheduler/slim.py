"""Nodes and PodGroups as the scheduler keeps them: without what nobody reads, repeated texts once."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import msgspec

from groups.contract import ON_STRANDED_ANNOTATION
from groups.objects import Condition
from groups.podgroup import PodGroup
from scheduler.objects import Node
from scheduler_core.nodes import PRESSURES

_NODE_CONDITIONS = frozenset({"Ready", "NetworkUnavailable", *PRESSURES})


def slim_node(node: Node) -> Node:
    """The same node. Of its conditions only type and status are kept, of its annotations none."""
    conditions = node.status.conditions
    return msgspec.structs.replace(
        node,
        metadata=msgspec.structs.replace(
            node.metadata,
            annotations=None,
            labels=_interned(node.metadata.labels),
        ),
        status=msgspec.structs.replace(
            node.status,
            allocatable=_interned(node.status.allocatable),
            conditions=tuple(_slim(one) for one in conditions or () if one.type in _NODE_CONDITIONS),
        ),
    )


def slim_group(group: PodGroup) -> PodGroup:
    """The same PodGroup; of its annotations only the one that the scheduler reads."""
    chosen = group.metadata.annotation(ON_STRANDED_ANNOTATION)
    annotations = {ON_STRANDED_ANNOTATION: chosen} if chosen else None
    metadata = msgspec.structs.replace(group.metadata, annotations=annotations)
    return msgspec.structs.replace(group, metadata=metadata)


def _slim(condition: Condition) -> Condition:
    return Condition(sys.intern(condition.type), sys.intern(condition.status))


def _interned(found: Mapping[str, str | int | float] | None) -> dict[str, str | int | float] | None:
    if found is None:
        return None
    return {
        sys.intern(key): sys.intern(value) if isinstance(value, str) else value
        for key, value in found.items()
    }
