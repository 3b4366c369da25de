"""Custom resources as owners: counted by their rule from the first pod that names one (rule A8)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from controller.lookup import OwnerLookup
from controller.objects import CustomWorkload
from controller.owners import Owner, OwnerState, owner_of, read_workload
from groups.contract import GROUP_LABEL, SIZE_LABEL
from groups.objects import OwnerReference
from groups.workloads.rules import builtin_rules
from kube.errors import Forbidden, NotFound
from tests.webhook.manifests import foreign, jobset, mpijob, parallel, ray_cluster

RULES = builtin_rules()
Object = dict[str, Any]


def reference(obj: Object, uid: str = "u") -> OwnerReference:
    return OwnerReference(obj["kind"], obj["metadata"]["name"], uid, obj["apiVersion"], controller=True)


def with_uid(obj: Object, uid: str = "u") -> Object:
    return {**obj, "metadata": {**obj["metadata"], "uid": uid, "namespace": "ns"}}


def described(obj: Object, status: Any = None, **meta: Any) -> Owner:
    rule = RULES.find(obj["apiVersion"], obj["kind"])
    assert rule is not None
    whole = with_uid(obj)
    whole["metadata"] |= meta
    wire = msgspec.convert({**whole, "status": status}, CustomWorkload)
    return owner_of(reference(obj), read_workload(rule, wire, "fluence"))


class Server:
    """What a lookup asks for, from objects by their path; an error is raised instead."""

    def __init__(self, **objects: Object | Exception) -> None:
        self.objects = objects
        self.asked: list[str] = []

    async def get_as(self, path: str, kind: type[Any]) -> Any:
        self.asked.append(path)
        found = self.objects.get(path.rpartition("/")[2], NotFound(404, "none"))
        if isinstance(found, Exception):
            raise found
        return msgspec.convert(found, kind)


def lookup(server: Server) -> OwnerLookup:
    return OwnerLookup(server, RULES, lambda _uid: None)  # type: ignore[arg-type]  # it only gets


def test_a_custom_resource_is_counted_by_its_rule() -> None:
    """Rules A7 and A8: templates of other schedulers are no part of the gang."""
    assert described(mpijob("pi", Launcher=1, Worker=2)).members == 3
    assert described(ray_cluster("rc", {"replicas": 2, "numOfHosts": 2})).members == 5
    mixed = mpijob("pi", Launcher=1, Worker=2)
    mixed["spec"]["mpiReplicaSpecs"]["Launcher"]["template"] = foreign()
    assert described(mixed).members == 2
    # None asks for us, but its pods did, or nobody would ask: then something else told them to.
    assert described(jobset("js", ("a", parallel(3), 2), pods=foreign())).members == 6


def test_a_size_on_the_object_counts_first() -> None:
    """Rule A3."""
    assert described(mpijob("pi", Launcher=1, Worker=2), labels={SIZE_LABEL: "2"}).members == 2


@pytest.mark.parametrize(
    ("obj", "status", "state"),
    [
        (mpijob("pi", Worker=1), None, OwnerState.ACTIVE),
        (mpijob("pi", Worker=1), {"conditions": None}, OwnerState.ACTIVE),
        (mpijob("pi", Worker=1), {"conditions": [{"type": "Running", "status": "True"}]}, OwnerState.ACTIVE),
        (mpijob("pi", Worker=1), {"conditions": [{"type": "Failed", "status": "False"}]}, OwnerState.ACTIVE),
        (
            mpijob("pi", Worker=1),
            {"conditions": [{"type": "Succeeded", "status": "True"}]},
            OwnerState.FINISHED,
        ),
        (jobset("js"), {"conditions": [{"type": "Completed", "status": "True"}]}, OwnerState.FINISHED),
        (
            {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "v"}},
            {"state": {"phase": "Completed"}},
            OwnerState.FINISHED,
        ),
        (
            {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "v"}},
            {"state": {"phase": "Running"}},
            OwnerState.ACTIVE,
        ),
    ],
)
def test_its_status_tells_whether_more_pods_will_come(obj: Object, status: Any, state: OwnerState) -> None:
    """Rule A6."""
    assert described(obj, status).state is state


async def test_nothing_is_watched_of_kinds_that_no_pod_has_named() -> None:
    """A CRD that is not installed costs nothing; the version is the one that the pod names."""
    job = mpijob("pi", "v1", Launcher=1, Worker=2)
    server = Server(pi=with_uid(job))
    owners = lookup(server)
    assert not any("kubeflow" in one.collection.path for one in owners.reflectors)
    assert (await owners.find("ns", reference(job))).members == 3
    assert server.asked == ["/apis/kubeflow.org/v1/namespaces/ns/mpijobs/pi"]
    assert owners._begun.get_nowait().collection.path == "/apis/kubeflow.org/v1/mpijobs"
    await owners.find("ns", reference(job))
    with pytest.raises(asyncio.QueueEmpty):
        owners._begun.get_nowait()


async def test_a_job_of_a_jobset_leads_to_the_jobset() -> None:
    """Rule A8: as the webhook names the group of such a pod."""
    js = jobset("js", ("workers", parallel(4), None), ("driver", parallel(1), None))
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "js-workers-0",
            "uid": "j",
            "ownerReferences": [
                {
                    "apiVersion": js["apiVersion"],
                    "kind": "JobSet",
                    "name": "js",
                    "uid": "u",
                    "controller": True,
                }
            ],
        },
    }
    server = Server(js=with_uid(js), **{"js-workers-0": job})
    owner = await lookup(server).find("ns", reference(job, "j"))
    assert (owner.reference.kind, owner.members) == ("JobSet", 5)


async def test_a_missing_right_on_a_custom_kind_does_not_hold_up_its_pods() -> None:
    """They may carry their size; what is missing is said once."""
    job = mpijob("pi", Worker=2)
    owner = await lookup(Server(pi=Forbidden(403, "no"))).find("ns", reference(job))
    assert owner.state is OwnerState.UNKNOWN
    own = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    with pytest.raises(Forbidden):
        await lookup(Server(j=Forbidden(403, "no"))).find("ns", reference(own))


async def test_a_custom_resource_that_is_gone_is_gone() -> None:
    owner = await lookup(Server()).find("ns", reference(mpijob("pi", Worker=2)))
    assert owner.state is OwnerState.DELETED


def test_each_group_that_the_templates_name_has_a_size_of_its_own() -> None:
    """Rule A7: the user named a group on one template; neither waits for the pods of the other."""
    job = mpijob("pi", Launcher=1, Worker=4)
    replicas = job["spec"]["mpiReplicaSpecs"]
    for part, group in (("Launcher", "fluence-group-ns-mpijob.pi"), ("Worker", "mine")):
        replicas[part]["template"].setdefault("metadata", {})["labels"] = {GROUP_LABEL: group}
    owner = described(job)
    assert owner.members_of("mine") == 4
    assert owner.members_of("fluence-group-ns-mpijob.pi") == 1
    assert described(job, labels={SIZE_LABEL: "2"}).members_of("mine") == 2


def test_the_only_part_of_an_ordered_jobset_is_counted_too() -> None:
    """N06: it is a part with a group of its own, although there is no other."""
    js = jobset("a-b", ("c", parallel(4), 1), startupPolicy={"startupPolicyOrder": "InOrder"})
    template = js["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    template["metadata"] = {"labels": {GROUP_LABEL: "fluence-group-default-jobset.a-b.c"}}
    assert described(js).members_of("fluence-group-default-jobset.a-b.c") == 4
    js["metadata"]["labels"] = {SIZE_LABEL: "2"}
    assert described(js).members_of("fluence-group-default-jobset.a-b.c") == 4


def test_the_parts_of_an_ordered_jobset_are_counted_by_themselves() -> None:
    """Rules A1 and A7: each has a group of its own."""
    js = jobset("js", ("driver", parallel(1), None), ("workers", parallel(4), 2))
    for number, name in enumerate(("driver", "workers")):
        template = js["spec"]["replicatedJobs"][number]["template"]["spec"]["template"]
        template.setdefault("metadata", {})["labels"] = {GROUP_LABEL: f"group.{name}"}
    assert described(js).members_of("group.workers") == 8
    assert described(js).members_of("group.driver") == 1
