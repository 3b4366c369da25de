"""Errors of requests to the API server, one class for each reaction of the caller.

KubeError
+-- LeaseLost         this process is not the leader any more: stop writing at once
+-- ConfigError       the way to the server is not known: tell the user and stop
+-- Unreachable       no answer came: try again later
+-- ApiError          the server answered with an error status
    +-- Invalid       400, 415, 422: the request is wrong and stays wrong
    +-- Unauthorized  401: the credentials were refused, also after reading them again
    +-- Forbidden     403: a right is missing: say which one
    +-- NotFound      404: the object (or its kind) does not exist
    +-- Conflict      409: exists already, or changed after we read it: read again
    +-- Gone          410: our version is too old: list again
    +-- Busy          429 and 5xx: try again, not before `retry_after_s`
"""

from __future__ import annotations

import datetime as dt
import email.utils
import math
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from groups.errors import FluenceError
from groups.times import utc_now

MOST_RETRY_AFTER_S: Final = 60.0


class KubeError(FluenceError):
    """Everything that this package raises on purpose."""


class ConfigError(KubeError):
    """The configuration does not lead to an API server; the text says what to change."""


class LeaseLost(KubeError):
    """This process is not the leader any more; nothing was sent."""


class Unreachable(KubeError):
    """No answer: refused, reset, or later than the deadline. The request may have been carried out."""


class ApiError(KubeError):
    """The API server answered with an error status."""

    def __init__(
        self, status: int, message: str, *, reason: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s


class Invalid(ApiError):
    """400, 415 or 422: repeating it does not help."""


class Unauthorized(ApiError):
    """401: the credentials were refused."""


class Forbidden(ApiError):
    """403: the message names verb, resource and namespace."""


class NotFound(ApiError):
    """404: it does not exist."""


class Conflict(ApiError):
    """409: it exists already, or a precondition failed."""


class Gone(ApiError):
    """410: the resource version or continue token is too old."""


class Busy(ApiError):
    """429 or 5xx: the server cannot do it now."""


_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    415: Invalid,
    422: Invalid,
    429: Busy,
}


class Status(msgspec.Struct, frozen=True):
    """The parts of a meta/v1 Status that we use."""

    code: int = 0
    reason: str = ""
    message: str = ""


def error_of(
    status: int,
    body: bytes,
    *,
    doing: str,
    retry_after: str | None = None,
    utc_now: Callable[[], dt.datetime] = utc_now,
) -> ApiError:
    """Turn an error answer into an exception. No other function does so.

    `doing` is the request in a few words ("POST /api/v1/..."), used where the body is not a Status:
    proxies and servers that are stopping answer with plain text.
    """
    try:
        found = msgspec.json.decode(body, type=Status)
    except msgspec.MsgspecError:
        found = Status(message=body[:200].decode(errors="replace").strip())
    kind = _BY_STATUS.get(status) or (Busy if status >= 500 else ApiError)
    message = found.message or f"{doing} was answered with HTTP status {status}"
    return kind(
        status, message, reason=found.reason, retry_after_s=retry_after_seconds(retry_after or "", utc_now)
    )


def retry_after_seconds(header: str, utc_now: Callable[[], dt.datetime] = utc_now) -> float | None:
    """A Retry-After header (seconds or an HTTP date) in seconds from now; None if it is neither.

    At most a minute: a proxy that names an hour must not stop a process for an hour.
    """
    try:
        seconds = float(header)
    except ValueError:
        try:
            at = email.utils.parsedate_to_datetime(header)
        except ValueError:
            return None
        # A date without a zone ("-0000") is in UTC.
        seconds = (at.replace(tzinfo=at.tzinfo or dt.UTC) - utc_now()).total_seconds()
    return None if math.isnan(seconds) else min(max(seconds, 0.0), MOST_RETRY_AFTER_S)


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed later."""
    return isinstance(error, Unreachable | Busy)
