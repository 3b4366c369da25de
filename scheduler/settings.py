"""What the scheduler process is told at start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from groups.contract import SCHEDULER_NAME


@dataclass(frozen=True)
class SchedulerSettings:
    """Settings of the scheduler, filled by the command line.

    `namespace` holds the lease; `identity` must differ between any two processes.
    """

    identity: str
    kubeconfig: Path | None = None
    namespace: str = "fluence-system"
    scheduler_name: str = SCHEDULER_NAME
    lease_name: str = "fluence-scheduler"
    lease_duration_s: int = 15
