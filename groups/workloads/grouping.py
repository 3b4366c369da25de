"""The group and size of each pod template of an object that was read (rules A1, A3, A7 and A8). Pure.

Owns: what the user's words and the defaults come to, and which labels and annotations are missing. Does not
own: reading (`groups.workloads.reading`), counting (`sizing`), or the patch (`webhook.patch`).

Templates are looked at by the group that they end up in, for a size counts the members of one group: an
object whose templates name two groups asks for two gangs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from groups.contract import GROUP_LABEL, SIZE_FROM_ANNOTATION, SIZE_FROM_RULE, SIZE_LABEL
from groups.names import generated_group_name, whole_group_name, workload_group_name
from groups.workloads.adopt import adopt, identify
from groups.workloads.older import NOTHING, Stated
from groups.workloads.reading import ReadPart, Workload
from groups.workloads.rules import Rule, Rules
from groups.workloads.sizing import Part, is_gang, size_of_group

NAMED: Final = "the default name"
COUNTED: Final = "counted by the rule"
BY_OWNER: Final = "the default name of the object that controls it"
UNCOUNTED: Final = "left to the controller, which counts the object that controls it"

#: Kubernetes takes 256 KiB of annotations, and a character has up to four bytes. A template whose annotations
#: have more characters than this gets no mark, which could be what makes the object too large. Its size then
#: stays as it was at the creation.
MOST_ANNOTATED: Final = 60_000


@dataclass(frozen=True)
class Grouped:
    """One template with its group and size. `labels` and `annotations` are those that are to be added.

    `overruled` are values that do not count: key, the value that counts, the other one.
    """

    part: Part
    group: str
    size: str
    group_from: str
    size_from: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    overruled: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class _Defaults:
    group: str
    size: str | None  # None: count the pods of the templates
    group_from: str = NAMED
    size_from: str = COUNTED


def group_parts(workload: Workload, rules: Rules) -> tuple[Grouped, ...]:
    """What each template that asks for us ends up with."""
    rule = workload.rule
    assert rule is not None
    defaults = _defaults(workload, rule, rules)
    main = [one.stated for one in workload.parts if not one.part.suffix]
    chosen = _first("group", workload.stated, main) or (defaults.group, defaults.group_from)
    groups = [_group_of(workload, rule, one, chosen) for one in workload.parts]
    sizes = _Sizes(workload, rule, [name for name, _ in groups], defaults)
    return tuple(
        _grouped(one, workload.stated, *groups[number], *sizes.of(number))
        for number, one in enumerate(workload.parts)
    )


def workload_name(workload: Workload, rule: Rule, part: str = "") -> str:
    """The default group of an object, or of a part of it (rule A1)."""
    if name := workload.name:
        if rule.has_parts and not part:
            return whole_group_name(workload.namespace, rule.word, name)
        return workload_group_name(workload.namespace, rule.word, name, part)
    prefix = workload.generate_name + part
    return generated_group_name(prefix, workload.request_uid, workload.namespace, rule.word)


def _group_of(workload: Workload, rule: Rule, one: ReadPart, chosen: tuple[str, str]) -> tuple[str, str]:
    if one.stated.group:
        return one.stated.group, one.stated.group_key
    if one.part.suffix:
        return workload_name(workload, rule, one.part.suffix), NAMED
    return chosen


@dataclass(frozen=True)
class _Sizes:
    workload: Workload
    rule: Rule
    groups: Sequence[str]
    defaults: _Defaults

    def of(self, number: int) -> tuple[str, str]:
        """The size that a template should have, and where it comes from."""
        obj, parts = self.workload.obj, self.workload.parts
        is_main = not parts[number].part.suffix
        same = [index for index, other in enumerate(self.groups) if other == self.groups[number]]
        stated = [parts[index].stated for index in same]
        found = _first("size", self.workload.stated if is_main else NOTHING, stated)
        # Another system's size is no wish of the user's for pods that start one after another.
        if found is not None and (found[1] == SIZE_LABEL or is_gang(self.rule, obj)):
            return found
        if self.defaults.size is not None:
            return self.defaults.size, self.defaults.size_from
        members = [parts[index].part for index in same]
        return str(size_of_group(self.rule, obj, [one.part for one in parts], members)), COUNTED


def _first(field: str, on_object: Stated, on_parts: Sequence[Stated]) -> tuple[str, str] | None:
    """What fills a gap: the first value on the object, then on its templates, and its key (A3)."""
    for place in (on_object, *on_parts):
        if value := getattr(place, field):
            return value, getattr(place, f"{field}_key")
    return None


def _defaults(workload: Workload, rule: Rule, rules: Rules) -> _Defaults:
    """What holds where the user wrote nothing.

    The size is empty for what belongs to an owner that the controller has to count (A8).
    """
    if rule.named_by == "pod":
        identity = identify(workload.obj, workload.namespace)
        adoption = adopt(identity, request_uid=workload.request_uid, rules=rules)
        if adoption.size is None:
            return _Defaults(adoption.group_name, "", BY_OWNER, UNCOUNTED)
        return _Defaults(adoption.group_name, str(adoption.size))
    owner = workload.owner
    if owner is not None and (behind := rules.behind(rule, owner)) is not None:
        _, target = behind
        name = whole_group_name if target.has_parts else workload_group_name
        return _Defaults(name(workload.namespace, target.word, owner.name), "", BY_OWNER, UNCOUNTED)
    return _Defaults(workload_name(workload, rule), None)


def _grouped(
    one: ReadPart, on_object: Stated, group: str, group_from: str, size: str, size_from: str
) -> Grouped:
    stated = one.stated
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    overruled: list[tuple[str, str, str]] = []
    if stated.group_key != GROUP_LABEL:
        labels[GROUP_LABEL] = group
    if not one.part.suffix and on_object.group and on_object.group != group:
        overruled.append((GROUP_LABEL, group, on_object.group))
    if stated.size_key != SIZE_LABEL and size:
        labels[SIZE_LABEL] = size
        if size_from == COUNTED and one.part.template.path and one.annotated <= MOST_ANNOTATED:
            # The controller may follow the object's present count (A7). A bare pod has no such object.
            annotations[SIZE_FROM_ANNOTATION] = SIZE_FROM_RULE
    elif stated.size_key == SIZE_LABEL and stated.size != size:
        overruled.append((SIZE_LABEL, stated.size, size))
        size, size_from = stated.size, SIZE_LABEL
    return Grouped(one.part, group, size, group_from, size_from, labels, annotations, tuple(overruled))
