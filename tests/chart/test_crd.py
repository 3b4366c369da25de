"""The PodGroup CRD: one file for helm and kubectl, with all fields of PodGroups of other projects."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from devcluster.binaries import kubectl
from devcluster.cluster import RunningCluster
from devcluster.paths import CHART
from tests.chart.conftest import Rendered

CRD = CHART / "crds" / "podgroups.yaml"
NAME = "podgroups.scheduling.x-k8s.io"

Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def kube(cluster: RunningCluster, namespace: str) -> Kubectl:
    """kubectl in the test's namespace."""

    def run(*arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [kubectl(), f"--kubeconfig={cluster.kubeconfig}", f"--namespace={namespace}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def pod_group(name: str = "g", status: dict[str, Any] | None = None, **spec: object) -> str:
    body = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": spec,
        **({"status": status} if status else {}),
    }
    return json.dumps(body)


def test_helm_installs_the_file_unchanged(chart: Rendered) -> None:
    """Case C138: helm renders no templates in crds/, so template text would reach the API server."""
    assert "{{" not in CRD.read_text()
    assert chart.one("CustomResourceDefinition", NAME) == yaml.safe_load(CRD.read_text())


def test_there_is_no_conversion_webhook_and_the_group_is_approved() -> None:
    """Case C138."""
    crd = yaml.safe_load(CRD.read_text())
    assert crd["spec"]["conversion"] == {"strategy": "None"}
    assert crd["metadata"]["annotations"]["api-approved.kubernetes.io"].startswith("https://")


def test_kubectl_applies_the_same_file(kube: Kubectl) -> None:
    ended = kube("apply", "--dry-run=server", "-f", str(CRD))
    assert ended.returncode == 0, ended.stderr


def test_columns_are_those_of_the_contract(kube: Kubectl) -> None:
    """Case C138 and docs/contract.md."""
    assert kube("create", "-f", "-", stdin=pod_group(minMember=3)).returncode == 0
    narrow = kube("get", NAME).stdout.splitlines()
    wide = kube("get", NAME, "-o", "wide").stdout.splitlines()
    columns = ["NAME", "PHASE", "MINMEMBER", "RUNNING", "SUCCEEDED", "FAILED", "AGE"]
    assert narrow[0].split() == columns
    assert wide[0].split() == [*columns, "REASON", "CREATED"]


@pytest.mark.parametrize(
    "moment", ["2024-05-06T07:08:09Z", "2024-05-06T07:08:09.000000Z", "2024-05-06T07:08:09.123456Z"]
)
def test_times_of_either_precision_are_kept_as_they_were_written(kube: Kubectl, moment: str) -> None:
    """Case C42: a CRD that parsed times would drop their microseconds or refuse them."""
    assert kube("create", "-f", "-", stdin=pod_group(minMember=1)).returncode == 0
    status = json.dumps({"status": {"creationTime": moment, "scheduleStartTime": moment}})
    ended = kube("patch", NAME, "g", "--subresource=status", "--type=merge", "-p", status)
    assert ended.returncode == 0, ended.stderr
    # The controller did not make this group: it fills in missing fields and leaves the others.
    kept = json.loads(kube("get", NAME, "g", "-o", "json").stdout)["status"]
    assert kept["scheduleStartTime"] == moment


def test_a_group_as_scheduler_plugins_writes_it_is_served(kube: Kubectl) -> None:
    full = pod_group(minMember=2, minResources={"cpu": 3, "memory": "1Gi"}, scheduleTimeoutSeconds=10)
    assert kube("create", "--validate=strict", "-f", "-", stdin=full).returncode == 0
    status = {"phase": "Scheduling", "occupiedBy": "default/x", "scheduled": 1, "running": 0, "failed": 0}
    ended = kube(
        "patch", NAME, "g", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status})
    )
    assert ended.returncode == 0, ended.stderr
    spec = json.loads(kube("get", NAME, "g", "-o", "json").stdout)["spec"]
    assert spec == {
        "minMember": 2,
        "minResources": {"cpu": 3, "memory": "1Gi"},
        "scheduleTimeoutSeconds": 10,
    }


def test_a_minimum_below_one_is_refused(kube: Kubectl) -> None:
    ended = kube("create", "-f", "-", stdin=pod_group(minMember=0))
    assert ended.returncode != 0
    assert "spec.minMember" in ended.stderr


def test_status_is_a_subresource(kube: Kubectl) -> None:
    """A user who applies a whole object must not overwrite the counts of the controller."""
    assert kube("create", "-f", "-", stdin=pod_group(status={"running": 7}, minMember=1)).returncode == 0
    assert json.loads(kube("get", NAME, "g", "-o", "json").stdout).get("status", {}).get("running", 0) == 0


def test_the_short_names_work(kube: Kubectl) -> None:
    assert kube("create", "-f", "-", stdin=pod_group(minMember=1)).returncode == 0
    for name in ("pg", "pgs"):
        assert kube("get", name, "-o", "name").stdout.strip() == "podgroup.scheduling.x-k8s.io/g"
