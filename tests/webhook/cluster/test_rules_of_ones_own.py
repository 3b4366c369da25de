"""A kind that nobody shipped a rule for, labelled by a file of ten lines in a running webhook."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.api import ApiFailure
from devcluster.cluster import RunningCluster
from fluence.commands.rules import chart_values
from groups.contract import GROUP_LABEL, SCHEDULER_NAME, SIZE_LABEL
from groups.workloads.rules import load_rules
from tests.support import crds
from tests.support.world import World

pytestmark = pytest.mark.xdist_group("own webhook cluster")

REGISTRATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/fluence"
GROUP = "own-rules.example.com"
TEN_LINES = f"""\
rules:
  - kind: Gadget
    group: {GROUP}
    version: v1
    resource: gadgets
    templates:
      - path: spec.leader.template
      - path: spec.crew[*].template
        pods: {{path: "spec.crew[*].count", default: 1}}
  - {{kind: ReplicaSet, group: apps, version: v1, resource: replicasets, untouched: {{because: we say so}}}}
"""


@pytest.fixture
async def world(own_cluster: RunningCluster, own_world: World, tmp_path: Path) -> AsyncIterator[World]:
    """A cluster whose webhook goes by the file, installed as the values of the chart have it."""
    file = tmp_path / "rules.yaml"
    file.write_text(TEN_LINES)
    webhook = own_cluster.process("webhook")
    before = (await own_world.api.get(REGISTRATION))["webhooks"]
    await asyncio.to_thread(webhook.stop)
    try:
        await asyncio.to_thread(webhook.start, f"--rules={file}")
        await own_world.api.patch(REGISTRATION, {"webhooks": with_rules(before)})
        await crds.install(own_world.api, load_rules("ours", TEN_LINES))
        yield own_world
    finally:
        await own_world.api.patch(REGISTRATION, {"webhooks": before})
        await asyncio.to_thread(webhook.stop)
        await asyncio.to_thread(webhook.start)


def with_rules(webhooks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the chart makes of the values that `fluence rules registration` prints."""
    values = chart_values(load_rules("ours", TEN_LINES), TEN_LINES)["webhook"]
    assert values["replacedKinds"] == ["replicasets.apps"]
    text = yaml.safe_dump(values["extraWebhooks"]).replace("{{ .Values.schedulerName }}", SCHEDULER_NAME)
    pods, workloads = webhooks
    workloads = {
        **workloads,
        "rules": [one for one in workloads["rules"] if "replicasets" not in one["resources"]],
        "matchConditions": [
            one for one in workloads["matchConditions"] if one["name"] not in values["replacedKinds"]
        ],
    }
    return [pods, workloads, *({**pods, **one} for one in yaml.safe_load(text))]


def gadget(world: World, name: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    template = {"spec": world.pod("x")["spec"]}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Gadget",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"leader": {"template": template}, "crew": [{"count": 3, "template": template}]},
    }


async def test_an_unknown_kind_is_labelled_without_touching_code(world: World) -> None:
    """And a kind of ours for which the file has a rule goes by that one."""
    path = f"/apis/{GROUP}/v1/namespaces/{world.namespace}/gadgets"

    async def made() -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = await world.api.post(path, gadget(world, "g"), dryRun="All")
        except ApiFailure:
            return None
        return found if "metadata" in found["spec"]["leader"]["template"] else None

    found = await world.wait_for(made, what="the kind is served and the registration in force")
    expected = {GROUP_LABEL: f"fluence-group-{world.namespace}-gadget.g", SIZE_LABEL: "4"}
    templates = [found["spec"]["leader"]["template"], found["spec"]["crew"][0]["template"]]
    assert [one["metadata"]["labels"] for one in templates] == [expected, expected]
    with pytest.raises(ApiFailure, match="is not a group size"):
        await world.api.post(path, gadget(world, "bad", {SIZE_LABEL: "many"}), dryRun="All")

    spec = {**world.pod("x")["spec"], "restartPolicy": "Always"}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": spec}
    body = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "r"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template},
    }
    sets = f"/apis/apps/v1/namespaces/{world.namespace}/replicasets"
    untouched = await world.api.post(sets, body, dryRun="All")
    assert untouched["spec"]["template"]["metadata"]["labels"] == {"app": "a"}
    (job,) = await world.create(world.job("j", 2))
    assert SIZE_LABEL in job["spec"]["template"]["metadata"]["labels"]
