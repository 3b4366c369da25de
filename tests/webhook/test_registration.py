"""The registration is generated from the table of rules, and the chart holds what was generated."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluence.workloads.rules import builtin_rules
from webhook.registration import chart_template, webhooks

TEMPLATE = Path(__file__).parents[2] / "manifests/chart/templates/webhook-registration.yaml"
HOOKS = webhooks(builtin_rules(), "fluence", {"url": "https://127.0.0.1:1/mutate"}, "fluence-system")


def test_the_chart_holds_what_the_table_says() -> None:
    """Run `python -m webhook.registration > manifests/chart/templates/webhook-registration.yaml`."""
    assert TEMPLATE.read_text() == chart_template()


def test_every_rule_is_registered_for_creation_alone() -> None:
    """Case C33, rule W25: templates of running workloads cannot be changed."""
    registered = [(hook["rules"][0]["apiGroups"], hook["rules"][0]["resources"]) for hook in HOOKS]
    assert registered == [([rule.group], [rule.resource]) for rule in builtin_rules().all if rule.templates]
    assert all(hook["rules"][0]["operations"] == ["CREATE"] for hook in HOOKS)


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
