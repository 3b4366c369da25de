"""The table of rules: what is shipped, and what is said about a wrong one."""

from __future__ import annotations

import pytest

from fluence.workloads.rules import RulesError, builtin_rules, load_rules
from fluence.workloads.shapes import OwnerRef

GOOD = """
rules:
  - {kind: Gadget, group: example.com, version: v1, resource: gadgets,
     templates: [spec.template], named-by: object}
"""


def test_the_shipped_table_holds_the_five_kinds() -> None:
    assert [rule.kind for rule in builtin_rules().all] == [
        "Pod",
        "Job",
        "ReplicaSet",
        "Deployment",
        "StatefulSet",
    ]


def test_a_kind_of_another_group_or_version_is_not_ours() -> None:
    rules = builtin_rules()
    assert rules.find("batch/v1", "Job") is not None
    assert rules.find("batch.volcano.sh/v1alpha1", "Job") is None
    assert rules.find("extensions/v1beta1", "Deployment") is None
    assert rules.find("", "") is None


def test_an_owner_is_counted_whatever_version_its_reference_names() -> None:
    """Rule A8: references written by an older API server name its version."""
    rules = builtin_rules()
    assert rules.counted_owner(OwnerRef("apps/v1beta2", "ReplicaSet", "x")) is not None
    assert rules.counted_owner(OwnerRef("v1", "Pod", "driver")) is None
    assert rules.counted_owner(OwnerRef("v1", "ReplicationController", "x")) is None


def test_a_rule_for_a_new_kind_needs_no_code() -> None:
    rule = load_rules("more.yaml", GOOD).find("example.com/v1", "Gadget")
    assert rule is not None
    assert rule.templates == (("spec", "template"),)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("rules: [", ["my.yaml", "line 2"]),
        ("- 1", ["my.yaml", '"rules"']),
        ("rules: 3", ["my.yaml", '"rules"']),
        ("", ["my.yaml", '"rules"']),
        ("rules: [3]", ["my.yaml", "rule 1"]),
        (GOOD.replace("group: example.com, ", ""), ["my.yaml", "rule 1 (Gadget)", '"group"', "required"]),
        (
            GOOD.replace("spec.template", "spec..template"),
            ["rule 1 (Gadget)", '"templates.0"', '"spec..template"'],
        ),
        (GOOD.replace("[spec.template]", "[]"), ["rule 1 (Gadget)", '"templates"']),
        (GOOD.replace("object", "somebody"), ["rule 1 (Gadget)", '"named-by"']),
        (GOOD.replace("named-by", "nmed-by"), ["rule 1 (Gadget)"]),
        (GOOD.replace("}", ", members: [{path: spec.n, default: 0}]}"), ['"members.0.default"', "1"]),
        (GOOD.replace("}", ", members: [{path: spec.n, default: 'x'}]}"), ['"members.0.default"']),
        (GOOD + GOOD.replace("rules:", ""), ["rule 2 (Gadget)", '"kind"', "rule 1"]),
        (
            GOOD.replace("}", ", pods-belong-to: {kind: Gizmo, cut-label: h}}"),
            ["rule 1 (Gadget)", '"pods-belong-to.kind"', "Gizmo"],
        ),
    ],
)
def test_a_wrong_table_is_refused_with_file_rule_and_field(content: str, expected: list[str]) -> None:
    with pytest.raises(RulesError) as error:
        load_rules("my.yaml", content)
    message = str(error.value)
    assert "\n" not in message
    for part in expected:
        assert part in message
