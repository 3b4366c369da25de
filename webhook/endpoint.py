"""The endpoint for reviews: bytes in, an AdmissionReview or an error message out.

A review is always answered with something that the API server understands: HTTP 200 and a decision, or a 4xx
with a message if the body is no review (rule W6, case C35). If Fluence itself fails, the object is admitted
unchanged: the controller labels its pods later, and objects of other schedulers are not affected.

A plain ASGI application: dependency injection and response models would cost more than the decision.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import structlog
from starlette.types import Receive, Scope, Send

from webhook.decide import Decision, Policy, decide
from webhook.metrics import REFUSED, count_review
from webhook.models import AdmissionRequest
from webhook.review import BadReview, read_review, write_answer

#: Above the largest request of an API server: 3 MiB of object, as much again, and the envelope (W4).
MAX_BODY_BYTES: Final = 8 * 2**20
#: How long a body may take to arrive if the API server does not say how long it waits ...
BODY_DEADLINE_S: Final = 4.0
#: ... and the part of that time otherwise (rules W1 and W16): our error must arrive before it gives up.
BODY_SHARE: Final = 0.8
_JSON: Final = b"application/json"
_SHOWN: Final = 100
_ASKED_TIMEOUT = re.compile(rb"(?:^|&)timeout=([0-9]{1,4})s(?:&|$)")

_log = structlog.get_logger("fluence.webhook")


@dataclass
class Readiness:
    """Whether requests should be sent here, and if not, why not.

    While the process drains, every answer asks the client to close the connection. The client then uses
    another replica, and no request is in flight when the process ends (rule W28).
    """

    ready: bool = False
    why: str = "starting"
    draining: bool = False


class _Refused(Exception):
    """A request that is answered with an HTTP error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ReviewEndpoint:
    """The ASGI application that the API server calls."""

    def __init__(
        self, policy: Policy, readiness: Readiness, max_body_bytes: int, now_s: Callable[[], float]
    ) -> None:
        self._policy = policy
        self._readiness = readiness
        self._max_body_bytes = max_body_bytes
        self._now_s = now_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            answer = self._answer(await self._read_body(scope, receive))
        except _Refused as error:
            await _refuse(send, error.status, str(error))
        except BadReview as error:
            await _refuse(send, 400, str(error))
        except Exception as error:
            _log.exception("a review could not be answered")
            reason = f"a fault of Fluence's webhook ({type(error).__name__}); its log has more"
            await _refuse(send, 500, reason)
        else:
            await _send(send, 200, _JSON, answer, close=self._readiness.draining)

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes | bytearray:
        headers = dict(scope["headers"])
        media_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if media_type != _JSON:
            shown = media_type[:_SHOWN].decode("latin-1")
            raise _Refused(415, f'Content-Type must be {_JSON.decode()}, not "{shown}"')
        declared = headers.get(b"content-length", b"")
        # Real values have few digits; Python refuses to parse more than 4,300.
        if declared.isdigit() and (len(declared) > 18 or int(declared) > 2 * self._max_body_bytes):
            raise _Refused(413, f"the body is larger than {self._max_body_bytes} bytes")
        deadline_s = body_deadline_s(scope["query_string"])
        try:
            async with asyncio.timeout(deadline_s):
                return await _receive_all(receive, self._max_body_bytes)
        except TimeoutError as error:
            raise _Refused(408, f"the body did not come within {deadline_s:g} s") from error

    def _answer(self, body: bytes | bytearray) -> bytes:
        began_s = self._now_s()
        review = read_review(body)
        decision, verdict = _decide(review, self._policy)
        answer = write_answer(review.uid, decision)
        self._record(review, decision, verdict, self._now_s() - began_s)
        return answer

    def _record(self, review: AdmissionRequest, decision: Decision, verdict: str, seconds: float) -> None:
        kind = review.kind.kind
        known = self._policy.rules.of_kind(review.kind.group, kind) is not None
        count_review(kind if known else "other", verdict, seconds)
        _log.info(
            "review",
            uid=review.uid[:_SHOWN],
            kind=kind[:_SHOWN],
            namespace=review.namespace,
            name=review.name or None,
            decision=verdict,
            message=decision.message or None,
            milliseconds=round(seconds * 1000, 3),
        )


def body_deadline_s(query: bytes) -> float:
    """How long to wait for a body, from the `timeout` in the query of the request (`timeout=5s`)."""
    if (asked := _ASKED_TIMEOUT.search(query)) is None:
        return BODY_DEADLINE_S
    return min(BODY_DEADLINE_S, int(asked[1]) * BODY_SHARE)


async def _receive_all(receive: Receive, limit: int) -> bytes | bytearray:
    message = await receive()
    # Nearly always the whole body has arrived already; then it is not copied.
    body: bytes | bytearray = message.get("body", b"")
    if message["type"] == "http.request" and message.get("more_body", False):
        body = bytearray(body)
    received = len(body)
    while message.get("more_body", False):
        # A part of a body that is too long is read and dropped: a client that still sends when we close the
        # connection may never see our reason.
        message = await receive()
        chunk: bytes = message.get("body", b"")
        received += len(chunk)
        if received <= limit:
            body += chunk
        elif received > 2 * limit:
            break
    if message["type"] == "http.disconnect":
        raise _Refused(400, "the connection was closed before the end of the body")
    if received > limit:
        raise _Refused(413, f"the body is larger than {limit} bytes")
    return body


def _decide(review: AdmissionRequest, policy: Policy) -> tuple[Decision, str]:
    try:
        decision = decide(review, policy)
    except Exception:
        # An error in Fluence must not block the creation of objects.
        _log.exception("decision failed, object let through", uid=review.uid[:_SHOWN])
        warning = "Fluence could not read this object; its pods are grouped once they exist"
        return Decision(warnings=(warning,)), "failed"
    return decision, decision.verdict


async def _refuse(send: Send, status: int, reason: str) -> None:
    REFUSED.labels(str(status)).inc()
    _log.warning("request refused", status=status, message=reason)
    # The rest of the body may still arrive, so no further request can be read from this connection.
    await _send(send, status, b"text/plain; charset=utf-8", f"{reason}\n".encode(), close=True)


async def _send(send: Send, status: int, media_type: bytes, body: bytes, *, close: bool) -> None:
    headers: list[tuple[bytes, bytes]] = [
        (b"content-type", media_type),
        (b"content-length", str(len(body)).encode()),
    ]
    if close:
        headers.append((b"connection", b"close"))
    start: dict[str, Any] = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})
