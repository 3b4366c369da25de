"""Group names and sizes under the keys of older versions and other systems (case C40). Pure.

They are read only where ours are missing, and stay where they are. A value that is read and cannot be a
group's name or size is a mistake like one under our own keys (rule A4): half of what the user meant would be
worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groups.contract import SIZE_LABEL, check_group_name, parse_group_size
from groups.errors import ContractError
from groups.workloads.schema import OlderLabel

_SHOWN = 80


@dataclass(frozen=True)
class Stated:
    """Group and size that the user wrote in one place, and under which keys; empty for none."""

    group: str = ""
    size: str = ""
    group_key: str = ""
    size_key: str = ""


NOTHING = Stated()


def read_older(
    table: Sequence[OlderLabel], labels: Mapping[str, Any], annotations: Mapping[str, Any]
) -> Stated:
    """What the first entry of `table` that names a group says; raises ContractError (A4).

    For metadata without a group of ours. Where they have a size of ours, no other one is read.
    """
    if not labels and not annotations:
        return NOTHING
    has_size = labels.get(SIZE_LABEL) not in (None, "")
    for entry in table:
        if group := _value(entry.group, labels, annotations):
            check_group_name(group, entry.group)
            size = _value(entry.size, labels, annotations) if entry.size and not has_size else ""
            if size:
                parse_group_size(size, entry.size or "")
            return Stated(group, size, entry.group, (entry.size or "") if size else "")
    return NOTHING


def _value(key: str, labels: Mapping[str, Any], annotations: Mapping[str, Any]) -> str:
    for source in (labels, annotations):
        value = source.get(key)
        if value is None or value == "":
            continue
        if not isinstance(value, str):
            raise ContractError(f"{key}: the value must be a quoted string")
        return value if len(value) <= _SHOWN else value[:_SHOWN] + "..."
    return ""
