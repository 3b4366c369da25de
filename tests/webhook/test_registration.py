"""The registration is generated from the table of rules, and the chart holds what was generated."""

from __future__ import annotations

from pathlib import Path

import pytest

from groups.workloads.rules import builtin_rules
from webhook.registration import chart_template, webhooks

TEMPLATE = Path(__file__).parents[2] / "manifests/chart/templates/webhook-registration.yaml"
HOOKS = webhooks(builtin_rules(), "fluence", {"url": "https://127.0.0.1:1/mutate"}, "fluence-system")


def test_the_chart_holds_what_the_table_says() -> None:
    """Run `python -m webhook.registration > manifests/chart/templates/webhook-registration.yaml`."""
    assert TEMPLATE.read_text() == chart_template()


def test_every_kind_is_registered_for_creation_alone() -> None:
    """Case C33, rule W25: templates of running workloads cannot be changed."""
    registered = [one for hook in HOOKS for one in hook["rules"]]
    assert [(one["apiGroups"], one["resources"]) for one in registered] == [
        ([rule.group], [rule.resource]) for rule in builtin_rules().all if rule.templates
    ]
    assert all(one["operations"] == ["CREATE"] for one in registered)


def test_each_kind_of_workload_has_a_condition_that_is_true_for_the_others() -> None:
    """Rule W20: all conditions of a webhook must hold, and there are at most 64."""
    pods, workloads = HOOKS
    assert [one["resources"] for one in pods["rules"]] == [["pods"]]
    assert len(workloads["matchConditions"]) == len(workloads["rules"]) <= 64
    for condition, rule in zip(workloads["matchConditions"], workloads["rules"], strict=True):
        [group], [resource] = rule["apiGroups"], rule["resources"]
        assert condition["name"] == f"{resource}.{group}".rstrip(".")
        assert condition["expression"].startswith(
            f'request.resource.group != "{group}" || request.resource.resource != "{resource}"\n|| ('
        )


def test_the_condition_for_other_peoples_pods_asks_no_more_than_it_must() -> None:
    """It is evaluated for every pod of the cluster; what the API server decoded holds no null."""
    assert "null" not in HOOKS[0]["matchConditions"][0]["expression"]
    by_name = {one["name"]: one["expression"] for one in HOOKS[1]["matchConditions"]}
    assert "null" not in by_name["jobs.batch"]
    assert "null" in by_name["jobsets.jobset.x-k8s.io"]


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["name"])
def test_a_lost_webhook_blocks_nobody_and_a_dry_run_is_served(hook: dict[str, object]) -> None:
    """Cases C34 and C135, rules W15 to W18."""
    assert hook["sideEffects"] == "None"
    assert hook["failurePolicy"] == "Ignore"
    assert hook["admissionReviewVersions"] == ["v1"]
    assert str(hook["name"]).count(".") >= 2


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["name"])
def test_namespaces_of_the_cluster_and_of_ours_are_never_sent(
    hook: dict[str, dict[str, list[object]]],
) -> None:
    """Cases C29 and C134."""
    assert hook["namespaceSelector"]["matchExpressions"] == [
        {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": ["kube-system", "kube-public", "kube-node-lease", "fluence-system"],
        }
    ]
