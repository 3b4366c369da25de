"""Warnings about what is legal but will surprise (rules W12 and I15). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from groups.contract import SIZE_LABEL
from groups.workloads.grouping import NAMED, Grouped
from groups.workloads.reading import Workload
from groups.workloads.sizing import holds

LENGTH: Final = 120


def warnings_about(workload: Workload, grouped: Sequence[Grouped]) -> tuple[str, ...]:
    """What to tell the user: short sentences, each once."""
    found = (*_overruled(grouped), *_too_large(workload, grouped), *_hints(workload, grouped))
    return tuple(dict.fromkeys(one[:LENGTH] for one in found))


def _overruled(grouped: Sequence[Grouped]) -> Iterator[str]:
    """The pods carry the template's value; to rewrite it could break a selector (A3)."""
    for one in grouped:
        for key, value, other in one.overruled:
            yield f'{key}: the pod template\'s "{value}" counts, not "{other}"'


def _too_large(workload: Workload, grouped: Sequence[Grouped]) -> Iterator[str]:
    """A size that the object will never reach.

    Into a group that the user named, pods of other objects may come.
    """
    rule = workload.rule
    if rule is None or rule.named_by == "pod":
        return
    for one in grouped:
        if not one.size or one.group_from != NAMED:
            continue
        most = sum(other.part.most(workload.obj) for other in grouped if other.group == one.group)
        # None at all: it is scaled down, and will grow.
        if 0 < most < int(one.size):
            yield (
                f'{SIZE_LABEL} "{one.size}" is more than the pods of this {rule.kind} ({most}): '
                "they would wait for ever"
            )


def _hints(workload: Workload, grouped: Sequence[Grouped]) -> Iterator[str]:
    for hint in workload.rule.hints if workload.rule is not None else ():
        large = any(one.size and int(one.size) > hint.above for one in grouped)
        if large and holds(hint.when, workload.obj):
            yield hint.text
