"""Log failures, each kind once a minute and not once for each object (case C70)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

import structlog

from kube.errors import Conflict, Forbidden, KubeError, LeaseLost, NotFound

log = structlog.get_logger(__name__)

_EVERY_S: Final = 60.0
_MOST_REMEMBERED: Final = 1000
#: Names of single objects in messages of the API server: 'pods "train-x7k2p" is forbidden'.
_QUOTED_NAME: Final = re.compile(r'"[^"]*" (?=is forbidden)')


def is_terminating(error: KubeError) -> bool:
    """Whether a create was refused because its namespace is being deleted (case C63)."""
    return isinstance(error, Forbidden) and "being terminated" in str(error)


class FailureLog:
    """Logs failures of reconciles by what an administrator has to do about them."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._logged_s: dict[str, float] = {}

    def report(self, error: KubeError, key: str, retry_s: float) -> None:
        """Log the failure of `key`, which is tried again in `retry_s` seconds."""
        if isinstance(error, Conflict | NotFound | LeaseLost):
            # The object changed meanwhile, which is normal: the next try reads its new state.
            log.debug("not written: the object changed meanwhile", key=key, error=str(error))
        elif is_terminating(error):
            log.info("not written: the namespace is being deleted", key=key, retry_s=round(retry_s, 2))
        elif isinstance(error, Forbidden):
            self._report_missing_permission(error)
        elif self._is_due(type(error).__name__):
            log.warning("not written, tried again", key=key, error=str(error), retry_s=round(retry_s, 2))

    def _report_missing_permission(self, error: Forbidden) -> None:
        """The message of the server names verb, resource and namespace."""
        text = str(error)
        if self._is_due(_QUOTED_NAME.sub("", text)):
            log.error(
                "a right is missing: grant it to the controller's service account; tried again until then",
                error=text,
            )

    def _is_due(self, what: str) -> bool:
        now_s = self._now_s()
        last_s = self._logged_s.get(what)
        if last_s is not None and now_s - last_s < _EVERY_S:
            return False
        if len(self._logged_s) >= _MOST_REMEMBERED:
            self._logged_s.clear()
        self._logged_s[what] = now_s
        return True
