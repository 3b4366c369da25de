"""Settings of the controller process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from groups.contract import SCHEDULER_NAME


@dataclass(frozen=True)
class ControllerSettings:
    """Settings of the controller, filled by the command line.

    `namespace` holds the lease; `identity` must differ between any two processes.
    """

    identity: str
    kubeconfig: Path | None = None
    namespace: str = "fluence-system"
    scheduler_name: str = SCHEDULER_NAME
    lease_name: str = "fluence-controller"
    lease_duration_s: int = 15
    #: How many groups are worked on at the same time.
    workers: int = 8
