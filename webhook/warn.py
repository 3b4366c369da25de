"""Warnings about what is legal but will surprise (rules W12 and I15). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from groups.contract import SIZE_LABEL
from groups.workloads.rules import Rule
from groups.workloads.sizing import holds
from webhook.labels import NAMED, Labelled

LENGTH: Final = 120


def warnings_about(obj: Mapping[str, Any], rule: Rule, labelled: Sequence[Labelled]) -> tuple[str, ...]:
    """What to tell the user: short sentences, each once."""
    found = (*_unheard(labelled), *_too_large(obj, rule, labelled), *_hints(obj, rule, labelled))
    return tuple(dict.fromkeys(one[:LENGTH] for one in found))


def _unheard(labelled: Sequence[Labelled]) -> Iterator[str]:
    """The pods carry the template's value; to rewrite it could break a selector (A3)."""
    for one in labelled:
        for key, value, other in one.unheard:
            yield f'{key}: the pod template\'s "{value}" counts, not "{other}"'


def _too_large(obj: Mapping[str, Any], rule: Rule, labelled: Sequence[Labelled]) -> Iterator[str]:
    """A size that the object will never reach.

    Into a group that the user named, pods of other objects may come.
    """
    if rule.named_by == "pod":
        return
    for one in labelled:
        if not one.size or one.group_from != NAMED:
            continue
        most = sum(other.part.most(obj) for other in labelled if other.group == one.group)
        # None at all: it is scaled down, and will grow.
        if 0 < most < int(one.size):
            yield (
                f'{SIZE_LABEL} "{one.size}" is more than the pods of this {rule.kind} ({most}): '
                "they would wait for ever"
            )


def _hints(obj: Mapping[str, Any], rule: Rule, labelled: Sequence[Labelled]) -> Iterator[str]:
    for hint in rule.hints:
        if any(one.size and int(one.size) > hint.above for one in labelled) and holds(hint.when, obj):
            yield hint.text
