"""The few Kubernetes shapes that more than one process decodes: only the fields in use (habit 10)."""

from __future__ import annotations

from typing import Generic, NewType, Protocol, TypeVar

import msgspec

#: "namespace/name", or "name" alone for objects of the cluster; never a bare name of a namespaced one.
Key = NewType("Key", str)

T = TypeVar("T")


class OwnerReference(msgspec.Struct, frozen=True, rename="camel"):
    """Who made an object."""

    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool | None = None


class ObjectMeta(msgspec.Struct, frozen=True, rename="camel"):
    """The parts of metadata that we use; times stay text until somebody needs them."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None

    @property
    def key(self) -> Key:
        """The object's key within its collection."""
        return Key(f"{self.namespace}/{self.name}" if self.namespace else self.name)

    def label(self, name: str) -> str:
        """A label's value, empty where it is missing (empty and missing mean the same to us, case C04)."""
        return (self.labels or {}).get(name, "")

    def annotation(self, name: str) -> str:
        """An annotation's value, empty where it is missing."""
        return (self.annotations or {}).get(name, "")

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if one does."""
        return next((o for o in self.owner_references or () if o.controller), None)


class Resource(Protocol):
    """Anything that a reflector can keep."""

    @property
    def metadata(self) -> ObjectMeta:
        """The object's metadata."""


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    """Where a list ends and from which version to watch."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class ListPage(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list."""

    metadata: ListMeta
    items: list[T] | None = None


class WatchEvent(msgspec.Struct, frozen=True):
    """One line of a watch; the object is decoded once its type is known."""

    type: str
    object: msgspec.Raw


class Condition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=False):
    """A condition in a status."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodGroupSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What a PodGroup asks for."""

    min_member: int = 1
    schedule_timeout_seconds: int | None = None


class PodGroupStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What the controller (phase, counts, times) and the scheduler (conditions) have seen."""

    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    creation_time: str | None = None
    schedule_start_time: str | None = None
    conditions: tuple[Condition, ...] | None = None


class PodGroup(msgspec.Struct, frozen=True, rename="camel"):
    """`podgroups.scheduling.x-k8s.io`, whoever made it."""

    metadata: ObjectMeta
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
