"""The HTTP side: the endpoint for reviews, and three for whoever looks after the process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec
from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.routing import Route

from webhook.decide import Policy
from webhook.endpoint import MAX_BODY_BYTES, Readiness, ReviewEndpoint
from webhook.models import AdmissionAnswer, AdmissionReview

REVIEW_PATH: Final = "/mutate"

__all__ = ["REVIEW_PATH", "Readiness", "create_app"]


def create_app(
    policy: Policy,
    readiness: Readiness | None = None,
    *,
    max_body_bytes: int = MAX_BODY_BYTES,
    now_s: Callable[[], float] = time.perf_counter,
) -> FastAPI:
    """The application; `readiness` is what `/readyz` tells, and is changed by the caller."""
    app = FastAPI(
        title="Fluence admission webhook", docs_url=None, redoc_url=None, redirect_slashes=False
    )
    state = readiness if readiness is not None else Readiness(ready=True, why="")
    reviews = ReviewEndpoint(policy, state, max_body_bytes, now_s)
    app.router.routes.append(Route(REVIEW_PATH, reviews, methods=["POST"]))
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]  # the documented way to extend it

    @app.get("/healthz")
    async def healthz() -> Response:
        """Whether the process is alive."""
        return Response("ok", media_type="text/plain")

    @app.get("/readyz", responses={503: {"description": "Not yet, or no more; the text says why"}})
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


def _openapi(app: FastAPI) -> dict[str, Any]:
    """FastAPI's description, with the endpoint for reviews, which it does not know of, added."""
    if app.openapi_schema is None:
        described = get_openapi(title=app.title, version=app.version, routes=app.routes)
        (review, answer), components = msgspec.json.schema_components(
            [AdmissionReview, AdmissionAnswer], ref_template="#/components/schemas/{name}"
        )
        refusals = {
            "400": "The body is no AdmissionReview of admission.k8s.io/v1",
            "408": "The body did not come in time",
            "413": f"The body is larger than {MAX_BODY_BYTES} bytes",
            "415": "Content-Type is not application/json",
        }
        described["paths"][REVIEW_PATH] = {
            "post": {
                "summary": "Label the pod templates of an object that is being created",
                "operationId": "mutate",
                "requestBody": {"required": True, "content": {"application/json": {"schema": review}}},
                "responses": {
                    "200": {
                        "description": "The decision",
                        "content": {"application/json": {"schema": answer}},
                    },
                    **{
                        status: {
                            "description": what,
                            "content": {"text/plain": {"schema": {"type": "string"}}},
                        }
                        for status, what in refusals.items()
                    },
                },
            }
        }
        described.setdefault("components", {}).setdefault("schemas", {}).update(components)
        app.openapi_schema = described
    return app.openapi_schema
