"""Read Kubernetes objects as they come: any part may be missing, null or of an odd type (case C10).

Owns: paths into plain JSON objects. Does not own: what the values mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NewType

#: Field names from the object down to a value; the empty path is the object itself.
Path = NewType("Path", tuple[str, ...])


def parse_path(text: str) -> Path:
    """`spec.template` as a path; `.` is the object itself. ValueError where a field has no name."""
    if text == ".":
        return Path(())
    parts = tuple(text.split("."))
    if not all(parts):
        raise ValueError(f'"{text}" is not a path: write field names joined by dots, or "."')
    return Path(parts)


def lookup(value: object, path: Sequence[str]) -> Any:
    """The value at `path`, or None where it or anything on the way is missing, null or no map."""
    for field in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(field)
    return value


def mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is a map, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def text(value: object) -> str:
    """`value` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


@dataclass(frozen=True)
class OwnerRef:
    """The owner that controls an object."""

    api_version: str
    kind: str
    name: str
    uid: str = ""

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return api_group(self.api_version)


def api_group(api_version: str) -> str:
    """`apps` of `apps/v1`, empty of `v1`."""
    return api_version.rpartition("/")[0]


def controller_of(obj: Mapping[str, Any]) -> OwnerRef | None:
    """The owner reference with `controller: true`, if there is one with a kind and a name."""
    references = lookup(obj, ("metadata", "ownerReferences"))
    if not isinstance(references, list):
        return None
    for one in references:
        ref = mapping(one)
        if ref.get("controller") is True and text(ref.get("kind")) and text(ref.get("name")):
            return OwnerRef(text(ref.get("apiVersion")), ref["kind"], ref["name"], text(ref.get("uid")))
    return None
