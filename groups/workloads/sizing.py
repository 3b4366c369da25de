"""How many members must start together: an object and its rule give numbers (rule A7). Pure.

Owns: finding the pod templates of an object, counting the pods of each, and adding them up to a gang.
Does not own: the rules, or which labels the user wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groups.contract import GROUP_LABEL, MAX_GROUP_SIZE, SIZE_FROM_ANNOTATION, SIZE_FROM_RULE, SIZE_LABEL
from groups.workloads.schema import Condition, Count, Rule, Template
from groups.workloads.shapes import Path, Place, bind, lookup, places, show_path


@dataclass(frozen=True)
class Part:
    """One pod template of an object. `suffix` is not empty where its pods are a group beside the object's."""

    place: Place
    template: Template
    suffix: str = ""

    def pods(self, obj: Mapping[str, Any]) -> int:
        """How many pods made from it must start together."""
        return _at_least_none(evaluate(self.template.pods, obj, self.place))

    def most(self, obj: Mapping[str, Any]) -> int:
        """How many pods will ever be made from it."""
        return _at_least_none(evaluate(self.template.most or self.template.pods, obj, self.place))


def parts_of(rule: Rule, obj: Mapping[str, Any]) -> list[Part]:
    """The places where `obj` has, or could have, pod templates."""
    return [
        Part(place, template, _suffix(template, obj, place))
        for template in rule.templates
        for place in places(obj, template.path)
    ]


def opted_in(obj: Mapping[str, Any], place: Place, scheduler_name: str) -> bool:
    """Whether the pod template at `place` asks for our scheduler (rule A2)."""
    return bool(lookup(obj, (*place, "spec", "schedulerName")) == scheduler_name)


def count_members(rule: Rule, obj: Mapping[str, Any], scheduler_name: str | None = None) -> int:
    """The size of the gang of `obj`: from 1 to the largest int32, whatever it contains.

    Pods of other schedulers do not count, as far as their templates can be seen, because we never place
    them. Templates that have a group of their own do not count either.
    """
    parts = parts_of(rule, obj)
    if scheduler_name is not None:
        # Where no template asks for us, the pods got our scheduler by other means: then all of them count.
        parts = [part for part in parts if opted_in(obj, part.place, scheduler_name)] or parts
    return gang_size(rule, obj, [part for part in parts if not part.suffix])


def members_by_group(
    rule: Rule, obj: Mapping[str, Any], scheduler_name: str | None = None, *, stated: int | None = None
) -> dict[str, int]:
    """The present size of each group that the templates of `obj` are labelled with; empty without labels.

    An object can have several groups, for example one for each replicated Job of a JobSet that starts them in
    order. `count_members` gives the size of the object's own group only. `stated` is the size that the user
    wrote on the object: it counts for the templates that have no group beside the object's (A3).
    """
    parts = parts_of(rule, obj)
    if scheduler_name is not None:
        parts = [part for part in parts if opted_in(obj, part.place, scheduler_name)]
    groups: dict[str, list[Part]] = {}
    for part in parts:
        name = lookup(obj, (*part.place, "metadata", "labels", GROUP_LABEL))
        if isinstance(name, str) and name:
            groups.setdefault(name, []).append(part)
    sizes = {name: size_of_group(rule, obj, parts, members) for name, members in groups.items()}
    if stated is not None:
        sizes |= {name: stated for name, members in groups.items() if any(not one.suffix for one in members)}
    return sizes


def has_counted_size(rule: Rule, obj: Mapping[str, Any]) -> bool:
    """Whether the size label on the object itself is one that a rule counted for a template.

    The API server gives a Job without labels those of its template, and so also the counted size.
    """
    size = lookup(obj, ("metadata", "labels", SIZE_LABEL))
    templates = [lookup(obj, (*part.place, "metadata")) for part in parts_of(rule, obj) if part.place]
    return any(
        lookup(one, ("annotations", SIZE_FROM_ANNOTATION)) == SIZE_FROM_RULE
        and lookup(one, ("labels", SIZE_LABEL)) == size
        for one in templates
        if isinstance(one, dict)
    )


def size_of_group(rule: Rule, obj: Mapping[str, Any], parts: Iterable[Part], members: Sequence[Part]) -> int:
    """The size of the group of the templates `members`, where `parts` are all templates that ask for us.

    The user's own limit is about the object as a whole, and not about a group of some of its templates.
    """
    places_of_members = {part.place for part in members}
    own = [part.place for part in parts if not part.suffix]
    is_whole = bool(own) and places_of_members.issuperset(own)
    return gang_size(rule, obj, members, limited=is_whole)


def gang_size(rule: Rule, obj: Mapping[str, Any], parts: Iterable[Part], *, limited: bool = True) -> int:
    """The size of the gang that the pods of these templates form; `limited` where it is the object's own."""
    if not is_gang(rule, obj):
        return 1
    size = sum(part.pods(obj) for part in parts)
    if limited and rule.at_most is not None and (bound := evaluate(rule.at_most, obj, ())) is not None:
        size = min(size, bound)
    # Zero replicas count as one: the field may grow, and a group of none can never be (case C15).
    return min(max(size, 1), MAX_GROUP_SIZE)


def is_gang(rule: Rule, obj: Mapping[str, Any]) -> bool:
    """Whether the pods start together at all, and not one after another."""
    return rule.gang_when is None or holds(rule.gang_when, obj)


def holds(condition: Condition, obj: Mapping[str, Any], place: Place = ()) -> bool:
    """Whether a condition holds for `obj`, or for that item of it which `place` leads through."""
    return condition.holds(lookup(obj, _bound(condition.path, place)))


def evaluate(count: Count, obj: Mapping[str, Any], place: Place) -> int | None:
    """The number that a count gives; None for a field that is missing and has no default."""
    if count.fixed is not None:
        return count.fixed
    if count.path is not None:
        value = lookup(obj, _bound(count.path, place))
        # A bool is an int to Python. Numbers of any other shape are for the API server to refuse.
        if isinstance(value, int) and not isinstance(value, bool):
            # Sums and products of what lies in these bounds keep their order, however large they grow.
            return min(max(value, 0), MAX_GROUP_SIZE)
        return count.default
    if count.when is not None and count.then is not None and count.else_ is not None:
        return evaluate(count.then if holds(count.when, obj, place) else count.else_, obj, place)
    return _together(count, [n for part in count.parts if (n := evaluate(part, obj, place)) is not None])


def _together(count: Count, numbers: Sequence[int]) -> int | None:
    """A field without a value takes no part: it bounds nothing and multiplies nothing."""
    if not numbers:
        return None
    if count.smallest:
        return min(numbers)
    if count.largest:
        return max(numbers)
    if count.sum:
        return min(sum(numbers), MAX_GROUP_SIZE)
    product = 1
    for number in numbers:
        product = min(product * number, MAX_GROUP_SIZE)
    return product


def _suffix(template: Template, obj: Mapping[str, Any], place: Place) -> str:
    own = template.own_group
    if own is None or (own.when and not any(holds(condition, obj, place) for condition in own.when)):
        return ""
    if own.suffix_from is None:
        return own.suffix or ""
    found = lookup(obj, _bound(own.suffix_from, place))
    return found if isinstance(found, str) and found else show_path(place)


def _bound(path: Path, place: Place) -> Place:
    return bind(path, place) if place else path


def _at_least_none(number: int | None) -> int:
    return 1 if number is None else number
