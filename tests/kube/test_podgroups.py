"""Whether a cluster serves PodGroups is told apart from an API server that is not up yet."""

from __future__ import annotations

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from groups.errors import FluenceError
from groups.podgroup import CRD_MISSING, POD_GROUPS, pod_groups_of
from kube.errors import Forbidden
from kube.session import Kube
from kube.startup import require_collection
from tests.support.fake_api import FakeApi

Both = tuple[FakeApi, Kube]


def status(code: int) -> web.Response:
    return web.json_response({"code": code, "message": "told"}, status=code)


async def test_a_missing_crd_is_named_with_what_to_do(scripted: Both) -> None:
    api, kube = scripted
    api.script("GET", POD_GROUPS, lambda _: status(404))
    api.script("GET", "/readyz", lambda _: web.Response(text="ok"))
    with pytest.raises(FluenceError, match=r"podgroups\.scheduling\.x-k8s\.io is not installed: install"):
        await require_collection(kube, POD_GROUPS, missing=CRD_MISSING)


async def test_a_server_that_is_just_starting_is_waited_for(scripted: Both) -> None:
    """Case C77: until it is ready it knows no custom resources, which is no missing CRD."""
    api, kube = scripted
    ready = iter([False, False])
    served = False

    def readyz(_: web.Request) -> web.Response:
        nonlocal served
        served = next(ready, True)
        return web.Response(text="ok") if served else status(500)

    api.script("GET", "/readyz", readyz)
    api.script("GET", POD_GROUPS, lambda _: {"items": []} if served else status(404))
    with capture_logs() as logs:
        await require_collection(kube, POD_GROUPS, missing=CRD_MISSING)
    assert served
    assert [(line["event"], line["log_level"]) for line in logs] == [
        ("waiting for the API server", "warning")
    ] * 2
    assert logs[0]["error"] == "told"
    assert 0 < logs[0]["retry_in_seconds"] <= 0.1


async def test_a_missing_right_is_for_the_caller(scripted: Both) -> None:
    api, kube = scripted
    api.script("GET", POD_GROUPS, lambda _: status(403))
    with pytest.raises(Forbidden):
        await require_collection(kube, POD_GROUPS, missing=CRD_MISSING, roles_deadline_s=0.2)


async def test_a_server_that_has_not_read_its_roles_yet_is_waited_for(scripted: Both) -> None:
    """Case C77: it refuses everybody for a moment, which is no missing right."""
    api, kube = scripted
    answers = iter([status(403), status(403)])
    api.script("GET", POD_GROUPS, lambda _: next(answers, {"items": []}))
    await require_collection(kube, POD_GROUPS, missing=CRD_MISSING)
    assert next(answers, None) is None


def test_a_namespace_has_a_collection_of_its_own() -> None:
    assert pod_groups_of("ns") == "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ns/podgroups"
