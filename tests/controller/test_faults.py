"""What the controller does when the API server says no: scripted, since a real one says it once a year."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from controller.plan import Wanted
from controller.process import ControllerProcess
from controller.settings import ControllerSettings
from controller.writer import Writer
from groups.contract import GROUP_LABEL, SIZE_LABEL
from groups.errors import FluenceError
from kube.lease import LeaseLost
from kube.session import Kube
from tests.controller.builders import KEY, made
from tests.controller.fake import (
    GROUPS,
    IN_NS,
    JOBS,
    PODS,
    FakeCluster,
    controller_at,
    fake_cluster,
    pod,
    pod_group,
)
from tests.support.fake_api import event

CREATE, STATUS, DELETE = f"POST {IN_NS}", f"PATCH {IN_NS}/g/status", f"DELETE {IN_NS}/g"
NO = "scripted"


@pytest.fixture
async def faulty() -> AsyncIterator[tuple[FakeCluster, Kube]]:
    """A scripted API server for one test."""
    async with fake_cluster() as both:
        yield both


async def test_a_lost_create_race_is_no_error(faulty: tuple[FakeCluster, Kube]) -> None:
    """Case C41: somebody else was faster, and the group is stamped all the same."""
    api, kube = faulty
    api.lists[PODS] = [pod("a")]
    api.answer("POST", IN_NS, (409, NO, "AlreadyExists"))
    api.answer("GET", f"{IN_NS}/g", pod_group())
    api.answer("PATCH", f"{IN_NS}/g/status", pod_group(version=7, phase="Pending", creationTime="x"))
    with capture_logs() as logs:
        async with controller_at(kube):
            await api.until(lambda: STATUS in api.writes())
    assert api.writes() == [CREATE, STATUS]
    # What is written once must not rest on an old copy (case C42).
    body = json.loads(next(body for name, *_, body in api.requests if name == STATUS))
    assert body["metadata"] == {"uid": "uid-g", "resourceVersion": "6"}
    assert not [line for line in logs if line["log_level"] in ("warning", "error")]


@pytest.mark.parametrize("status", [409, 429, 500, 503])
async def test_a_delete_that_fails_is_tried_again(faulty: tuple[FakeCluster, Kube], status: int) -> None:
    """Case C49."""
    api, kube = faulty
    api.lists[PODS] = [pod("a", "Succeeded"), pod("b", "Failed")]
    api.lists[GROUPS] = [pod_group()]
    api.answer("DELETE", f"{IN_NS}/g", (status, NO), (status, NO), {})
    async with controller_at(kube):
        await api.until(lambda: api.count(DELETE) == 3)
    assert set(api.writes()) == {DELETE}
    options = json.loads(next(body for name, *_, body in api.requests if name == DELETE))
    assert options["preconditions"] == {"uid": "uid-g"}


async def test_a_group_that_is_gone_already_counts_as_deleted(faulty: tuple[FakeCluster, Kube]) -> None:
    """Case C49: 404 is success."""
    api, kube = faulty
    api.lists[PODS] = [pod("a", "Succeeded"), pod("b", "Succeeded"), pod("z", group="z", size="1")]
    api.lists[GROUPS] = [pod_group()]
    api.answer("POST", IN_NS, (500, NO), (500, NO), (500, NO), (500, NO))
    async with controller_at(kube):
        # The other group's failures show that time goes by.
        await api.until(lambda: api.count(CREATE) == 4)
    assert api.count(DELETE) == 1


async def test_a_status_that_cannot_be_written_is_written_later(faulty: tuple[FakeCluster, Kube]) -> None:
    """Case C45: the spec is stored, the right on the status comes later."""
    api, kube = faulty
    api.lists[PODS] = [pod("a")]
    denied = (
        'podgroups.scheduling.x-k8s.io "g" is forbidden: User "x" cannot patch resource "podgroups/status"'
    )
    api.answer("POST", IN_NS, pod_group(), (409, NO))
    api.answer("GET", f"{IN_NS}/g", pod_group())
    stored = pod_group(version=7, phase="Pending", creationTime="2024-02-18T01:02:03.000005Z")
    api.answer("PATCH", f"{IN_NS}/g/status", (403, denied, "Forbidden"), (403, denied, "Forbidden"), stored)
    with capture_logs() as logs:
        async with controller_at(kube):
            await api.until(lambda: api.count(STATUS) == 3)
    (line,) = [line for line in logs if line["log_level"] == "error"]
    assert "podgroups/status" in line["error"]


async def test_a_namespace_that_goes_away_is_no_error(faulty: tuple[FakeCluster, Kube]) -> None:
    """Case C63: one attempt for each step of the backoff, and not a word of error."""
    api, kube = faulty
    api.lists[PODS] = [pod("a")]
    text = "unable to create new content in namespace ns because it is being terminated"
    api.answer("POST", IN_NS, (403, f'podgroups "g" is forbidden: {text}', "Forbidden"))
    with capture_logs() as logs:
        async with controller_at(kube):
            await api.until(lambda: api.count(CREATE) == 4)
            gone = pod("a", deletionTimestamp="2024-02-18T01:02:03Z")
            api.lines[PODS].put_nowait(event("MODIFIED", gone))
    assert not [line for line in logs if line["log_level"] in ("warning", "error")]


async def test_an_object_behind_a_pod_is_asked_for_once(faulty: tuple[FakeCluster, Kube]) -> None:
    """Rule A8: the caches may be a moment behind that of the pods; the server's word then counts."""
    api, kube = faulty
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-j", "controller": True}
    one = pod("j-1", ownerReferences=[owner])
    one["metadata"]["labels"] = {}
    api.lists[PODS] = [one]
    job = {"metadata": {"name": "j", "namespace": "ns", "uid": "uid-j"}, "spec": {"parallelism": 4}}
    path = "/apis/batch/v1/namespaces/ns/jobs/j"
    api.answer("GET", path, job)
    api.answer("PATCH", "/api/v1/namespaces/ns/pods/j-1", one)
    async with controller_at(kube):
        await api.until(lambda: bool(api.writes()))
    assert api.count(f"GET {path}") == 1
    body = json.loads(next(body for name, *_, body in api.requests if name == api.writes()[0]))
    assert body["metadata"]["labels"] == {GROUP_LABEL: "fluence-group-ns-j"}
    assert body["metadata"]["uid"] == "uid-j-1"


