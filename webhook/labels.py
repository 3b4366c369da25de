"""Which labels each pod template of an object ends up with, and where they come from. Pure.

Owns: the user's labels (A3, A4), and what fills the gaps (A1, A7, A8). Does not own: whether the object is
ours to judge (`webhook.decide`), or the patch (`webhook.patch`).

Templates are looked at by the group that they end up in, for a size counts the members of one group: an
object whose templates name two groups asks for two gangs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from groups.contract import GROUP_LABEL, SIZE_LABEL, check_group_name, parse_group_size
from groups.errors import ContractError
from groups.names import workload_group_name
from groups.workloads.adopt import adopt, identify, workload_group
from groups.workloads.older import read_older
from groups.workloads.rules import Rule, Rules
from groups.workloads.schema import OlderLabel
from groups.workloads.shapes import Place, controller_of, lookup, mapping
from groups.workloads.sizing import Part, gang_size, is_gang

_SHOWN: Final = 80
NAMED: Final = "named by default (A1)"
COUNTED: Final = "counted by the rule (A7)"
BY_OWNER: Final = "its controller's (A8)"
UNCOUNTED: Final = "left to the controller, which counts the owner (A8)"


@dataclass(frozen=True)
class Reading:
    """The values that the user wrote in one place, and the keys under which; empty where there is none."""

    group: str = ""
    size: str = ""
    group_key: str = ""
    size_key: str = ""


@dataclass(frozen=True)
class Labelled:
    """One template with its group and size. `missing` are the labels to add; the others are there."""

    part: Part
    group: str
    size: str
    group_from: str
    size_from: str
    missing: Mapping[str, str]
    #: What the object, or another template of the group, says otherwise.
    unheard: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class _Defaults:
    group: str
    size: str | None  # None: count the pods of the templates
    group_from: str = NAMED
    size_from: str = COUNTED


def read_labels(obj: Mapping[str, Any], place: Place, older: Sequence[OlderLabel]) -> Reading:
    """The user's labels at `place`, checked; raises ContractError (A4)."""
    metadata = mapping(lookup(obj, (*place, "metadata")))
    labels = mapping(metadata.get("labels"))
    group, size = _value(labels, GROUP_LABEL), _value(labels, SIZE_LABEL)
    if group:
        check_group_name(group)
    if size:
        parse_group_size(size)
    if group and size:
        return Reading(group, size, GROUP_LABEL, SIZE_LABEL)
    told = read_older(older, labels, mapping(metadata.get("annotations"))) if not group else None
    if told is not None and told.group:
        # Where the label itself has no size, an annotation of the same key said it: the label is missing.
        told_by = told.size_key if told.size_key != SIZE_LABEL else f"annotation {SIZE_LABEL}"
        return Reading(told.group, size or told.size, told.group_key, SIZE_LABEL if size else told_by)
    return Reading(group, size, GROUP_LABEL if group else "", SIZE_LABEL if size else "")


def _value(labels: Mapping[str, Any], key: str) -> str:
    """A label's value; empty where it is missing, null or empty, which all mean the same (case C04)."""
    value = labels.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ContractError(f"{key}: the value of a label must be a quoted string, not {_describe(value)}")
    return value if len(value) <= _SHOWN else value[:_SHOWN] + "..."


