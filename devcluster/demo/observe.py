"""What the demo reads from the cluster: labels, groups, which scheduler bound a pod, why a gang waits.

Owns: reading. Does not own: how it is shown, or what is expected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from devcluster.api import Api, Object
from groups.contract import GROUP_LABEL, POD_GROUP_API_VERSION, SIZE_LABEL

NAMESPACE: Final = "default"


@dataclass(frozen=True)
class Scheduled:
    """Who put a pod where."""

    pod: str
    node: str
    component: str


@dataclass(frozen=True)
class Group:
    """A PodGroup in the columns of kubectl."""

    name: str
    phase: str
    minimum: int
    running: int
    succeeded: int
    created: str
    reason: str
    message: str


async def template_labels(api: Api, job: str) -> dict[str, str]:
    """The two labels on a Job's pod template; empty where it has none."""
    found = await api.get(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{job}")
    labels = found["spec"]["template"]["metadata"].get("labels") or {}
    return {key: value for key, value in labels.items() if key in (GROUP_LABEL, SIZE_LABEL)}


async def groups(api: Api) -> list[Group]:
    """All PodGroups."""
    found = await api.items(f"/apis/{POD_GROUP_API_VERSION}/namespaces/{NAMESPACE}/podgroups")
    return sorted((_group(one) for one in found), key=lambda group: group.created)


def _group(found: Object) -> Group:
    status: dict[str, Any] = found.get("status") or {}
    conditions = [one for one in status.get("conditions") or [] if one["type"] == "Scheduled"]
    told = conditions[0] if conditions else {}
    return Group(
        name=found["metadata"]["name"],
        phase=status.get("phase", ""),
        minimum=found["spec"].get("minMember", 1),
        running=status.get("running", 0),
        succeeded=status.get("succeeded", 0),
        created=status.get("creationTime") or "",
        reason=told.get("reason", ""),
        message=told.get("message", ""),
    )


async def scheduled(api: Api) -> list[Scheduled]:
    """Every pod that was scheduled, with the component that reported it.

    Events that were recorded through the older API carry their component in another field (rule E7).
    """
    found = await api.items(f"/api/v1/namespaces/{NAMESPACE}/events", fieldSelector="reason=Scheduled")
    return sorted(
        (
            Scheduled(
                pod=event["involvedObject"]["name"],
                node=event["message"].rpartition(" to ")[2],
                component=event.get("reportingComponent") or event.get("source", {}).get("component") or "",
            )
            for event in found
        ),
        key=lambda one: one.pod,
    )


async def members_bound(api: Api, group: str) -> tuple[int, int]:
    """How many members of a group have a node, and how many there are."""
    found = await api.items(f"/api/v1/namespaces/{NAMESPACE}/pods", labelSelector=f"{GROUP_LABEL}={group}")
    return sum(1 for pod in found if pod["spec"].get("nodeName")), len(found)


async def pod_condition(api: Api, group: str) -> str:
    """The message of PodScheduled=False on the first member of a group; empty if there is none."""
    found = await api.items(f"/api/v1/namespaces/{NAMESPACE}/pods", labelSelector=f"{GROUP_LABEL}={group}")
    for pod in found:
        for condition in pod["status"].get("conditions") or []:
            if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
                return str(condition.get("message", ""))
    return ""
