"""Random objects of every kind that the table of rules knows, made from the table itself.

An object is first made whole, with a pod template wherever its rule looks for one and a number wherever it
counts, and then damaged: parts go missing, become null or something of an odd type. A kind that is added to
the table is tried like all others.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

from hypothesis import strategies as st

from groups.workloads.rules import Rule, Rules, builtin_rules
from groups.workloads.schema import Condition, Count
from groups.workloads.shapes import EACH_ITEM, EACH_VALUE
from tests.webhook.reviews import PG, SZ, Object

Tree = dict[str, Any]

# Chosen from lists: to draw letters one by one would take most of the time, and find nothing in shapes.
names = st.sampled_from(["a", "train", "x" * 63, "a" * 200, "llama-2.7b", "-", "A_b", "ä", "", 7])
odd = st.sampled_from([True, 0, -1, 10**20, 0.5, "", "text", "\x00\n", [], [1, [None]], {}, {"a": {"b": 1}}])
schedulers = st.sampled_from(["fluence", "fluence", "fluence", "default-scheduler", "volcano", ""])
counts = st.sampled_from([1, 2, 3, 7, 0, None, -1, 2**31 - 1, 2**31, 10**20, 1.5, "3", True])
label_values = st.sampled_from(["g", "pg1", "3", "2", "g", "3", "", "0", "abc", "A_b", "2147483648", 5, None])
keys = ["app", "a/b~c", PG, SZ, "pod-template-hash", "fluence.pod-group", "spark-role"]
labels = st.none() | st.dictionaries(st.sampled_from(keys), label_values, max_size=3)
OWNERS: list[Any] = [
    [{"apiVersion": version, "kind": kind, "name": name, "uid": "o", "controller": True}]
    for version, kind in [("batch/v1", "Job"), ("apps/v1", "ReplicaSet"), ("apps/v1", "DaemonSet"),
                          ("example.com/v1", "Thing"), ("jobset.x-k8s.io/v1alpha2", "JobSet")]
    for name in ("owner", "o" * 70)
]  # fmt: skip
OWNERS += [[], None, [None], [{"kind": "Job"}], [{"controller": True}], {"kind": "Job"}]
metadata = st.fixed_dictionaries(
    {"labels": labels, "name": names},
    optional={
        "generateName": names,
        "annotations": st.sampled_from([None, {}, {"kubernetes.io/config.mirror": ""}, {"a": "b"}]),
        "ownerReferences": st.sampled_from(OWNERS),
    },
)
pod_specs = st.fixed_dictionaries({"schedulerName": schedulers, "containers": st.just([{"name": "c"}])})
templates = st.fixed_dictionaries({"spec": pod_specs}, optional={"metadata": metadata})


def paths_of(rule: Rule) -> dict[tuple[str, ...], st.SearchStrategy[Any]]:
    """What stands where in a whole object of this kind."""
    found: dict[tuple[str, ...], st.SearchStrategy[Any]] = {}

    def condition(one: Condition) -> None:
        found.setdefault(tuple(one.path), st.sampled_from([one.equals, one.equals, None, True, "x"]))

    def count(one: Count) -> None:
        if one.path is not None:
            found.setdefault(tuple(one.path), counts)
        if one.when is not None:
            condition(one.when)
        for part in one.parts:
            count(part)

    for template in rule.templates:
        if template.path:
            found[tuple(template.path)] = templates
        count(template.pods)
        if template.most is not None:
            count(template.most)
        for one in template.own_group.when if template.own_group is not None else ():
            condition(one)
    for wanted in (rule.at_most,):
        if wanted is not None:
            count(wanted)
    if rule.gang_when is not None:
        condition(rule.gang_when)
    for hint in rule.hints:
        condition(hint.when)
    return found


def _tree(paths: dict[tuple[str, ...], st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """A strategy for the object that has something at each of these paths."""
    if () in paths and len(paths) == 1:
        return paths[()]
    below: dict[str, dict[tuple[str, ...], st.SearchStrategy[Any]]] = {}
    for path, value in paths.items():
        if path:
            below.setdefault(path[0], {})[path[1:]] = value
    if EACH_ITEM in below:
        return st.lists(_tree(below[EACH_ITEM]), max_size=3)
    if EACH_VALUE in below:
        replicas = st.sampled_from(["Worker", "Master", "Chief", "a/b~c", ""])
        return st.dictionaries(replicas, _tree(below[EACH_VALUE]), max_size=3)
    return st.fixed_dictionaries({step: _tree(inner) for step, inner in below.items()})


@functools.cache
def whole(rule: Rule) -> st.SearchStrategy[Object]:
    """An object of this kind with all the parts that its rule knows."""
    known = st.fixed_dictionaries({"metadata": metadata})
    if any(not template.path for template in rule.templates):
        known = st.fixed_dictionaries({"metadata": metadata, "spec": pod_specs})
    inner = _tree(paths_of(rule)) if any(paths_of(rule)) else st.just({"spec": {}})
    type_ = {
        "apiVersion": f"{rule.group}/{rule.versions[0]}" if rule.group else rule.versions[0],
        "kind": rule.kind,
    }
    return st.builds(lambda a, b: {**type_, **b, **a}, known, inner)


def _steps(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path in a plain value, except those to type and version."""
    found = [path] if path and path[0] not in ("apiVersion", "kind") else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += _steps(inner, (*path, key))
    return found


MISSING = object()
losses = st.sampled_from([MISSING, MISSING, None, None]) | odd
damages = st.lists(st.tuples(st.integers(0, 999), losses), max_size=3)


def damaged(obj: Object, hits: list[tuple[int, Any]]) -> Object:
    """`obj`, changed in place: at each hit a part is lost or replaced."""
    for where, what in hits:
        steps = _steps(obj)
        if not steps:
            break
        *way, last = steps[where % len(steps)]
        holder: Any = obj
        for step in way:
            holder = holder[step]
        if what is MISSING:
            del holder[last]
        else:
            holder[last] = copy.deepcopy(what)
    return obj


def objects(rules: Rules | None = None) -> st.SearchStrategy[Object]:
    """An object of any kind in the table, whole or damaged."""
    table = {f"{rule.kind}.{rule.group}": rule for rule in (rules or builtin_rules()).all}
    return st.sampled_from(sorted(table)).flatmap(
        # A copy, since what was chosen from a list is shared.
        lambda kind: st.builds(
            lambda obj, hits: damaged(copy.deepcopy(obj), hits), whole(table[kind]), damages
        )
    )
