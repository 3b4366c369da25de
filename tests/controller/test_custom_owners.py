"""Custom resources as owners: counted by their rule from the first pod that names one (rule A8)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from controller.lookup import OwnerLookup
from controller.objects import AnyWorkload
from controller.owners import Owner, Prospect, describe
from groups.contract import SIZE_LABEL
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
    return describe(
        rule, reference(obj), msgspec.convert({**whole, "status": status}, AnyWorkload), "fluence"
    )


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
    ("obj", "status", "prospect"),
    [
        (mpijob("pi", Worker=1), None, Prospect.MORE),
        (mpijob("pi", Worker=1), {"conditions": None}, Prospect.MORE),
        (mpijob("pi", Worker=1), {"conditions": [{"type": "Running", "status": "True"}]}, Prospect.MORE),
        (mpijob("pi", Worker=1), {"conditions": [{"type": "Failed", "status": "False"}]}, Prospect.MORE),
        (mpijob("pi", Worker=1), {"conditions": [{"type": "Succeeded", "status": "True"}]}, Prospect.OVER),
        (jobset("js"), {"conditions": [{"type": "Completed", "status": "True"}]}, Prospect.OVER),
        (
            {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "v"}},
            {"state": {"phase": "Completed"}},
            Prospect.OVER,
        ),
        (
            {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "v"}},
            {"state": {"phase": "Running"}},
            Prospect.MORE,
        ),
    ],
)
def test_its_status_tells_whether_more_pods_will_come(obj: Object, status: Any, prospect: Prospect) -> None:
    """Rule A6."""
    assert described(obj, status).prospect is prospect


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
    assert owner.prospect is Prospect.UNKNOWN
    own = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    with pytest.raises(Forbidden):
        await lookup(Server(j=Forbidden(403, "no"))).find("ns", reference(own))


async def test_a_custom_resource_that_is_gone_is_gone() -> None:
    owner = await lookup(Server()).find("ns", reference(mpijob("pi", Worker=2)))
    assert owner.prospect is Prospect.GONE
