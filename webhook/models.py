"""AdmissionReview v1, the fields in use (rules W2 to W12). Unknown fields are accepted and ignored.

msgspec decodes these fields directly from the bytes. That is most of the cost of a review.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"


class _Wire(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the structs in requests and answers; fields have the names of Kubernetes there."""


class GroupVersionKind(_Wire, frozen=True, kw_only=True):
    """The kind that the API server sent, which is the kind of the webhook's rule (W19)."""

    group: str = ""
    version: str = ""
    kind: str = ""

    @property
    def api_version(self) -> str:
        """The same as an object's `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version


class AdmissionRequest(_Wire, frozen=True, kw_only=True):
    """What is to be decided."""

    uid: Annotated[str, msgspec.Meta(min_length=1)]
    kind: GroupVersionKind = GroupVersionKind()
    sub_resource: str | None = None
    name: str | None = None
    namespace: str | None = None
    operation: str = ""
    dry_run: bool | None = None
    object: dict[str, Any] | None = None


class AdmissionReview(_Wire, frozen=True, kw_only=True):
    """What the API server posts."""

    api_version: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    request: AdmissionRequest


class Status(_Wire, frozen=True, kw_only=True):
    """Why a request is denied; the client sees `message`."""

    code: int
    reason: str
    message: str
    status: str = "Failure"


class AdmissionResponse(_Wire, frozen=True, kw_only=True, omit_defaults=True):
    """The decision. `patch` (base64 of an RFC 6902 list) and `patchType` come together or not at all (W7)."""

    uid: str
    allowed: bool
    patch_type: Literal["JSONPatch"] | None = None
    patch: bytes | None = None
    status: Status | None = None
    warnings: tuple[str, ...] = ()


class AdmissionAnswer(_Wire, frozen=True, kw_only=True):
    """The answer to the API server."""

    api_version: str = API_VERSION
    kind: str = KIND
    response: AdmissionResponse
