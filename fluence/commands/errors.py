"""How a failed command ends: one sentence on standard error for what a user can put right."""

from __future__ import annotations

from fluence.settings import SettingsError
from groups.errors import FluenceError

FAILED = 1
BAD_USAGE = 2


def sentences(error: BaseException) -> list[str] | None:
    """What to tell the user about `error`; None if any of it is a fault of ours and needs its trace."""
    leaves = _leaves(error)
    if not all(isinstance(one, FluenceError) for one in leaves):
        return None
    # Tasks of one group often fail for the same reason.
    return list(dict.fromkeys(" ".join(str(one).split()) for one in leaves))


def exit_code(error: BaseException) -> int:
    """2 where the settings are wrong, 1 for everything else."""
    return BAD_USAGE if isinstance(error, SettingsError) else FAILED


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in _leaves(one)]
    return [error]
