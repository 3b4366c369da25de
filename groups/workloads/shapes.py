"""Read Kubernetes objects as they come: any part may be missing, null or of an odd type (case C10).

Owns: paths into plain JSON objects. Does not own: what the values mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NewType

from groups.objects import OwnerReference

#: Field names from the object down to a value; the empty path is the object itself. `[*]` stands for each
#: item of a list, `*` for each value of a map.
Path = NewType("Path", tuple[str, ...])
#: A path of one object: numbers in place of `[*]`, keys in place of `*`.
Place = tuple[str | int, ...]

EACH_ITEM: Final = "[*]"
EACH_VALUE: Final = "*"
WILDCARDS: Final = frozenset((EACH_ITEM, EACH_VALUE))
_STEP: Final = re.compile(r"(\[\*\]|[^.\[\]]+)(?:\.(?=[^.\[])|(?=\[)|$)")


def parse_path(text: str) -> Path:
    """`spec.tasks[*].template` as a path; `.` is the object itself. ValueError where a field has no name."""
    if text == ".":
        return Path(())
    parts: list[str] = []
    position = 0
    while position < len(text) and (step := _STEP.match(text, position)):
        parts.append(step.group(1))
        position = step.end()
    if not parts or position < len(text) or parts[0] == EACH_ITEM:
        raise ValueError(
            f'"{text}" is not a path: write field names joined by dots, [*] after a list for each item, '
            '* for each value of a map, or "." for the object itself'
        )
    return Path(tuple(parts))


def show_path(path: Sequence[str | int]) -> str:
    """A path as `parse_path` reads it."""
    shown = ""
    for step in path:
        if isinstance(step, int):
            shown += f"[{step}]"
        else:
            shown += step if step == EACH_ITEM else f".{step}"
    return shown.removeprefix(".") or "."


def places(value: object, path: Sequence[str]) -> Iterator[Place]:
    """The places that `path` leads to: one if it has no wildcard, else one for each item that is there."""
    for position, step in enumerate(path):
        if step in WILDCARDS:
            found = lookup(value, path[:position])
            keys: Iterable[str | int] = ()
            if step == EACH_ITEM and isinstance(found, list):
                keys = range(len(found))
            elif step == EACH_VALUE and isinstance(found, Mapping):
                keys = [key for key in found if isinstance(key, str)]
            for key in keys:
                before = (*path[:position], key)
                for rest in places(lookup(value, before), path[position + 1 :]):
                    yield (*before, *rest)
            return
    yield tuple(path)


def bind(path: Path, place: Place) -> Place:
    """`path` for the same items as `place`: its wildcards are those with which the place's path begins."""
    last = max((number for number, step in enumerate(path, start=1) if step in WILDCARDS), default=0)
    return (*place[:last], *path[last:])


def lookup(value: object, path: Sequence[str | int]) -> Any:
    """The value at `path`, or None where it or anything on the way is missing, null or no map or list."""
    for step in path:
        # Reviews hold plain dicts, for which asking about every Mapping costs a tenth of a decision.
        if type(value) is dict or isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list):
            value = value[step] if step < len(value) else None
        else:
            return None
    return value


def mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is a map, else an empty one."""
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def text(value: object) -> str:
    """`value` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def controller_of(obj: Mapping[str, Any]) -> OwnerReference | None:
    """The owner reference with `controller: true`, if there is one with a kind and a name."""
    references = lookup(obj, ("metadata", "ownerReferences"))
    if not isinstance(references, list):
        return None
    for one in references:
        ref = mapping(one)
        if ref.get("controller") is True and text(ref.get("kind")) and text(ref.get("name")):
            return OwnerReference(
                ref["kind"], ref["name"], text(ref.get("uid")), text(ref.get("apiVersion")), True
            )
    return None
