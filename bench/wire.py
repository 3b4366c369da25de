"""Pods, nodes and what belongs to them as an API server sends them: whole objects, not only our fields.

Each pod is a member of an Indexed Job, so that no two pods have the same labels. That is the dearest case for
caches that keep each kind of pod once.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from groups.contract import (
    CREATED_BY_ANNOTATION,
    CREATED_BY_CONTROLLER,
    GROUP_LABEL,
    GROUP_SCHEDULED_CONDITION,
    MIN_MEMBER_ANNOTATION,
    OWNER_UIDS_ANNOTATION,
    POD_GROUP_API_VERSION,
    RUN_ANNOTATION,
    SCHEDULER_NAME,
    SIZE_LABEL,
)

GANG: Final = 8
#: The version of every list.
VERSION: Final = "1000000"
NAMESPACES: Final = 50
_TIME: Final = "2026-12-01T10:00:00Z"
_MANAGED: Final = [
    {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": _TIME,
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:labels": {".": {}, "f:batch.kubernetes.io/job-name": {}, "f:job-name": {}}},
            "f:spec": {
                f"f:{field}": {".": {}, 'k:{"name":"main"}': {"f:image": {}, "f:resources": {}}}
                for field in ("containers", "dnsPolicy", "restartPolicy", "schedulerName", "tolerations")
            },
            "f:status": {
                "f:conditions": {
                    f'k:{{"type":"{one}"}}': {".": {}, "f:lastTransitionTime": {}, "f:status": {}}
                    for one in ("Ready", "Initialized", "ContainersReady", "PodReadyToStartContainers")
                }
            },
        },
    }
    for manager in ("kube-controller-manager", "kubelet")
]


def job_name(gang: int) -> str:
    """The Job of a gang."""
    return f"job-{gang:06d}"


def namespace_of(gang: int) -> str:
    """The namespace of a gang."""
    return f"team-{gang % NAMESPACES:03d}"


def pod(number: int, *, node: str = "", phase: str = "", version: int = 1, **spec: Any) -> dict[str, Any]:
    """Pod `number` of the cluster; it runs if it has a node. `spec` is added to its spec."""
    gang, index = divmod(number, GANG)
    job = job_name(gang)
    labels = {
        "batch.kubernetes.io/controller-uid": f"uid-{job}",
        "batch.kubernetes.io/job-completion-index": str(index),
        "batch.kubernetes.io/job-name": job,
        "controller-uid": f"uid-{job}",
        "job-name": job,
        "app.kubernetes.io/part-of": "training",
        GROUP_LABEL: job,
        SIZE_LABEL: str(GANG),
    }
    annotations = {"batch.kubernetes.io/job-completion-index": str(index), "example.com/note": "n" * 200}
    if node:
        annotations[RUN_ANNOTATION] = f"uid-group-{job}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{job}-{index}-{number:06x}",
            "generateName": f"{job}-{index}-",
            "namespace": namespace_of(gang),
            "uid": f"00000000-0000-4000-8000-{number:012x}",
            "resourceVersion": str(version),
            "creationTimestamp": _TIME,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [_owner(job, controller=True)],
            "managedFields": _MANAGED,
        },
        "spec": _spec(node) | spec,
        "status": _status(number, node, phase or ("Running" if node else "Pending")),
    }


def _owner(job: str, *, controller: bool) -> dict[str, Any]:
    found = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"uid-{job}"}
    return found | ({"controller": True, "blockOwnerDeletion": True} if controller else {})


def container(cpu: str = "1", memory: str = "2Gi") -> dict[str, Any]:
    """A container with these requests."""
    return {
        "name": "main",
        "image": "registry.example.com/team/training:2026-11",
        "command": ["python", "-m", "train"],
        "env": [{"name": f"SETTING_{n}", "value": f"value-{n}"} for n in range(6)],
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
        "imagePullPolicy": "IfNotPresent",
    }


def _spec(node: str) -> dict[str, Any]:
    return {
        "schedulerName": SCHEDULER_NAME,
        **({"nodeName": node} if node else {}),
        "containers": [container()],
        "restartPolicy": "Never",
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "priority": 0,
        "tolerations": [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
            for key in ("not-ready", "unreachable")
        ],
        "volumes": [
            {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
        ],
    }


def _status(number: int, node: str, phase: str) -> dict[str, Any]:
    if not node:
        return {"phase": phase, "qosClass": "Burstable"}
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": phase,
        "conditions": [{"type": one, "status": "True", "lastTransitionTime": _TIME} for one in types],
        "hostIP": "10.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": _TIME,
        "containerStatuses": [
            {
                "name": "main",
                "ready": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": _TIME}},
                "image": "registry.example.com/team/training:2026-11",
                "containerID": f"containerd://{number:064x}",
            }
        ],
        "qosClass": "Burstable",
    }


def node(number: int, *, cpu: str = "64", version: int = 1) -> dict[str, Any]:
    """Node `number`."""
    name = node_name(number)
    types = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": _TIME,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/zone": f"zone-{number % 3}",
                "node.kubernetes.io/instance-type": f"type-{number % 5}",
            },
            "annotations": {"example.com/heartbeat": str(version)},
            "managedFields": _MANAGED,
        },
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": f"cloud://{name}"},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"},
            "conditions": [
                {"type": one, "status": status, "lastHeartbeatTime": _TIME} for one, status in types.items()
            ],
            "images": [{"names": [f"registry.example.com/image-{n}"], "sizeBytes": n} for n in range(20)],
        },
    }


def node_name(number: int) -> str:
    """The name of node `number`."""
    return f"node-{number:05d}"


def pod_group(gang: int, *, phase: str = "Running", version: int = 1) -> dict[str, Any]:
    """The PodGroup of a gang, as the controller made it; it runs unless `phase` is another."""
    job = job_name(gang)
    is_running = phase == "Running"
    condition = {"type": GROUP_SCHEDULED_CONDITION, "status": "True", "reason": "Scheduled", "message": ""}
    status: dict[str, Any] = {
        "phase": phase,
        "occupiedBy": f"{namespace_of(gang)}/{job}",
        "creationTime": _TIME,
    }
    if is_running:
        status |= {"running": GANG, "scheduleStartTime": _TIME, "conditions": [condition]}
    return {
        "apiVersion": POD_GROUP_API_VERSION,
        "kind": "PodGroup",
        "metadata": {
            "name": job,
            "namespace": namespace_of(gang),
            "uid": f"uid-group-{job}",
            "resourceVersion": str(version),
            "creationTimestamp": _TIME,
            "annotations": {
                CREATED_BY_ANNOTATION: CREATED_BY_CONTROLLER,
                MIN_MEMBER_ANNOTATION: str(GANG),
                OWNER_UIDS_ANNOTATION: f"uid-{job}",
            },
            "ownerReferences": [_owner(job, controller=False)],
        },
        "spec": {"minMember": GANG},
        "status": status,
    }


def job(gang: int) -> dict[str, Any]:
    """The Job of a gang."""
    name = job_name(gang)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace_of(gang),
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "creationTimestamp": _TIME,
            "managedFields": _MANAGED,
        },
        "spec": {
            "parallelism": GANG,
            "completions": GANG,
            "completionMode": "Indexed",
            "template": {"spec": _spec("")},
        },
        "status": {"active": GANG, "ready": GANG, "startTime": _TIME},
    }


def claim(name: str, namespace: str, *, version: int = 1) -> dict[str, Any]:
    """A bound claim."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            "annotations": {"example.com/note": str(version)},
        },
        "spec": {"volumeName": f"pv-{name}", "accessModes": ["ReadWriteMany"]},
        "status": {"phase": "Bound"},
    }


def line(type_: str, found: Mapping[str, Any]) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": type_, "object": found}).encode() + b"\n"


def page(items: Iterable[Mapping[str, Any]], limit: int, cursor: int, *, is_last: bool) -> bytes:
    """A page of a list with the first `limit` of `items`; `cursor` is the number of the first."""
    more = {} if is_last else {"continue": str(cursor + limit)}
    found = list(itertools.islice(items, limit))
    return json.dumps({"metadata": {"resourceVersion": VERSION, **more}, "items": found}).encode()
