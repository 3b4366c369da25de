"""The condition under which the API server asks us, evaluated by the API server itself.

A registration of its own, for a custom kind in which nothing is forced to be there, with failurePolicy
Fail and nobody listening: an object that meets the condition cannot be created for want of a webhook, one
that does not is created, and a condition that fails would be an error of another kind.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from devcluster.api import ApiFailure
from groups.contract import GROUP_LABEL, SIZE_LABEL
from groups.workloads.rules import Rules, builtin_rules, load_rules
from tests.support import crds
from tests.support.world import World
from webhook.registration import webhooks

GROUP = "webhook-tests.example.com"
RULES = load_rules(
    "test",
    f"""
rules:
  - {{kind: Gadget, group: {GROUP}, version: v1, resource: gadgets, named-by: object,
     templates: [spec.leader.template, spec.worker.template]}}
""",
)
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
#: Nobody else labels what asks for it, and so nothing is labelled before the condition is evaluated.
SCHEDULER = "nobody-listens"
OURS = {"schedulerName": SCHEDULER}
COMPLETE = {"metadata": {"labels": {GROUP_LABEL: "g.1-a", SIZE_LABEL: "3"}}, "spec": OURS}


def labelled(**labels: Any) -> dict[str, Any]:
    keys = {"group": GROUP_LABEL, "size": SIZE_LABEL}
    return {"metadata": {"labels": {keys[name]: value for name, value in labels.items()}}, "spec": OURS}


# Each with whether the API server must ask about it.
SPECS: dict[str, tuple[Any, bool]] = {
    "no-spec": ("absent", False),
    "null-spec": (None, False),
    "spec-of-an-odd-type": ("text", False),
    "no-template": ({}, False),
    "null-leader": ({"leader": None}, False),
    "null-template": ({"leader": {"template": None}}, False),
    "template-of-an-odd-type": ({"leader": {"template": 3}}, False),
    "null-pod-spec": ({"leader": {"template": {"spec": None}}}, False),
    "no-scheduler": ({"leader": {"template": {"spec": {}}}}, False),
    "null-scheduler": ({"leader": {"template": {"spec": {"schedulerName": None}}}}, False),
    "scheduler-of-an-odd-type": ({"leader": {"template": {"spec": {"schedulerName": 3}}}}, False),
    "another-scheduler": ({"leader": {"template": {"spec": {"schedulerName": "volcano"}}}}, False),
    "complete": ({"leader": {"template": COMPLETE}}, False),
    "both-complete": ({"leader": {"template": COMPLETE}, "worker": {"template": COMPLETE}}, False),
    "no-metadata": ({"leader": {"template": {"spec": OURS}}}, True),
    "null-metadata": ({"leader": {"template": {"metadata": None, "spec": OURS}}}, True),
    "no-labels": ({"leader": {"template": {"metadata": {}, "spec": OURS}}}, True),
    "null-labels": ({"leader": {"template": {"metadata": {"labels": None}, "spec": OURS}}}, True),
    "size-alone": ({"leader": {"template": labelled(size="3")}}, True),
    "group-alone": ({"leader": {"template": labelled(group="g")}}, True),
    "bad-size": ({"leader": {"template": labelled(group="g", size="abc")}}, True),
    "size-as-a-number": ({"leader": {"template": labelled(group="g", size=5)}}, True),
    "null-size": ({"leader": {"template": labelled(group="g", size=None)}}, True),
    "empty-group": ({"leader": {"template": labelled(group="", size="3")}}, True),
    "bad-group": ({"leader": {"template": labelled(group="A_b", size="3")}}, True),
    "one-of-two": ({"leader": {"template": COMPLETE}, "worker": {"template": {"spec": OURS}}}, True),
    "the-second-alone": ({"worker": {"template": {"spec": OURS}}}, True),
}


@pytest.fixture
async def gadgets(world: World) -> AsyncIterator[str]:
    """The collection of a custom kind that is registered with a webhook that is never there."""
    await crds.install(world.api, RULES)
    name = f"{world.namespace}.example.com"
    await world.api.post(CONFIGURATIONS, nobody_listens(name, RULES, world))
    try:
        yield f"/apis/{GROUP}/v1/namespaces/{world.namespace}/gadgets"
    finally:
        await world.api.delete(f"{CONFIGURATIONS}/{name}")


def nobody_listens(name: str, rules: Rules, world: World) -> dict[str, Any]:
    """A registration for the namespace of the test alone; connections are refused at once."""
    hooks = webhooks(rules, SCHEDULER, {"url": "https://127.0.0.1:1/mutate"}, "fluence-system", "Fail")
    here = {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}}
    return {
        "metadata": {"name": name},
        "webhooks": [{**hook, "namespaceSelector": here} for hook in hooks],
    }


async def test_the_condition_never_fails_and_asks_about_what_lacks_a_label(
    world: World, gadgets: str
) -> None:
    """Cases C07, C10 and C30: nulls, missing parts and odd types are not ours, or come to us to be judged."""

    async def outcome(name: str) -> str:
        spec = SPECS[name][0]
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": name}}
        try:
            await world.api.post(gadgets, body if spec == "absent" else {**body, "spec": spec})
        except ApiFailure as failure:
            return "asked" if "failed calling webhook" in failure.message else failure.message
        await world.api.delete(f"{gadgets}/{name}")
        return "created"

    async def in_force() -> bool:
        return await outcome("no-metadata") == "asked"

    await world.wait_for(in_force, what="the kind is served and the registration in force")
    expected = {name: "asked" if must else "created" for name, (_, must) in SPECS.items()}
    assert {name: await outcome(name) for name in SPECS} == expected


def pod_spec(scheduler: str | None = SCHEDULER) -> dict[str, Any]:
    asked = {} if scheduler is None else {"schedulerName": scheduler}
    return {**asked, "containers": [{"name": "c", "image": "i"}]}


def built_in(
    kind: str, spec: dict[str, Any] | None, labels: dict[str, str] | None = None
) -> tuple[str, dict[str, Any]]:
    version, resource = BUILT_IN[kind]
    body: dict[str, Any] = {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "labels": labels}}
    if spec is not None:
        body["spec"] = spec
    return f"{'/api/' if version == 'v1' else '/apis/'}{version}/namespaces/NAMESPACE/{resource}", body


BUILT_IN = {
    "Pod": ("v1", "pods"),
    "Job": ("batch/v1", "jobs"),
    "CronJob": ("batch/v1", "cronjobs"),
    "StatefulSet": ("apps/v1", "statefulsets"),
    "ReplicationController": ("v1", "replicationcontrollers"),
}
INVALID = 422
GOOD_LABELS = {GROUP_LABEL: "g", SIZE_LABEL: "2"}


def templates(labels: dict[str, str] | None = None, scheduler: str | None = SCHEDULER) -> dict[str, Any]:
    return {"template": {"metadata": {"labels": labels}, "spec": pod_spec(scheduler)}}


@pytest.mark.parametrize("kind", BUILT_IN)
async def test_the_condition_never_fails_for_what_the_api_server_knows_itself(
    world: World, kind: str
) -> None:
    """Cases C07 and C10, rule W31: built-in kinds are not asked about nulls, so nothing may be amiss there.

    What is incomplete is refused by the API server's own validation, and never for want of an answer.
    """
    name = f"{world.namespace}.example.com"
    await world.api.post(CONFIGURATIONS, nobody_listens(name, builtin_rules(), world))

    async def asked(spec: dict[str, Any] | None, labels: dict[str, str] | None = None) -> bool:
        path, body = built_in(kind, spec, labels)
        try:
            await world.api.post(path.replace("NAMESPACE", world.namespace), body, dryRun="All")
        except ApiFailure as failure:
            if "failed calling webhook" in failure.message:
                return True
            # A condition that cannot be evaluated is answered with 403 under failurePolicy Fail (rule W20).
            if failure.status != INVALID:
                raise
        return False

    def holding(template: dict[str, Any]) -> dict[str, Any]:
        return {"jobTemplate": {"spec": template}} if kind == "CronJob" else template

    try:
        if kind == "Pod":
            await world.wait_for(lambda: asked(pod_spec()), what="the registration is in force")
            incomplete = [None, {}, {"schedulerName": None}, {"schedulerName": ""}, pod_spec(None)]
            assert not any([await asked(spec) for spec in [*incomplete, pod_spec("volcano")]])
            assert not await asked(pod_spec(), GOOD_LABELS)
            assert await asked(pod_spec(), {**GOOD_LABELS, SIZE_LABEL: "many"})
            assert await asked(OURS)
            return
        mistaken = {**GOOD_LABELS, SIZE_LABEL: "many"}
        # A CronJob is left as it is, and only looked at where somebody labelled it.
        unlabelled, labelled = (None, GOOD_LABELS) if kind == "CronJob" else (GOOD_LABELS, mistaken)
        await world.wait_for(lambda: asked(holding(templates(labelled))), what="the registration is in force")
        incomplete = [None, {}, holding({}), holding({"template": None}), holding({"template": {}})]
        incomplete += [holding({"template": {"metadata": None, "spec": None}}), {"jobTemplate": None}]
        others = [holding(templates(labelled, scheduler)) for scheduler in (None, "volcano")]
        assert not any([await asked(spec) for spec in [*incomplete, *others]])
        assert not await asked(holding(templates(unlabelled)))
    finally:
        await world.api.delete(f"{CONFIGURATIONS}/{name}")
