"""Why an object gets the labels that it gets, or none: `webhook.decide` in words. Pure.

Owns: the sentences. Does not own: the decision, which is taken by the same code as at admission.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from groups.workloads.grouping import COUNTED, Grouped
from groups.workloads.rules import Rule, Rules
from groups.workloads.schema import Count
from groups.workloads.shapes import WILDCARDS, Place, bind, lookup, show_path
from groups.workloads.sizing import evaluate, gang_size, holds, is_gang
from webhook.decide import Policy, Reviewed, review
from webhook.documents import items_of
from webhook.offline import describe, request_for, typed_item


def explain(value: dict[str, Any], namespace: str, policy: Policy, uid: str) -> Iterator[str]:
    """Lines about `value`, or about each object in it if it is a list."""
    items = items_of(value)
    if items is not None:
        for item in items:
            if isinstance(item, dict):
                yield from explain(typed_item(item, value), namespace, policy, uid)
        return
    yield describe(value)
    for line in _lines(value, review(request_for(value, namespace, uid), policy), policy.rules):
        yield f"  {line}"


def _lines(obj: Mapping[str, Any], reviewed: Reviewed, rules: Rules) -> Iterator[str]:
    rule = reviewed.workload.rule
    if rule is not None:
        name = f"{rule.kind} of {rule.group}" if rule.group else rule.kind
        yield f"rule      {name}, in {rules.source_of(rule)}"
    for one in reviewed.grouped:
        yield from _template(obj, one, reviewed.grouped, rule)
    if not reviewed.decision.allowed:
        yield f"denied    {reviewed.decision.message}"
    elif not reviewed.decision.patch:
        yield f"unchanged {reviewed.why_unchanged}"
    for warning in reviewed.decision.warnings:
        yield f"warning   {warning}"


def _template(
    obj: Mapping[str, Any], one: Grouped, all_of_them: Sequence[Grouped], rule: Rule | None
) -> Iterator[str]:
    place = one.part.place
    yield f"template  {show_path(place) if place else 'the pod itself'}"
    if rule is not None and rule.named_by == "object":
        yield f"  pods    {show_count(one.part.template.pods, obj, place)}"
    yield f"  group   {one.group}   {_source(one.group_from)}"
    if one.size:
        counted = f" = {_sum(obj, one, all_of_them, rule)}" if one.size_from == COUNTED else ""
        yield f"  size    {one.size}{counted}   {_source(one.size_from)}"
    else:
        yield f"  size    none   {one.size_from}"
    missing = {**one.labels, **one.annotations}
    written = ", ".join(f'{key}: "{value}"' for key, value in missing.items())
    yield f"  writes  {written or 'nothing: both labels are there'}"


def _source(said: str) -> str:
    return said if " " in said else f"from {said}"


def _sum(obj: Mapping[str, Any], one: Grouped, all_of_them: Sequence[Grouped], rule: Rule | None) -> str:
    if rule is None or rule.named_by == "pod":
        return "the pod alone"
    if not is_gang(rule, obj):
        assert rule.gang_when is not None
        return f"one after another, since {show_path(rule.gang_when.path)} is not {rule.gang_when.equals}"
    parts = [other.part for other in all_of_them if other.group == one.group]
    numbers = [part.pods(obj) for part in parts]
    shown = " + ".join(map(str, numbers)) if len(numbers) > 1 else "the pods of its template"
    if rule.at_most is not None and gang_size(rule, obj, parts) < sum(numbers):
        return f"{shown}, at most {show_count(rule.at_most, obj, ())}"
    return shown if sum(numbers) else f"{shown}, and at least 1"


def show_count(count: Count, obj: Mapping[str, Any], place: Place) -> str:
    """A count with the numbers that it found: `4 = 1 (replicas) x 4 (parallelism)`."""
    shown = _show(count, obj, place)
    result = str(evaluate(count, obj, place))
    return shown if shown == result or shown.startswith(f"{result} (") else f"{result} = {shown}"


def _show(count: Count, obj: Mapping[str, Any], place: Place) -> str:
    if count.fixed is not None:
        return str(count.fixed)
    if count.path is not None:
        return _show_field(count, obj, place)
    if count.when is not None and count.then is not None and count.else_ is not None:
        chosen = count.then if holds(count.when, obj, place) else count.else_
        return _show(chosen, obj, place)
    parts = [part for part in count.parts if evaluate(part, obj, place) is not None]
    shown = [_show(part, obj, place) for part in parts]
    if len(shown) == 1:
        return shown[0]
    if count.product:
        return " x ".join(shown)
    if count.sum:
        return " + ".join(shown)
    return f"{'smallest' if count.smallest else 'largest'} of [{', '.join(shown)}]"


def _show_field(count: Count, obj: Mapping[str, Any], place: Place) -> str:
    assert count.path is not None
    where = bind(count.path, place) if place else count.path
    number = evaluate(count, obj, place)
    found = lookup(obj, where)
    remark = "" if found == number else (" by default" if found is None else f", which is {found!r:.20}")
    # Within an item of a list or map, where it is was said by the template.
    inner = max((at for at, step in enumerate(count.path, start=1) if step in WILDCARDS), default=0)
    return f"{number} ({show_path(where[inner:])}{remark})"
