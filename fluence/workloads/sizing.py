"""How many members must start together: an object and its rule give a number (rule A7). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fluence.contract import MAX_GROUP_SIZE
from fluence.workloads.rules import MemberCount, Rule
from fluence.workloads.shapes import lookup


def count_members(rule: Rule, obj: Mapping[str, Any]) -> int:
    """The size of the gang that `obj` asks for: from 1 to the largest int32, whatever it contains."""
    if rule.gang_when is not None and lookup(obj, rule.gang_when.path) != rule.gang_when.equals:
        return 1
    counts = [n for count in rule.members if (n := _count(count, obj)) is not None]
    # Zero replicas count as one: the field may grow, and a group of none can never be (case C15).
    return min(max(min(counts, default=1), 1), MAX_GROUP_SIZE)


def _count(count: MemberCount, obj: Mapping[str, Any]) -> int | None:
    value = lookup(obj, count.path)
    # A bool is an int to Python. Numbers of any other shape are for the API server to refuse.
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return count.default
