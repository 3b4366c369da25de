"""RFC 6902 lists that add labels to a pod template, built by hand. Pure.

A well-formed patch that does not apply is an error 500 for the user even with failurePolicy Ignore (rule W8).
So every missing parent is added, existing values are never changed, and a complete template gets no
operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from groups.workloads.shapes import Place, lookup


class Operation(TypedDict):
    """One operation of an RFC 6902 list; `add` also replaces what is null."""

    op: str
    path: str
    value: Any


def pointer(place: Place) -> str:
    """The JSON pointer (RFC 6901) to `place`: `~` and `/` in a name are escaped."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in place)


def add_labels(obj: Mapping[str, Any], template: Place, labels: Mapping[str, str]) -> list[Operation]:
    """Operations that give the template at `template` these labels; it must exist and be a map."""
    if not labels:
        return []
    metadata = (*template, "metadata")
    if lookup(obj, metadata) is None:
        return [_add(metadata, {"labels": dict(labels)})]
    all_labels = (*metadata, "labels")
    if lookup(obj, all_labels) is None:
        return [_add(all_labels, dict(labels))]
    return [_add((*all_labels, key), value) for key, value in labels.items()]


def _add(place: Place, value: Any) -> Operation:
    return {"op": "add", "path": pointer(place), "value": value}
