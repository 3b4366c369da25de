"""Keep what lives for long out of the garbage collector's sight.

Owns: when objects are exempt from collections. A full collection walks every object that can be part of a
cycle, and the event loop stands still meanwhile: with 100,000 pods for a third of a second. What the first
lists bring has no cycles and lives for as long as the process, so it is exempt as soon as it is there, a page
at a time. Reference counting still frees it.
"""

from __future__ import annotations

import gc


def exempt_new() -> None:
    """Exempt all that exists now, after a collection of what is young. It takes a few milliseconds."""
    gc.collect(1)
    gc.freeze()


def exempt_all() -> None:
    """Exempt all that exists now, after a full collection of what is not exempt yet."""
    gc.collect()
    gc.freeze()
