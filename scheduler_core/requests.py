"""What a pod asks for and what a node has, as whole numbers (rules R1 to R8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler_core.constraints import Requests


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """`resources.requests` of a container, or of the pod itself.

    `restartable`: an init container with restartPolicy Always (a sidecar). `actual` and `allocated`
    are what its status shows (`resources.requests`, `allocatedResources`), rule R5: None if unknown.
    """

    requests: Mapping[str, str]
    restartable: bool = False
    actual: Mapping[str, str] | None = None
    allocated: Mapping[str, str] | None = None


def pod_requests(
    containers: Sequence[ContainerRequest],
    init_containers: Sequence[ContainerRequest] = (),
    overhead: Mapping[str, str] | None = None,
    pod_level: ContainerRequest | None = None,
    *,
    resize_infeasible: bool = False,
) -> Requests:
    """What the whole pod asks for, one pod slot included; equal contents give the same object."""
    raise NotImplementedError


def capacity(allocatable: Mapping[str, str]) -> dict[str, int]:
    """`status.allocatable` of a node as whole numbers, rounded down."""
    raise NotImplementedError