async def test_pods_of_an_owner_that_is_gone_make_no_group(faulty: tuple[FakeCluster, Kube]) -> None:
    """The garbage collector is on its way; another object may have the name by now (case C53)."""
    api, kube = faulty
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-old", "controller": True}
    api.lists[PODS] = [pod("j-1", ownerReferences=[owner]), pod("z", group="z", size="1")]
    api.lists[JOBS] = [{"metadata": {"name": "j", "namespace": "ns", "uid": "uid-new"}, "spec": {}}]
    api.answer("GET", "/apis/batch/v1/namespaces/ns/jobs/j", api.lists[JOBS][0])
    api.answer("POST", IN_NS, (500, NO))
    async with controller_at(kube):
        await api.until(lambda: api.count(CREATE) == 2)
    bodies = [json.loads(body) for name, *_, body in api.requests if name == CREATE]
    assert {body["metadata"]["name"] for body in bodies} == {"z"}


async def test_a_writer_that_does_not_lead_sends_nothing(faulty: tuple[FakeCluster, Kube]) -> None:
    """Case C79: no write after the lease is lost."""
    api, kube = faulty
    writer = Writer(kube, may_write=lambda: False)
    with pytest.raises(LeaseLost):
        await writer.create(KEY, Wanted(2))
    with pytest.raises(LeaseLost):
        await writer.delete(made())
    with pytest.raises(LeaseLost):
        await writer.write_status(made(), {"phase": "Running"})
    assert api.requests == []


async def test_a_missing_crd_is_told_in_one_sentence(faulty: tuple[FakeCluster, Kube]) -> None:
    """Issue 3, "How good": the thing and what to do."""
    api, kube = faulty
    api.answer("GET", GROUPS, (404, "the server could not find the requested resource"))
    with pytest.raises(FluenceError, match=r"x-k8s\.io is not installed.*kubectl apply"):
        await ControllerProcess(kube, ControllerSettings(identity="me")).run()


async def test_it_is_not_ready_before_everything_is_listed(faulty: tuple[FakeCluster, Kube]) -> None:
    """Case C70."""
    api, kube = faulty
    process = ControllerProcess(kube, ControllerSettings(identity="me"))
    assert any(PODS in reason for reason in process.not_ready())
    async with controller_at(kube) as running:
        await api.until(lambda: not running.not_ready())


async def test_a_burst_of_members_is_written_once(faulty: tuple[FakeCluster, Kube]) -> None:
    """One create and one status for pods that come together; repeated events write nothing."""
    api, kube = faulty
    stamps = {"creationTime": "x", "scheduleStartTime": "y"}
    stored = pod_group(minimum=8, version=7, phase="Scheduling", **stamps)
    api.answer("POST", IN_NS, pod_group(minimum=8))
    api.answer("PATCH", f"{IN_NS}/g/status", stored)
    api.lists[PODS] = [pod(f"p{number}", size="8") for number in range(8)]
    async with controller_at(kube):
        await api.until(lambda: STATUS in api.writes())
        for number in range(8):
            api.lines[PODS].put_nowait(event("MODIFIED", pod(f"p{number}", size="8")))
        api.lines[PODS].put_nowait(event("ADDED", pod("z", group="z", size="1")))
        await api.until(lambda: api.count(CREATE) == 2)
    assert api.writes()[:2] == [CREATE, STATUS]
    assert api.count(STATUS) == 1


async def test_a_size_that_is_none_becomes_an_event(faulty: tuple[FakeCluster, Kube]) -> None:
    """Case C04."""
    api, kube = faulty
    api.lists[PODS] = [pod("a", size="abc")]
    events = "/apis/events.k8s.io/v1/namespaces/ns/events"
    api.answer("POST", events, {})
    async with controller_at(kube):
        await api.until(lambda: bool(api.writes()))
    assert api.writes() == [f"POST {events}"]
    told = json.loads(next(body for name, *_, body in api.requests if name == api.writes()[0]))
    assert (told["type"], told["reason"], told["regarding"]["name"]) == ("Warning", "InvalidGroupSize", "a")
    assert SIZE_LABEL in told["note"]
