"""The HTTP side: one endpoint for reviews, three for whoever looks after the process.

A review is always answered with something that the API server understands: HTTP 200 and a decision, or
a 4xx with a sentence where the body is no review (rule W6, case C35). Even a fault of our own lets the
object through unchanged, for the controller picks up what we missed and a foreign pod must never suffer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog
from fastapi import FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import ClientDisconnect

from webhook.decide import Decision, Policy, decide
from webhook.metrics import REFUSED, count_review
from webhook.models import AdmissionAnswer, AdmissionRequest, AdmissionReview
from webhook.review import BadReview, read_review, write_answer

#: Above the largest request of an API server: 3 MiB of object, as much again, and the envelope (W4).
MAX_BODY_BYTES: Final = 8 * 2**20
#: The API server waits no longer than the registration's timeoutSeconds.
BODY_DEADLINE_S: Final = 5.0
REVIEW_PATH: Final = "/mutate"
_JSON: Final = "application/json"
_SHOWN: Final = 100

_log = structlog.get_logger("fluence.webhook")


@dataclass
class Readiness:
    """Whether requests should be sent here, and if not, why not."""

    ready: bool = False
    why: str = "starting"


class _Refused(Exception):
    """A request that is answered with an HTTP error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def create_app(
    policy: Policy,
    readiness: Readiness | None = None,
    *,
    max_body_bytes: int = MAX_BODY_BYTES,
    now_s: Callable[[], float] = time.perf_counter,
) -> FastAPI:
    """The application; `readiness` is what `/readyz` tells, and is changed by the caller."""
    app = FastAPI(title="Fluence admission webhook", docs_url=None, redoc_url=None)
    state = readiness if readiness is not None else Readiness(ready=True, why="")

    @app.post(
        REVIEW_PATH,
        response_model=AdmissionAnswer,
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {_JSON: {"schema": AdmissionReview.model_json_schema(by_alias=True)}},
            }
        },
    )
    async def mutate(request: Request) -> Response:
        """Label the pod template in an AdmissionReview v1."""
        try:
            review = read_review(await _read_body(request, max_body_bytes))
        except _Refused as error:
            return _refuse(error.status, str(error))
        except BadReview as error:
            return _refuse(400, str(error))
        began_s = now_s()
        decision, verdict = _decide(review, policy)
        answer = write_answer(review.uid, decision)
        _record(review, policy, decision, verdict, now_s() - began_s)
        return Response(answer, media_type=_JSON)

    @app.get("/healthz")
    async def healthz() -> Response:
        """Whether the process is alive."""
        return Response("ok", media_type="text/plain")

    @app.get("/readyz")
    async def readyz() -> Response:
        """Whether the certificate is served and registered."""
        if state.ready:
            return Response("ok", media_type="text/plain")
        return Response(f"not ready: {state.why}", status_code=503, media_type="text/plain")

    @app.get("/metrics")
    async def metrics() -> Response:
        """Counters in Prometheus' text format."""
        return Response(generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return app


async def _read_body(request: Request, limit: int) -> bytes:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != _JSON:
        raise _Refused(415, f'Content-Type must be {_JSON}, not "{media_type[:_SHOWN]}"')
    too_large = _Refused(413, f"the body is larger than {limit} bytes")
    declared = request.headers.get("content-length", "")
    # The longest honest value has few digits; Python refuses to read more than 4,300.
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > limit):
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_DEADLINE_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise too_large
    except TimeoutError as error:
        raise _Refused(408, f"the body did not come within {BODY_DEADLINE_S:g} s") from error
    except ClientDisconnect as error:
        raise _Refused(400, "the connection was closed before the end of the body") from error
    return bytes(body)


def _refuse(status: int, message: str) -> Response:
    REFUSED.labels(str(status)).inc()
    _log.warning("request refused", status=status, message=message)
    return Response(message + "\n", status_code=status, media_type="text/plain")


def _decide(review: AdmissionRequest, policy: Policy) -> tuple[Decision, str]:
    try:
        decision = decide(review, policy)
    except Exception:
        # A fault of ours must block nobody's object.
        _log.exception("decision failed, object let through", uid=review.uid[:_SHOWN])
        warning = "Fluence could not read this object; its pods are grouped once they exist"
        return Decision(warnings=(warning,)), "failed"
    return decision, decision.verdict


def _record(
    review: AdmissionRequest, policy: Policy, decision: Decision, verdict: str, seconds: float
) -> None:
    kind = review.kind.kind
    known = policy.rules.of_kind(review.kind.group, kind) is not None
    count_review(kind if known else "other", verdict, seconds)
    _log.info(
        "review",
        uid=review.uid[:_SHOWN],
        kind=kind,
        namespace=review.namespace,
        # An object with a generateName has no name yet.
        name=review.name or "",
        decision=verdict,
        milliseconds=round(seconds * 1000, 3),
        **({"message": decision.message} if decision.message else {}),
    )
