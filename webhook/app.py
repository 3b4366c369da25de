"""The HTTP application: the endpoint for reviews, and endpoints for probes and metrics."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec
from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from webhook.decide import Policy
from webhook.endpoint import MAX_BODY_BYTES, Readiness, ReviewEndpoint
from webhook.models import AdmissionAnswer, AdmissionReview

REVIEW_PATH: Final = "/mutate"

_NOT_READY: Final[dict[int | str, dict[str, Any]]] = {
    503: {"description": "Not yet, or no more; the text says why"}
}
_REFUSALS: Final = {
    "400": "The body is no AdmissionReview of admission.k8s.io/v1",
    "408": "The body did not come in time",
    "413": f"The body is larger than {MAX_BODY_BYTES} bytes",
    "415": "Content-Type is not application/json",
}
_TEXT: Final = {"text/plain": {"schema": {"type": "string"}}}

__all__ = ["REVIEW_PATH", "Readiness", "create_app"]


class _App(FastAPI):
    """FastAPI, but reviews do not go through its middleware, which would add a tenth to their cost."""

    reviews: ReviewEndpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope["path"] == REVIEW_PATH and scope["method"] == "POST":
            await self.reviews(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI description, with the endpoint for reviews, which FastAPI does not know."""
        if self.openapi_schema is None:
            self.openapi_schema = _described(
                get_openapi(title=self.title, version=self.version, routes=self.routes)
            )
        return self.openapi_schema


def create_app(
    policy: Policy,
    readiness: Readiness | None = None,
    *,
    max_body_bytes: int = MAX_BODY_BYTES,
    now_s: Callable[[], float] = time.perf_counter,
) -> FastAPI:
    """The application; `/readyz` reports `readiness`, which the caller changes."""
    app = _App(title="Fluence admission webhook", docs_url=None, redoc_url=None, redirect_slashes=False)
    state = readiness if readiness is not None else Readiness(ready=True, why="")
    app.reviews = ReviewEndpoint(policy, state, max_body_bytes, now_s)
    # Refuses every method except POST.
    app.router.routes.append(Route(REVIEW_PATH, app.reviews, methods=["POST"]))

    @app.get("/healthz", response_class=PlainTextResponse)
    async def healthz() -> str:
        """Whether the process is alive."""
        return "ok"

    @app.get("/readyz", response_class=PlainTextResponse, responses=_NOT_READY)
    async def readyz() -> Response:
        """Whether the certificate is served and registered."""
        if state.ready:
            return PlainTextResponse("ok")
        return PlainTextResponse(f"not ready: {state.why}", status_code=503)

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Counters in Prometheus' text format."""
        return Response(generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return app


def _described(schema: dict[str, Any]) -> dict[str, Any]:
    (review, answer), components = msgspec.json.schema_components(
        [AdmissionReview, AdmissionAnswer], ref_template="#/components/schemas/{name}"
    )
    responses = {
        "200": {"description": "The decision", "content": {"application/json": {"schema": answer}}},
        **{status: {"description": why, "content": _TEXT} for status, why in _REFUSALS.items()},
    }
    schema["paths"][REVIEW_PATH] = {
        "post": {
            "summary": "Label the pod templates of an object that is being created",
            "operationId": "mutate",
            "requestBody": {"required": True, "content": {"application/json": {"schema": review}}},
            "responses": responses,
        }
    }
    schema.setdefault("components", {}).setdefault("schemas", {}).update(components)
    return schema
