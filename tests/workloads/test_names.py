"""Default names of groups: different workloads of a namespace never meet in one group (A1, N06)."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

from groups.contract import is_group_name
from groups.errors import FluenceError
from groups.names import pod_group_name
from groups.workloads.grouping import workload_name
from groups.workloads.reading import Workload
from groups.workloads.rules import builtin_rules, load_rules

RULES = [rule for rule in builtin_rules().all if rule.named_by == "object"]
LABEL = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,6}[a-z0-9])?", fullmatch=True)
NAMES = st.lists(LABEL, min_size=1, max_size=3).map(".".join)
WORDS = st.sampled_from([rule.word for rule in RULES])
#: What is written so that it looks like another's name: words and parts as names.
TRICKY = st.one_of(NAMES, st.builds("{}.{}".format, WORDS, NAMES), st.builds("pod.{}".format, NAMES))
KINDS = st.sampled_from([None, *RULES])


def named(kind: object, namespace: str, name: str, part: str) -> str:
    if kind is None:
        return pod_group_name(namespace, name)
    return workload_name(Workload({"metadata": {"name": name}}, namespace), kind, part)  # type: ignore[arg-type]


@st.composite
def identities(draw: st.DrawFn, namespace: str) -> tuple[object, str, str]:
    kind = draw(KINDS)
    name = draw(st.one_of(TRICKY, st.builds(f"{namespace}-{{}}".format, TRICKY)))
    part = draw(st.one_of(st.just(""), NAMES)) if kind is not None and kind.has_parts else ""
    return kind, name, part


@given(LABEL, st.data())
@settings(max_examples=1500, deadline=None)
def test_different_workloads_of_a_namespace_have_different_groups(
    namespace: str, data: st.DataObject
) -> None:
    """A1 and N06, over every kind of the table, bare pods and parts of objects."""
    first, second = data.draw(identities(namespace)), data.draw(identities(namespace))
    one, two = named(first[0], namespace, *first[1:]), named(second[0], namespace, *second[1:])
    assert is_group_name(one)
    assert (one == two) is (first == second)


@given(NAMES, NAMES, NAMES)
@example("a", "b", "c")
@settings(deadline=None)
def test_dots_in_names_and_parts_do_not_make_one_name_of_two(name: str, middle: str, part: str) -> None:
    rule = next(rule for rule in RULES if rule.has_parts)
    names = {
        named(rule, "ns", f"{name}.{middle}.{part}", ""),
        named(rule, "ns", f"{name}.{middle}", part),
        named(rule, "ns", name, f"{middle}.{part}"),
    }
    assert len(names) == 3


@pytest.mark.parametrize(
    ("kind", "name", "part", "expected"),
    [
        ("Job", "llama", "", "fluence-group-default-llama"),
        ("Job", "a.b", "", "fluence-group-default-job.a.b"),
        ("Deployment", "llama", "", "fluence-group-default-deployment.llama"),
        ("JobSet", "js", "", "fluence-group-default-jobset.js"),
        ("JobSet", "js", "a", "fluence-group-default-jobset.js.a"),
        (None, "llama", "", "fluence-group-llama"),
        (None, "default-llama", "", "fluence-group-pod.default-llama"),
        (None, "pod.x", "", "fluence-group-pod.pod.x"),
    ],
)
def test_plain_names_are_what_the_documentation_shows(
    kind: str | None, name: str, part: str, expected: str
) -> None:
    rule = next(
        (
            rule
            for rule in RULES
            if (rule.kind, rule.group) != ("Job", "batch.volcano.sh") and rule.kind == kind
        ),
        None,
    )
    assert named(rule, "default", name, part) == expected


def test_volcanos_job_is_not_a_job_of_kubernetes() -> None:
    words = {(rule.group, rule.kind): rule.word for rule in RULES}
    assert words["batch", "Job"] == "job"
    assert words["batch.volcano.sh", "Job"] == "vcjob"
    assert len(set(words.values())) == len(words)


RULE = """rules:
  - {{kind: {kind}, group: example.com, version: v1, resource: things, templates: [spec.template]{more}}}
"""


def test_an_administrators_kind_gets_a_word_or_a_sentence() -> None:
    """Two kinds of one word would share groups."""
    own = load_rules("own.yaml", RULE.format(kind="Gadget", more=""))
    assert own.all[0].word == "gadget"
    same = load_rules("own.yaml", RULE.format(kind="Deployment", more=""))
    with pytest.raises(FluenceError, match='"deployment" is the word of Deployment of apps already'):
        builtin_rules().extended(same)
    other = load_rules("own.yaml", RULE.format(kind="Deployment", more=", word: exdeployment"))
    assert "exdeployment" in {rule.word for rule in builtin_rules().extended(other).all}
    with pytest.raises(FluenceError, match='field "word"'):
        load_rules("own.yaml", RULE.format(kind="Gadget", more=", word: a.b"))
