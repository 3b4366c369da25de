"""Read an object once: its rule, its pod templates, what its user wrote about the group, and its owner. Pure.

Owns: the value that everything else follows from, and why an object is left as it is. Does not own: the group
and size that follow (`groups.workloads.grouping`), or what a rule means (`schema`, `sizing`).

The order matters: whether the object asks for us comes first (A2, case C30: a foreign pod with a nonsensical
label of ours is left alone), then whether its labels are mistakes (A4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from groups.contract import GROUP_LABEL, SIZE_LABEL, check_group_name, parse_group_size
from groups.errors import ContractError
from groups.objects import OwnerReference
from groups.workloads.older import NOTHING, Stated, read_older
from groups.workloads.rules import Rule, Rules
from groups.workloads.schema import OlderLabel
from groups.workloads.shapes import Place, controller_of, lookup, mapping, show_path, text
from groups.workloads.sizing import Part, opted_in, parts_of

_SHOWN: Final = 80


@dataclass(frozen=True)
class ReadPart:
    """A pod template that asks for us, and what the user wrote on it.

    `annotated` is the number of characters in the keys and values of its annotations.
    """

    part: Part
    stated: Stated = NOTHING
    annotated: int = 0


@dataclass(frozen=True)
class Workload:
    """An object as it was read.

    `parts` are its pod templates that ask for us. `untouched` says why nothing is to be written, `mistake`
    which value must be denied; both are empty for an object that is to be labelled.
    """

    obj: Mapping[str, Any]
    namespace: str
    request_uid: str = ""
    rule: Rule | None = None
    owner: OwnerReference | None = None
    parts: tuple[ReadPart, ...] = ()
    stated: Stated = NOTHING
    untouched: str = ""
    mistake: str = ""

    @property
    def name(self) -> str:
        """Its name, empty while it has only a generateName."""
        return text(lookup(self.obj, ("metadata", "name")))

    @property
    def generate_name(self) -> str:
        """What its name will begin with."""
        return text(lookup(self.obj, ("metadata", "generateName")))


def read(
    obj: Mapping[str, Any],
    api_version: str,
    kind: str,
    namespace: str,
    *,
    rules: Rules,
    scheduler_name: str,
    request_uid: str = "",
) -> Workload:
    """Read an object of this kind; `namespace` is the request's (case C02). Never raises."""
    found = Workload(obj, namespace, request_uid)
    rule = rules.find(api_version, kind)
    if rule is None:
        return _untouched(found, f"no rule is for kind {kind} of {api_version}")
    found = Workload(obj, namespace, request_uid, rule, controller_of(obj))
    parts = [part for part in parts_of(rule, obj) if opted_in(obj, part.place, scheduler_name)]
    if not parts:
        because = rule.untouched.because if rule.untouched is not None else _not_ours(rule, scheduler_name)
        return _untouched(found, because)
    if why := rule.leaves_alone(obj, found.owner):
        return _untouched(found, why)
    for part in parts:
        # Metadata of an odd type are for the API server to refuse: a patch into them would not apply (W8).
        if not _has_usable_metadata(obj, part.place):
            return _untouched(found, f'"{show_path((*part.place, "metadata"))}" holds no metadata')
    try:
        stated = stated_at(obj, (), rules.older)
        read_parts = tuple(_read_part(obj, part, rules.older) for part in parts)
    except ContractError as error:
        return replace(found, mistake=str(error))
    because = rule.untouched.because if rule.untouched is not None else ""
    return replace(found, parts=read_parts, stated=stated, untouched=because)


def stated_at(obj: Mapping[str, Any], place: Place, older: Sequence[OlderLabel]) -> Stated:
    """What the user wrote at `place`, in our words or in those of other systems; ContractError (A4)."""
    metadata = mapping(lookup(obj, (*place, "metadata")))
    return stated_in(mapping(metadata.get("labels")), mapping(metadata.get("annotations")), older)


def stated_in(
    labels: Mapping[str, Any], annotations: Mapping[str, Any], older: Sequence[OlderLabel]
) -> Stated:
    """The same for labels and annotations by themselves."""
    group, size = _value(labels, GROUP_LABEL), _value(labels, SIZE_LABEL)
    if group:
        check_group_name(group)
    if size:
        parse_group_size(size)
    if group:
        return Stated(group, size, GROUP_LABEL, SIZE_LABEL if size else "")
    other = read_older(older, labels, annotations)
    if other.group:
        # Where the label itself has no size, an annotation of the same key has it: the label is missing.
        size_key = other.size_key if other.size_key != SIZE_LABEL else f"annotation {SIZE_LABEL}"
        return Stated(other.group, size or other.size, other.group_key, SIZE_LABEL if size else size_key)
    return Stated("", size, "", SIZE_LABEL if size else "")


def _read_part(obj: Mapping[str, Any], part: Part, older: Sequence[OlderLabel]) -> ReadPart:
    annotations = mapping(lookup(obj, (*part.place, "metadata", "annotations")))
    annotated = sum(len(key) + len(text(value)) for key, value in annotations.items())
    return ReadPart(part, stated_at(obj, part.place, older), annotated)


def _untouched(found: Workload, why: str) -> Workload:
    return replace(found, untouched=why)


def _not_ours(rule: Rule, scheduler_name: str) -> str:
    places = " or ".join(show_path((*one.path, "spec", "schedulerName")) for one in rule.templates)
    return f"{places} is not {scheduler_name}"


def _has_usable_metadata(obj: Mapping[str, Any], template: Place) -> bool:
    return all(
        isinstance(lookup(obj, (*template, "metadata", *rest)), dict | None)
        for rest in ((), ("labels",), ("annotations",))
    )


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
