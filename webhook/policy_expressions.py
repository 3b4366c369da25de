"""CEL expressions that read, count and name as the webhook does, generated from the table of rules.

Owns: what one expression says. Does not own: the policies that hold them (`webhook.policies`).

Everything is read with optionals or has(): any part of an object may be missing (case C10). What is odder
than that makes an expression fail, and a policy that fails does nothing: the controller labels the pods.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from groups.contract import GROUP_LABEL, MAX_GROUP_SIZE, MAX_LABEL_LENGTH, SIZE_LABEL
from groups.errors import ContractError
from groups.names import JOB, PREFIX
from groups.workloads.rules import Rule, Rules
from groups.workloads.schema import Condition, Count, LeaveAlone, OlderLabel
from groups.workloads.shapes import EACH_ITEM, WILDCARDS
from webhook.conditions import GROUP_PATTERN

#: Ten digits may exceed an int32, which is asked separately.
SIZE_PATTERN: Final = "^[1-9][0-9]{0,9}$"


def literal(value: object) -> str:
    """A value as CEL writes it: as JSON does."""
    return json.dumps(value)


def reach(path: Sequence[str], start: str = "object") -> str:
    """The value at `path` as an optional; a path of at least one step."""
    return start + "".join(f".?{step}" for step in path)


def both(conditions: Iterable[str], word: str = "&&") -> str:
    """Conditions one a line."""
    return f"\n{word} ".join(conditions)


# Naming (rule A1)


def default_name(rule: Rule) -> str:
    """The default name of the group, empty where it would need a hash: the controller names it then."""
    name = "object.metadata.name"
    # Before an object with generateName gets its name, it is missing or empty.
    named = f'has({name}) && {name} != ""'
    if rule.named_by == "pod":
        like = f'{name}.startsWith(request.namespace + "-") || {name}.startsWith("pod.")'
        return f'{named} ? "{PREFIX}" + ({like} ? "pod." : "") + {name} : ""'
    if rule.word == JOB:
        dotted = f'({name}.contains(".") ? "{JOB}." : "")'
        return f'{named} ? "{PREFIX}" + request.namespace + "-" + {dotted} + {name} : ""'
    return f'{named} ? "{PREFIX}" + request.namespace + "-{rule.word}." + {name} : ""'


# Counting (rule A7)


def can_count(count: Count) -> bool:
    """Whether CEL can evaluate a count: it cannot multiply a list, and items of lists are not followed."""
    return (
        not count.product
        and not any(WILDCARDS.intersection(path) for path in count.paths())
        and all(map(can_count, count.parts))
    )


def numbers(count: Count) -> str:
    """A list of the number that a count gives; empty where its field is missing and has no default."""
    if count.fixed is not None:
        return f"[{count.fixed}]"
    if count.path is not None:
        if count.default is not None:
            return f"[{reach(count.path)}.orValue({count.default})]"
        return f"[?{reach(count.path)}]"
    if count.when is not None and count.then is not None and count.else_ is not None:
        return f"({holds(count.when)} ? {numbers(count.then)} : {numbers(count.else_)})"
    parts = f"({' + '.join(numbers(part) for part in count.parts)})"
    function = "min" if count.smallest else "max" if count.largest else "sum"
    return f"({parts}.size() == 0 ? [] : [{parts}.{function}()])"


def holds(condition: Condition) -> str:
    """Whether a condition holds for the object."""
    value = reach(condition.path)
    if condition.present is not None:
        return f"{value}.hasValue() == {literal(condition.present)}"
    if condition.default is not None:
        return f"{value}.orValue({literal(condition.default)}) == {literal(condition.equals)}"
    return f"({value}.hasValue() && {value}.value() == {literal(condition.equals)})"


def members(rule: Rule) -> str:
    """How many members the gang of an object with one template has: at least one."""
    counted = f"([1] + {numbers(rule.templates[0].pods)}).max()"
    return counted if rule.gang_when is None else f"variables.isGang ? {counted} : 1"


# Whose object it is


def controlled(extra: str = "") -> str:
    """Some owner controls the object; `extra` says more about `r`, the reference to it."""
    wanted = "r.?controller.orValue(false)" + (f" && {extra}" if extra else "")
    return f"object.?metadata.?ownerReferences.orValue([]).exists(r, {wanted})"


def controlled_by(kinds: Iterable[tuple[str, str]]) -> str:
    """A controller of one of these kinds, each with its group, whatever version the reference names."""
    known = [f"{group}/{kind}" for group, kind in kinds]
    # The group of "batch/v1" is "batch", that of "v1" empty.
    group = 'r.apiVersion.contains("/") ? r.apiVersion.split("/")[0] : ""'
    return controlled(f'(({group}) + "/" + r.kind) in {literal(known)}')


def left_alone(leave: LeaveAlone) -> str:
    """The object is one of those that are never labelled; empty where the rule knows none."""
    found = [
        f"object.?metadata.?{field}[?{literal(key)}].hasValue()"
        for field, keys in (("annotations", leave.annotations), ("labels", leave.labels))
        for key in keys
    ]
    if leave.owned_by == "any":
        found.append(controlled())
    elif leave.owned_by:
        found.append(controlled(f"r.kind in {literal(list(leave.owned_by))}"))
    return both(found, "||")


def left_to_controller(rule: Rule, rules: Rules) -> str:
    """The object belongs to another that the controller counts (rule A8), or to a team; or empty."""
    if rule.named_by == "pod":
        counted = [(one.group, one.kind) for one in rules.all if one.is_counted]
        teams = [f"object.?metadata.?labels[?{literal(team.name_label)}].hasValue()" for team in rule.teams]
        return both([controlled_by(counted), *teams], "||")
    behind = [(link.group, link.kind) for link in rule.belongs_to]
    return controlled_by(behind) if behind else ""


def templates(rules: Iterable[Rule], scheduler_name: str) -> str:
    """The list of pod templates that ask for our scheduler, of an object of any of these kinds (rule A2)."""
    paths = dict.fromkeys(template.path for rule in rules for template in rule.templates)
    found = "\n+ ".join(map(_found_at, paths))
    return f'({found})\n  .filter(t, t.?spec.?schedulerName.orValue("") == {literal(scheduler_name)})'


def can_reach(rule: Rule) -> bool:
    """Whether the templates of a kind are found by `templates`: at most one list or map on the way."""
    return all(len(WILDCARDS.intersection(one.path)) <= 1 for one in rule.templates)


def _found_at(path: Sequence[str]) -> str:
    if not path:
        return '(request.kind.kind == "Pod" ? [object] : [])'
    wildcard = next((number for number, step in enumerate(path) if step in WILDCARDS), None)
    if wildcard is None:
        return f"[?{reach(path)}]"
    holder, rest = reach(path[:wildcard]), path[wildcard + 1 :]
    # A list gives its items, a map its keys.
    if path[wildcard] == EACH_ITEM:
        every, item = f"{holder}.orValue([])", "i"
    else:
        every, item = f"{holder}.orValue({{}})", f"{holder}.value()[i]"
    return f"{every}.map(i, {reach(rest, item)}.hasValue(), {reach(rest, item)}.value())"


# What the user wrote (rules A3 and A4, case C40)


def older_keys(older: Iterable[OlderLabel]) -> str:
    """The table of other systems' keys: of the group's name and of its size, empty where there is none."""
    return "[\n" + "".join(f"  {literal([one.group, one.size or ''])},\n" for one in older) + "]"


def places(objects: str) -> str:
    """Labels and annotations of each of the listed objects and templates."""

    def mapping(field: str) -> str:
        full = f"o.metadata.{field}"
        there = f"has(o.metadata) && o.metadata != null && has({full}) && {full} != null"
        # Null means nothing here; an empty value will mean the same (case C04).
        return f"({there} ? {full} : {{}}).transformMap(k, v, v != null, string(v))"

    fields = ",\n  ".join(f'"{field}": {mapping(field)}' for field in ("labels", "annotations"))
    return f"{objects}.map(o, {{\n  {fields}\n}})"


#: For each place: our group and size; then group and size under the first other system's keys that name a
#: group, and these keys. All empty where there is nothing. Ours hide the others.
READINGS: Final = f"""\
variables.places.map(p,
  [p.labels[?"{GROUP_LABEL}"].orValue(""), p.labels[?"{SIZE_LABEL}"].orValue("")]
  + (p.labels[?"{GROUP_LABEL}"].orValue("") != "" ? ["", "", "", ""] : (
    variables.older.map(keys,
      keys.map(k, p.labels[?k].orValue("") != "" ? p.labels[k] : p.annotations[?k].orValue("")) + keys
    ).filter(found, found[0] != "") + [["", "", "", ""]])[0]))"""


def is_group(value: str) -> str:
    """Whether a string is a legal group name."""
    return f"{value}.size() <= {MAX_LABEL_LENGTH} && {value}.matches({literal(GROUP_PATTERN)})"


def is_size(value: str) -> str:
    """Whether a string is a legal group size."""
    return f"{value}.matches({literal(SIZE_PATTERN)}) && int({value}) <= {MAX_GROUP_SIZE}"


#: The first mistake of each place, in the order in which the webhook reads: key, value, what it should be.
#: Our own keys, then those of other systems, of which a size is read only where ours is missing; an empty
#: value means nothing.
MISTAKES: Final = f"""\
variables.readings.map(r,
  [["{GROUP_LABEL}", r[0], "group"], ["{SIZE_LABEL}", r[1], "size"],
   [r[4], r[2], "group"], [r[5], r[1] != "" ? "" : r[3], "size"]]
    .filter(m, m[1] != "" && !(m[2] == "group" ? {is_group("m[1]")} : {is_size("m[1]")}))
).filter(found, found.size() > 0).map(found, found[0])"""


def sentence(check: Callable[[str, str], object], key: str, value: str) -> str:
    """CEL for the sentence in which the contract refuses a value: the policy says the same as the webhook."""
    try:
        check("VALUE", "KEY")
    except ContractError as error:
        words = str(error).replace("KEY", "\0KEY\0").replace("VALUE", "\0VALUE\0").split("\0")
        return " + ".join({"KEY": key, "VALUE": value}.get(one, literal(one)) for one in words if one)
    raise AssertionError("VALUE is legal")