def _describe(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"a {type(value).__name__}"
    try:
        shown = str(value)
    except ValueError:  # Python does not write out the largest integers.
        return "a number"
    return f'the number {shown}: write "{shown}"' if len(shown) <= _SHOWN else "a number"


def label_parts(
    obj: Mapping[str, Any],
    parts: Sequence[Part],
    on_object: Reading,
    on_parts: Sequence[Reading],
    *,
    rule: Rule,
    namespace: str,
    uid: str,
    rules: Rules,
) -> tuple[Labelled, ...]:
    """The labels of each of `parts`, which asked for us, from what the user wrote and the defaults."""
    defaults = _defaults(obj, rule, namespace, uid, rules)
    main = [has for part, has in zip(parts, on_parts, strict=True) if not part.suffix]
    group, group_from = _first("group", on_object, main) or (defaults.group, defaults.group_from)
    groups: list[tuple[str, str]] = []
    for part, has in zip(parts, on_parts, strict=True):
        if has.group:
            groups.append((has.group, has.group_key))
        elif part.suffix:
            groups.append((workload_group(obj, namespace, uid, part.suffix), NAMED))
        else:
            groups.append((group, group_from))
    sized = _Sizes(obj, rule, parts, on_object, on_parts, [name for name, _ in groups], defaults)
    return tuple(
        _labelled(part, has, on_object, *chosen, *sized.of(number))
        for number, (part, has, chosen) in enumerate(zip(parts, on_parts, groups, strict=True))
    )


@dataclass(frozen=True)
class _Sizes:
    obj: Mapping[str, Any]
    rule: Rule
    parts: Sequence[Part]
    on_object: Reading
    on_parts: Sequence[Reading]
    groups: Sequence[str]
    defaults: _Defaults

    def of(self, number: int) -> tuple[str, str]:
        """The size that a template should have, and where it comes from."""
        is_main = not self.parts[number].suffix
        same = [index for index, other in enumerate(self.groups) if other == self.groups[number]]
        places = [self.on_parts[index] for index in same]
        found = _first("size", self.on_object if is_main else Reading(), places)
        # Another system's size is no wish of the user's for pods that start one after another.
        if found is not None and (found[1] == SIZE_LABEL or is_gang(self.rule, self.obj)):
            return found
        if self.defaults.size is not None:
            return self.defaults.size, self.defaults.size_from
        members = [self.parts[index] for index in same]
        # The user's own limit is about the whole object, not about a part that has its own group.
        whole = all(part in members for part in self.parts if not part.suffix)
        return str(gang_size(self.rule, self.obj, members, limited=is_main and whole)), COUNTED


def _first(field: str, on_object: Reading, on_parts: Sequence[Reading]) -> tuple[str, str] | None:
    """What fills a gap: the first value on the object, then on its templates, and its key (A3)."""
    for place in (on_object, *on_parts):
        if value := getattr(place, field):
            return value, getattr(place, f"{field}_key")
    return None


def _defaults(obj: Mapping[str, Any], rule: Rule, namespace: str, uid: str, rules: Rules) -> _Defaults:
    """What holds where the user said nothing.

    The size is empty for what belongs to an owner that the controller has to count (A8).
    """
    if rule.named_by == "pod":
        adoption = adopt(identify(obj, namespace), request_uid=uid, rules=rules)
        if adoption.size is None:
            return _Defaults(adoption.group_name, "", BY_OWNER, UNCOUNTED)
        return _Defaults(adoption.group_name, str(adoption.size))
    owner = controller_of(obj)
    if owner is not None and rules.behind(rule, owner) is not None:
        return _Defaults(workload_group_name(namespace, owner.name), "", BY_OWNER, UNCOUNTED)
    return _Defaults(workload_group(obj, namespace, uid), None)


def _labelled(
    part: Part,
    has: Reading,
    on_object: Reading,
    group: str,
    group_from: str,
    size: str,
    size_from: str,
) -> Labelled:
    missing: dict[str, str] = {}
    unheard: list[tuple[str, str, str]] = []
    if has.group_key != GROUP_LABEL:
        missing[GROUP_LABEL] = group
    if not part.suffix and on_object.group and on_object.group != group:
        unheard.append((GROUP_LABEL, group, on_object.group))
    if has.size_key != SIZE_LABEL and size:
        missing[SIZE_LABEL] = size
    elif has.size_key == SIZE_LABEL and has.size != size:
        unheard.append((SIZE_LABEL, has.size, size))
        size, size_from = has.size, SIZE_LABEL
    return Labelled(part, group, size, group_from, size_from, missing, tuple(unheard))
