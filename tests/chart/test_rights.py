"""Each process has only the rights that it needs. (That they are enough is tested on clusters.)"""

from typing import Any

import pytest

from tests.chart.conftest import PROCESSES, Render, Rendered

_READ = {"get", "list", "watch"}


def rules_of(chart: Rendered, process: str) -> list[dict[str, Any]]:
    name = f"fluence-{process}"
    return [
        *chart.one("ClusterRole", name)["rules"],
        *chart.one("Role", name)["rules"],
    ]


def verbs(chart: Rendered, process: str, group: str, resource: str) -> set[str]:
    return {
        verb
        for rule in rules_of(chart, process)
        if group in rule["apiGroups"] and resource in rule["resources"]
        for verb in rule["verbs"]
    }


def written(chart: Rendered, process: str) -> dict[str, set[str]]:
    """What a process may write: resource -> verbs."""
    found: dict[str, set[str]] = {}
    for rule in rules_of(chart, process):
        for resource in rule["resources"]:
            if changing := set(rule["verbs"]) - _READ:
                found.setdefault(resource, set()).update(changing)
    return found


def test_no_rule_has_a_wildcard(render: Render) -> None:
    """Case C141: rules name verbs and resources."""
    for one in render().objects:
        for rule in one.get("rules", []):
            for key in ("apiGroups", "resources", "verbs"):
                if key in rule:
                    assert "*" not in rule[key], one["metadata"]["name"]


@pytest.mark.parametrize("process", PROCESSES)
def test_each_process_has_an_account_with_its_own_roles_only(chart: Rendered, process: str) -> None:
    name = f"fluence-{process}"
    account = {"kind": "ServiceAccount", "name": name, "namespace": "fluence-system"}
    assert chart.one("ServiceAccount", name)["metadata"]["namespace"] == "fluence-system"
    bindings = [*chart.of("ClusterRoleBinding"), *chart.of("RoleBinding")]
    bound = [
        (one["roleRef"]["kind"], one["roleRef"]["name"]) for one in bindings if account in one["subjects"]
    ]
    assert bound == [("ClusterRole", name), ("Role", name)]
    assert chart.pod(process)["serviceAccountName"] == name


def test_the_webhook_changes_its_secret_and_its_registration_only(chart: Rendered) -> None:
    """Case C141: no right on pods or PodGroups; Secrets only by name in the release namespace."""
    assert written(chart, "webhook") == {
        "secrets": {"create", "update"},
        "mutatingwebhookconfigurations": {"patch"},
    }
    for rule in rules_of(chart, "webhook"):
        assert rule["verbs"] == ["create"] or rule["resourceNames"] in (["fluence"], ["fluence-webhook-tls"])
        assert not {"pods", "podgroups"} & set(rule["resources"])
    assert not any(
        "secrets" in rule["resources"] for rule in chart.one("ClusterRole", "fluence-webhook")["rules"]
    )


def test_the_controller_changes_podgroups_and_labels_of_pods(chart: Rendered) -> None:
    assert written(chart, "controller") == {
        "pods": {"patch"},
        "podgroups": {"create", "patch", "delete"},
        "podgroups/status": {"patch"},
        "events": {"create", "patch"},
        "leases": {"create", "update"},
    }


def test_the_scheduler_changes_bindings_and_conditions(chart: Rendered) -> None:
    """Rule B8: create on pods/binding."""
    assert written(chart, "scheduler") == {
        "pods": {"delete"},
        "pods/binding": {"create"},
        "pods/status": {"patch"},
        "podgroups/status": {"patch"},
        "events": {"create", "patch"},
        "leases": {"create", "update"},
    }
    assert {"list", "watch"} <= verbs(chart, "scheduler", "", "nodes")


@pytest.mark.parametrize("process", ["controller", "scheduler"])
def test_a_process_may_update_its_own_lease_and_no_other(chart: Rendered, process: str) -> None:
    arguments = chart.pod(process)["containers"][0]["args"]
    [lease] = [one.partition("=")[2] for one in arguments if one.startswith(f"--{process}-lease=")]
    names = [
        rule["resourceNames"]
        for rule in rules_of(chart, process)
        if "leases" in rule["resources"] and rule["verbs"] != ["create"]
    ]
    assert names == [[lease]]
