"""The parts that all Kubernetes objects share, as far as they are used: key, metadata, owner, condition.

A process keeps up to 100,000 of these. They hold no reference cycles, so that the garbage collector need not
look at them (`gc=False`).
"""

from __future__ import annotations

from typing import NewType

import msgspec

#: "namespace/name", or "name" alone for objects of the cluster; never a bare name of a namespaced one.
Key = NewType("Key", str)


def key_of(namespace: str, name: str) -> Key:
    """The key of an object; `namespace` is empty for objects of the cluster."""
    return Key(f"{namespace}/{name}" if namespace else name)


def split_key(key: Key) -> tuple[str, str]:
    """Namespace and name of a key; the namespace is empty for objects of the cluster."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


class OwnerReference(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Who made an object."""

    kind: str
    name: str
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]


class ObjectMeta(msgspec.Struct, frozen=True, rename="camel", gc=False):
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
        return key_of(self.namespace, self.name)

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


class Condition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=False):
    """A condition in a status."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
