"""Default names of groups: different workloads of a namespace never meet in one group (A1, N06)."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

from groups.contract import is_group_name
from groups.errors import FluenceError
from groups.names import pod_group_name, whole_group_name, workload_group_name
from groups.objects import OwnerReference
from groups.workloads.adopt import PodIdentity, adopt
from groups.workloads.grouping import workload_name
from groups.workloads.reading import Workload
from groups.workloads.rules import Rule, builtin_rules, load_rules

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


@given(LABEL, NAMES, st.sampled_from([rule for rule in RULES if rule.is_counted]))
@settings(deadline=None)
def test_a_pod_without_labels_gets_the_group_that_its_workload_would_have(
    namespace: str, name: str, rule: Rule
) -> None:
    """A8: the webhook names a workload, the controller its pods; both must come to one group."""
    owner = OwnerReference(rule.kind, name, "u", f"{rule.group}/{rule.versions[0]}".lstrip("/"))
    pod = PodIdentity(namespace, f"{name}-x", owner=owner)
    assert adopt(pod).group_name == named(rule, namespace, name, "")


@given(NAMES, NAMES)
def test_an_administrators_jobs_may_have_parts(name: str, part: str) -> None:
    """With a rule in place of ours, a Job with a dot in its name must not be a part of another Job."""
    assert whole_group_name("ns", "job", f"{name}.{part}") != workload_group_name("ns", "job", name, part)


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


def test_the_administrators_own_rule_is_the_one_to_change() -> None:
    """Also where it takes the place of ours, which stands before the other one in the table."""
    job = (
        "{kind: Job, group: batch, version: v1, resource: jobs, templates: [spec.template], word: deployment}"
    )
    with pytest.raises(
        FluenceError, match=r"own\.yaml: rule \(Job\).*Deployment of apps already, in kubernetes"
    ):
        builtin_rules().extended(load_rules("own.yaml", f"rules: [{job}]"))


def test_no_kind_takes_the_word_of_pods() -> None:
    with pytest.raises(FluenceError, match='"pod" is kept for pods'):
        load_rules("own.yaml", RULE.format(kind="Pod", more=""))


TEAM = """rules:
  - kind: Pod
    group: ""
    version: v1
    resource: pods
    templates: ["."]
    named-by: pod
    teams:
      - {word: WORD, name-label: a/n, number-label: a/i, size-annotation: a/s}
"""


@pytest.mark.parametrize("word", ["job", "pod", "deployment", "vcjob"])
def test_teams_do_not_take_the_word_of_a_kind_that_is_in_a_group(word: str) -> None:
    """The team "b" of "a" and an object "a.b" would be one name."""
    own = load_rules("own.yaml", TEAM.replace("WORD", "crew"))
    assert builtin_rules().extended(own).all
    with pytest.raises(FluenceError, match=r'field "teams.0.word": ".*" must not be the word of a kind'):
        builtin_rules().extended(load_rules("own.yaml", TEAM.replace("WORD", word)))
