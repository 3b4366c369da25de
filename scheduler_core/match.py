"""Place a gang whole, or say with numbers why not."""

from __future__ import annotations

from scheduler_core.gang import Gang, Placement
from scheduler_core.ledger import Ledger
from scheduler_core.reasons import Refusal


def match(ledger: Ledger, gang: Gang) -> Placement | Refusal:
    """Place all members if they fit, else as many as fit but never fewer than needed (A5)."""
    raise NotImplementedError
