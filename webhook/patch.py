"""RFC 6902 lists that add labels and annotations to a pod template, built by hand. Pure.

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


def add_metadata(
    obj: Mapping[str, Any], template: Place, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> list[Operation]:
    """Operations that give the template at `template` these; it must be there and be a map."""
    wanted = {"labels": dict(labels), "annotations": dict(annotations)}
    wanted = {field: values for field, values in wanted.items() if values}
    if not wanted:
        return []
    metadata = (*template, "metadata")
    if lookup(obj, metadata) is None:
        return [_add(metadata, wanted)]
    operations: list[Operation] = []
    for field, values in wanted.items():
        place = (*metadata, field)
        if lookup(obj, place) is None:
            operations.append(_add(place, values))
        else:
            operations += [_add((*place, key), value) for key, value in values.items()]
    return operations


def _add(place: Place, value: Any) -> Operation:
    return {"op": "add", "path": pointer(place), "value": value}
