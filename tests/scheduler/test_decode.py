"""What the API server sends becomes what the matcher reckons with, and no hard rule gets lost on the way."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from groups.objects import Key
from scheduler.decode import node_of, repulsions_of, requests_of, unsupported_rules
from scheduler.objects import Node, PersistentVolume, Pod, VolumeClaim
from scheduler.pods import cached
from scheduler.volumes import unsupported_volumes


def pod(spec: dict[str, Any]) -> Pod:
    body = {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": {"containers": [], **spec}}
    return msgspec.json.decode(msgspec.json.encode(body), type=Pod)


TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]}


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({"affinity": {"podAffinity": REQUIRED}}, "required pod affinity"),
        ({"affinity": {"podAntiAffinity": REQUIRED}}, "required pod anti-affinity"),
        (
            {"topologySpreadConstraints": [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]},
            "topology spread DoNotSchedule",
        ),
        ({"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]}, "host ports 80"),
        ({"initContainers": [{"name": "c", "ports": [{"hostPort": 81}]}]}, "host ports 81"),
        ({"resourceClaims": [{"name": "gpu"}]}, "resource claims"),
        ({"schedulingGroup": {"podGroupName": "native"}}, "schedulingGroup native (native pod groups)"),
        ({"volumes": [{"name": "v", "rbd": {"image": "i"}}]}, "rbd volume v"),
    ],
)
def test_a_hard_rule_that_is_not_honoured_is_named(spec: dict[str, Any], name: str) -> None:
    """Case C108, rules I2, D3, P1: refused aloud, never ignored."""
    assert unsupported_rules(pod(spec).spec) == [name]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"affinity": {"podAffinity": PREFERRED, "podAntiAffinity": PREFERRED}},
        {"topologySpreadConstraints": [{"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]},
        {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]},
        {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "c"}}]},
    ],
)
def test_preferences_and_plain_volumes_are_no_hard_rules(spec: dict[str, Any]) -> None:
    assert unsupported_rules(pod(spec).spec) == []


def test_requests_count_what_the_kubelet_counts() -> None:
    """Rules R1, R3: sidecars, init containers, overhead, and one pod slot."""
    asked = dict(
        requests_of(
            pod(
                {
                    "containers": [
                        {"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "1Mi"}}}
                    ],
                    "initContainers": [
                        {
                            "name": "side",
                            "restartPolicy": "Always",
                            "resources": {"requests": {"cpu": "1"}},
                        },
                        {"name": "init", "resources": {"requests": {"cpu": "3"}}},
                    ],
                    "overhead": {"cpu": "250m"},
                }
            )
        )
    )
    assert asked == {"cpu": 4250, "memory": 2**20, "pods": 1}


def test_a_node_without_a_ready_condition_is_not_ready() -> None:
    bare: dict[str, Any] = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}}
    assert not node_of(msgspec.convert(bare, Node)).ready
    bare["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    assert not node_of(msgspec.convert(bare, Node)).ready
    bare["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    assert node_of(msgspec.convert(bare, Node)).ready


def test_a_placed_pod_keeps_others_away_by_its_anti_affinity() -> None:
    """Rule IA4."""
    (term,) = repulsions_of(pod({"affinity": {"podAntiAffinity": REQUIRED}}))
    assert term.sees("ns")
    assert not term.sees("other")
    assert term.selects({"app": "x"})
    assert not term.selects({"app": "y"})


def claim(phase: str = "Bound", modes: tuple[str, ...] = ("ReadWriteMany",)) -> dict[str, Any]:
    return {
        "metadata": {"name": "data", "namespace": "ns"},
        "spec": {"volumeName": "pv", "accessModes": modes},
        "status": {"phase": phase},
    }


def volume(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "pv"}, "spec": spec}


@pytest.mark.parametrize(
    ("the_claim", "the_volume", "part"),
    [
        (claim(), volume(nfs={"server": "s"}), None),
        (None, None, "does not exist"),
        (claim("Pending"), None, "not bound yet"),
        (claim(modes=("ReadWriteOncePod",)), volume(), "ReadWriteOncePod"),
        (claim(), None, "its volume pv does not exist"),
        (claim(), volume(nodeAffinity={"required": {}}), "has a node affinity"),
        (claim(), volume(csi={"driver": "d"}), "CSI volume"),
    ],
)
def test_claims_that_decide_about_nodes_are_named(
    the_claim: dict[str, Any] | None, the_volume: dict[str, Any] | None, part: str | None
) -> None:
    """Rules V1 to V8: a shared file system is no rule; everything else is refused aloud."""
    user = pod({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]})
    claims = {Key("ns/data"): msgspec.convert(the_claim, VolumeClaim)} if the_claim else {}
    volumes = {Key("pv"): msgspec.convert(the_volume, PersistentVolume)} if the_volume else {}
    found = unsupported_volumes(cached(user), claims, volumes)
    assert (found == []) if part is None else (len(found) == 1 and part in found[0] and "data" in found[0])


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        ({}, 1000),
        ({"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "2"}}]}, 2000),
        ({"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}, 3000),
    ],
)
def test_a_pod_that_shrinks_keeps_what_it_holds_until_it_has_shrunk(status: dict[str, Any], cpu: int) -> None:
    """Rule R5."""
    body = {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": status,
    }
    assert dict(requests_of(msgspec.convert(body, Pod)))["cpu"] == cpu


def test_pod_level_resources_count_what_is_held_too() -> None:
    """Rules R2 and R5."""
    body = {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "spec": {"containers": [{"name": "c"}], "resources": {"requests": {"cpu": "1"}}},
        "status": {"allocatedResources": {"cpu": "2"}},
    }
    assert dict(requests_of(msgspec.convert(body, Pod)))["cpu"] == 2000
