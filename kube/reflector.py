"""Keep a local copy of one Kubernetes collection.

Owns: list in pages, watch with bookmarks, resume, relist, and reporting what was deleted in between. Does not
own: what a change means, or any write.

Data flows one way: a page or a watch line is decoded into the struct of the collection and put into `items`,
and every subscriber is called with (old, new). For each object a subscriber sees creation, changes and
deletion in a possible order, whatever the network does: an object that was replaced by another of its name is
reported as deleted and then as created.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec
import structlog

from groups.objects import Key
from kube import heap, metrics
from kube.backoff import Backoff
from kube.errors import ApiError, Forbidden, Gone, KubeError, error_of
from kube.objects import ListPage, Resource, WatchEvent
from kube.session import Kube

R = TypeVar("R", bound=Resource)
#: Called with each change: (None, new) created, (old, new) changed, (old, None) deleted. It must not block.
Subscriber = Callable[[R | None, R | None], None]

PAGE_SIZE: Final = 500
#: After this many listed objects other tasks of this process get a turn.
_SLICE: Final = 100
_LIST_TIMEOUT_S: Final = 60.0
_LIST_PATIENCE_S: Final = 30.0
#: The server sends a bookmark about once a minute. If two are missing, the connection is dead (case C72).
SILENCE_S: Final = 130.0
_WATCH_S: Final = (240, 480)
#: A stream that lasted this long, or delivered an event, counts as healthy.
_HEALTHY_S: Final = 10.0
#: After this many watches in a row without an event the collection is listed again (case C73).
_BARREN_WATCHES: Final = 5

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Collection:
    """What to keep: the path of a collection, and a field selector if the server can filter it."""

    path: str
    field_selector: str = ""

    def params(self, **more: str) -> dict[str, str]:
        """Query parameters for a request on this collection."""
        return {"fieldSelector": self.field_selector, **more} if self.field_selector else more


class _BookmarkMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Bookmark(msgspec.Struct, frozen=True):
    metadata: _BookmarkMeta


class Reflector(Generic[R]):
    """A copy of one collection; `run` keeps it up to date until it is cancelled.

    Objects are decoded as `kind`. `convert` makes the record that is kept of each, for example a smaller one.
    """

    def __init__(
        self,
        kube: Kube,
        collection: Collection,
        kind: type[Any],
        *,
        convert: Callable[[Any], R] | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self.items: dict[Key, R] = {}
        self.collection = collection
        self._kube = kube
        self._convert: Callable[[Any], R] = convert or _as_it_is
        self._page_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
            ListPage.__class_getitem__(kind)  # type: ignore[attr-defined]
        )
        self._raw_page_decoder = msgspec.json.Decoder(ListPage[msgspec.Raw])
        self._decoder = msgspec.json.Decoder(kind)
        self._event_decoder = msgspec.json.Decoder(WatchEvent)
        self._subscribers: list[Subscriber[R]] = []
        self._synced = asyncio.Event()
        self._backoff = backoff or Backoff()
        #: The version up to which `items` shows every change; empty before the first list.
        self.version = ""
        #: How many lists and watches the server has answered, and how many lines the watches delivered.
        self.answers = 0
        self.lines = 0
        self._barren = 0
        self._waiting: asyncio.Timeout | None = None
        self._log = log.bind(collection=collection.path)

    def subscribe(self, subscriber: Subscriber[R]) -> None:
        """Call `subscriber` with every change from now on; subscribe before `run`."""
        self._subscribers.append(subscriber)

    @property
    def is_synced(self) -> bool:
        """Whether the collection has been listed at least once."""
        return self._synced.is_set()

    async def wait_synced(self, deadline_s: float) -> None:
        """Wait for the first whole list; TimeoutError after `deadline_s` seconds."""
        async with asyncio.timeout(deadline_s):
            await self._synced.wait()

    async def newest_version(self) -> str:
        """The version of the API server's newest change; a KubeError if it does not answer."""
        body = await self._kube.get(self.collection.path, self.collection.params(limit="1"))
        try:
            return self._raw_page_decoder.decode(body).metadata.resource_version
        except msgspec.MsgspecError as error:
            raise KubeError(f"the list of {self.collection.path} cannot be read: {error}") from error

    def resume(self) -> None:
        """End the watch or the pause before it, so that the next one begins at once."""
        if self._waiting is not None:
            self._waiting.reschedule(0)
            self._waiting = None

    @contextlib.asynccontextmanager
    async def _until_resumed(self) -> AsyncIterator[None]:
        """Run the block until `resume` is called."""
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._waiting = limit
                yield
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            self._waiting = None

    async def run(self) -> None:
        """List, then watch for ever; every failure is logged and followed by a growing pause."""
        while True:
            try:
                if not self.version:
                    await self._list()
                await self._watch()
            except Gone as error:
                # The server no longer knows our version. Resuming would skip events, so list again.
                self.version = ""
                self._log.info("version too old, listing again", error=str(error))
                await self._pause()
            except Forbidden as error:
                self._log.error("a right is missing; tried again until it is granted", error=str(error))
                await self._pause(error)
            except (KubeError, msgspec.MsgspecError) as error:
                metrics.WATCH_ENDS.labels(self.collection.path).inc()
                self._log.warning("watch interrupted", error=str(error), kind=type(error).__name__)
                await self._pause(error)

    async def _pause(self, error: BaseException | None = None) -> None:
        delay_s = self._backoff.next_delay_s()
        if isinstance(error, ApiError) and error.retry_after_s is not None:
            delay_s = max(delay_s, error.retry_after_s)
        async with self._until_resumed():
            await asyncio.sleep(delay_s)

    async def _list(self) -> None:
        metrics.LISTS.labels(self.collection.path).inc()
        found: set[Key] = set()
        cursor: str = ""
        while True:
            more = {"limit": str(PAGE_SIZE)} | ({"continue": cursor} if cursor else {})
            body = await self._kube.get(
                self.collection.path, self.collection.params(**more), timeout_s=_LIST_TIMEOUT_S
            )
            page = self._decode_page(body)
            # A large collection must not block the event loop, so a few objects at a time.
            for number, item in enumerate(page.items or ()):
                found.add(item.metadata.key)
                self._put_listed(self._convert(item))
                if number % _SLICE == _SLICE - 1:
                    await asyncio.sleep(0)
            if not self.is_synced:
                heap.exempt_new()
            cursor = page.metadata.continue_
            if not cursor:
                break
            await asyncio.sleep(0)
        await self._remove_all_but(found)
        self.version = page.metadata.resource_version
        self._synced.set()
        self.answers += 1
        metrics.CACHED_SINCE.labels(self.collection.path).set_to_current_time()

    def _decode_page(self, body: bytes) -> ListPage[Any]:
        try:
            page: ListPage[Any] = self._page_decoder.decode(body)
        except msgspec.ValidationError:
            # One object that cannot be decoded must not hide the others: leave it out and log it.
            raw = self._raw_page_decoder.decode(body)
            decoded = (self._decode(item) for item in raw.items or ())
            return ListPage(raw.metadata, [item for item in decoded if item is not None])
        return page

    def _decode(self, raw: msgspec.Raw) -> Any:
        try:
            return self._decoder.decode(raw)
        except msgspec.ValidationError as error:
            self._log.error("object left out: it is not of the expected shape", error=str(error))
            return None

    def _put_listed(self, item: R) -> None:
        key = item.metadata.key
        old = self.items.get(key)
        if old is None or old.metadata.resource_version != item.metadata.resource_version:
            self._put(key, item)

    async def _remove_all_but(self, found: set[Key]) -> None:
        gone = [key for key in self.items if key not in found]
        for number, key in enumerate(gone):
            self._remove(key)
            if number % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)

    async def _watch(self) -> None:
        asked_s = random.randint(*_WATCH_S)  # noqa: S311 - spreads reconnects, no secret
        params = self.collection.params(
            watch="1",
            resourceVersion=self.version,
            allowWatchBookmarks="true",
            timeoutSeconds=str(asked_s),
        )
        started_s, fruitful, ended = time.monotonic(), False, False
        async with (
            self._until_resumed(),
            self._kube.lines(self.collection.path, params, silence_s=SILENCE_S) as lines,
        ):
            self.answers += 1
            async for line in lines:
                self._take(line)
                fruitful = True
                self._backoff.reset()
                self.lines += 1
            ended = True
        if not ended or fruitful or time.monotonic() - started_s > _HEALTHY_S:
            self._barren = 0
            return
        self._barren += 1
        if self._barren >= _BARREN_WATCHES:
            self._barren, self.version = 0, ""
        await self._pause()

    def _take(self, line: bytes) -> None:
        event = self._event_decoder.decode(line)
        if event.type == "ERROR":
            raise error_of(_status_code(event.object), bytes(event.object), doing="watch")
        if event.type == "BOOKMARK":
            bookmark = msgspec.json.decode(event.object, type=_Bookmark)
            self.version = bookmark.metadata.resource_version
            return
        item = self._decode(event.object)
        if item is None:
            self.version = msgspec.json.decode(event.object, type=_Bookmark).metadata.resource_version
            return
        metrics.LAST_EVENT.labels(self.collection.path).set_to_current_time()
        if event.type == "DELETED":
            self._remove(item.metadata.key)
        else:
            self._put(item.metadata.key, self._convert(item))
        self.version = item.metadata.resource_version

    def _put(self, key: Key, new: R) -> None:
        old = self.items.get(key)
        if old is not None and old.metadata.uid != new.metadata.uid:
            self._remove(key)
            old = None
        self.items[key] = new
        for subscriber in self._subscribers:
            subscriber(old, new)

    def _remove(self, key: Key) -> None:
        if (old := self.items.pop(key, None)) is not None:
            for subscriber in self._subscribers:
                subscriber(old, None)


def _as_it_is(item: Any) -> Any:
    return item


def _status_code(raw: msgspec.Raw) -> int:
    try:
        return int(msgspec.json.decode(raw, type=dict[str, Any]).get("code") or 500)
    except (msgspec.MsgspecError, TypeError, ValueError):
        return 500


async def all_synced(reflectors: Iterable[Reflector[Any]]) -> None:
    """Wait without a limit until each has listed its collection; log which ones are missing."""
    for one in reflectors:
        while not one.is_synced:
            try:
                await one.wait_synced(_LIST_PATIENCE_S)
            except TimeoutError:
                log.warning("still waiting for the first list", collection=one.collection.path)
