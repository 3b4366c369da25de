"""File locks: they are released when the process that holds them ends, in any way.

Owns: taking, waiting for and testing `flock` locks. Does not own: what they protect.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

_POLL_S: Final = 0.1


def try_lock(path: Path) -> int | None:
    """Take the lock and return its file descriptor, or None while somebody else holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    if _is_still(path, descriptor):
        return descriptor
    # The file was removed after we opened it and before we locked it: this lock protects nothing.
    os.close(descriptor)
    return try_lock(path)


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def is_locked(path: Path) -> bool:
    """Whether a live process holds the lock; never creates the file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # A shared lock, so that two callers that only test do not see each other as the owner.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[float], None]) -> Iterator[None]:
    """Hold the lock; while waiting for it, `waiting(seconds)` is called repeatedly with the time so far."""
    begin_s = time.monotonic()
    while (descriptor := try_lock(path)) is None:
        waiting(time.monotonic() - begin_s)
        time.sleep(_POLL_S)
    try:
        yield
    finally:
        os.close(descriptor)
