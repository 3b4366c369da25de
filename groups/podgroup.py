"""The PodGroup object: what it holds, and where it is in the API.

Always the full name `podgroups.scheduling.x-k8s.io`: Kubernetes 1.36 and newer have another `podgroups`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from groups.contract import POD_GROUP_API_VERSION, POD_GROUP_PLURAL
from groups.objects import Condition, ObjectMeta

#: The collection of all namespaces.
POD_GROUPS: Final = f"/apis/{POD_GROUP_API_VERSION}/{POD_GROUP_PLURAL}"
#: What to do where the API server does not know PodGroups.
CRD_MISSING: Final = (
    "the CRD podgroups.scheduling.x-k8s.io is not installed: install the chart (helm install "
    "fluence manifests/chart), or kubectl apply -f manifests/chart/crds/podgroups.yaml"
)


class PodGroupSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What a PodGroup asks for."""

    min_member: int = 1
    schedule_timeout_seconds: int | None = None


class PodGroupStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What the controller (phase, counts, times) and the scheduler (conditions) have seen."""

    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    creation_time: str | None = None
    schedule_start_time: str | None = None
    conditions: tuple[Condition, ...] | None = None


class PodGroup(msgspec.Struct, frozen=True, rename="camel"):
    """`podgroups.scheduling.x-k8s.io`, whoever made it."""

    metadata: ObjectMeta
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


def pod_groups_of(namespace: str) -> str:
    """The collection of one namespace."""
    return f"/apis/{POD_GROUP_API_VERSION}/namespaces/{namespace}/{POD_GROUP_PLURAL}"
