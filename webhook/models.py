"""AdmissionReview v1, the parts in use (rules W2 to W12). Unknown fields are accepted and ignored."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"


class _Wire(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class GroupVersionKind(_Wire):
    """The kind that the API server sent, which is the one of the webhook's rule (W19)."""

    group: str = ""
    version: str = ""
    kind: str = ""

    @property
    def api_version(self) -> str:
        """The same as an object's `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version


class AdmissionRequest(_Wire):
    """What is to be decided."""

    uid: str
    kind: GroupVersionKind = GroupVersionKind()
    sub_resource: str | None = None
    name: str | None = None
    namespace: str | None = None
    operation: str = ""
    dry_run: bool | None = None
    object: dict[str, Any] | None = None


class AdmissionReview(_Wire):
    """What the API server posts."""

    api_version: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    request: AdmissionRequest


class Status(_Wire):
    """Why a request is denied; the client sees `message`."""

    code: int
    reason: str
    message: str
    status: str = "Failure"


class AdmissionResponse(_Wire):
    """The decision. `patch` and `patchType` come together or not at all (W7)."""

    uid: str
    allowed: bool
    patch_type: Literal["JSONPatch"] | None = None
    patch: str | None = Field(default=None, description="base64 of an RFC 6902 list")
    status: Status | None = None
    warnings: list[str] | None = None


class AdmissionAnswer(_Wire):
    """What the API server gets back."""

    api_version: str = API_VERSION
    kind: str = KIND
    response: AdmissionResponse
