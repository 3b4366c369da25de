"""The parts of a list and of a watch event that are the same for every collection."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import msgspec

from groups.objects import ObjectMeta

T = TypeVar("T")


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
