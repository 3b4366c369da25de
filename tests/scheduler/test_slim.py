"""What the scheduler keeps of nodes and PodGroups decides the same as the whole objects."""

from __future__ import annotations

import msgspec

from groups.contract import ON_STRANDED_ANNOTATION
from groups.podgroup import PodGroup
from scheduler.decode import node_of
from scheduler.objects import Node
from scheduler.slim import slim_group, slim_node

NODE = msgspec.convert(
    {
        "metadata": {
            "name": "a",
            "uid": "u",
            "resourceVersion": "7",
            "labels": {"zone": "z"},
            "annotations": {"heartbeat": "1"},
        },
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "4", "pods": 110},
            "conditions": [
                {"type": "Ready", "status": "True", "message": "kubelet is posting ready status"},
                {"type": "DiskPressure", "status": "True"},
                {"type": "NetworkUnavailable", "status": "False"},
                {"type": "SomethingElse", "status": "True"},
            ],
        },
    },
    Node,
)


def test_a_slim_node_means_the_same_to_the_matcher() -> None:
    assert node_of(slim_node(NODE)) == node_of(NODE)


def test_a_slim_node_keeps_only_the_conditions_that_decide() -> None:
    slim = slim_node(NODE)
    assert slim.metadata.annotations is None
    assert [(one.type, one.message) for one in slim.status.conditions or ()] == [
        ("Ready", ""),
        ("DiskPressure", ""),
        ("NetworkUnavailable", ""),
    ]


def test_a_node_without_conditions_stays_not_ready() -> None:
    bare = msgspec.convert({"metadata": {"name": "a"}}, Node)
    assert not node_of(slim_node(bare)).ready


def test_a_slim_group_keeps_what_happens_when_it_is_stranded() -> None:
    annotations = {ON_STRANDED_ANNOTATION: "release", "other": "x"}
    group = msgspec.convert({"metadata": {"name": "g", "annotations": annotations}}, PodGroup)
    assert slim_group(group).metadata.annotations == {ON_STRANDED_ANNOTATION: "release"}
