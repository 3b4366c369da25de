"""From the bytes of an AdmissionReview to a request, and from a decision to the bytes of an answer. Pure.

Owns: what a readable review is, and the shape of an answer. Does not own: HTTP, or the decision.
"""

from __future__ import annotations

import base64
import json
from typing import Final

from pydantic import BaseModel, ValidationError

from fluence.contract import FluenceError
from webhook.decide import Decision
from webhook.models import (
    API_VERSION,
    KIND,
    AdmissionAnswer,
    AdmissionRequest,
    AdmissionResponse,
    AdmissionReview,
    Status,
)

_REASONS: Final = {403: "Forbidden", 422: "Invalid"}
_SHOWN: Final = 100


class BadReview(FluenceError):
    """The body is no AdmissionReview v1; the text says what is wrong with it."""


class _TypeOnly(BaseModel):
    apiVersion: str  # noqa: N815  (the wire's name)
    kind: str


def read_review(body: bytes) -> AdmissionRequest:
    """The request in `body`; BadReview if it is not one."""
    if not body.strip():
        raise BadReview(f"the body is empty: post an {KIND} of {API_VERSION}")
    try:
        return AdmissionReview.model_validate_json(body).request
    except ValidationError as error:
        raise BadReview(_explain(body, error)) from error


def _explain(body: bytes, error: ValidationError) -> str:
    """What is wrong, most telling first: another version or kind, then the first field."""
    try:
        told = _TypeOnly.model_validate_json(body)
    except ValidationError:
        pass
    else:
        if (told.apiVersion, told.kind) != (API_VERSION, KIND):
            return (
                f"{told.kind[:_SHOWN]} of {told.apiVersion[:_SHOWN]} is not served here: "
                f"only {KIND} of {API_VERSION} is"
            )
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return f"the body is no {KIND}: {field + ': ' if field else ''}{first['msg']}"


def write_answer(uid: str, decision: Decision) -> bytes:
    """The AdmissionReview that carries `decision` back (rules W5 to W12)."""
    response = AdmissionResponse(
        uid=uid,
        allowed=decision.allowed,
        patch_type="JSONPatch" if decision.patch else None,
        patch=_base64(decision) if decision.patch else None,
        status=None if decision.allowed else _status(decision),
        warnings=list(decision.warnings) or None,
    )
    answer = AdmissionAnswer(response=response)
    return answer.model_dump_json(by_alias=True, exclude_none=True).encode()


def _base64(decision: Decision) -> str:
    return base64.b64encode(json.dumps(list(decision.patch)).encode()).decode()


def _status(decision: Decision) -> Status:
    return Status(
        code=decision.code,
        reason=_REASONS.get(decision.code, "Forbidden"),
        message=decision.message,
    )
