"""Decode an AdmissionReview into a request, and encode a decision as an answer. Pure.

Owns: which reviews are valid, and the form of an answer. Does not own: HTTP, or the decision.
"""

from __future__ import annotations

from typing import Final

import msgspec

from groups.errors import FluenceError
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


class _TypeOnly(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str


_reviews: Final = msgspec.json.Decoder(AdmissionReview)
_types: Final = msgspec.json.Decoder(_TypeOnly)
_encoder: Final = msgspec.json.Encoder()


def read_review(body: bytes | bytearray) -> AdmissionRequest:
    """The request in `body`; BadReview if it is not one."""
    try:
        return _reviews.decode(body).request
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadReview(_explain(body, str(error))) from error
    except RecursionError as error:
        raise BadReview(f"the body is no {KIND}: it is nested too deeply") from error


def _explain(body: bytes | bytearray, reason: str) -> str:
    """What is wrong: an empty body, another version or kind, or the first wrong field, in this order."""
    if not body.strip():
        return f"the body is empty: post an {KIND} of {API_VERSION}"
    try:
        types = _types.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    else:
        if (types.api_version, types.kind) != (API_VERSION, KIND):
            return (
                f"{types.kind[:_SHOWN]} of {types.api_version[:_SHOWN]} is not served here: "
                f"only {KIND} of {API_VERSION} is"
            )
    return f"the body is no {KIND}: {reason}"


def write_answer(uid: str, decision: Decision) -> bytes:
    """The AdmissionReview that answers with `decision` (rules W5 to W12)."""
    patch = _encoder.encode(decision.patch) if decision.patch else None
    response = AdmissionResponse(
        uid=uid,
        allowed=decision.allowed,
        patch_type="JSONPatch" if decision.patch else None,
        # msgspec writes bytes as base64, as the API requires.
        patch=patch,
        status=None if decision.allowed else _status(decision),
        warnings=decision.warnings,
    )
    return _encoder.encode(AdmissionAnswer(response=response))


def _status(decision: Decision) -> Status:
    return Status(
        code=decision.code,
        reason=_REASONS.get(decision.code, "Forbidden"),
        message=decision.message,
    )
