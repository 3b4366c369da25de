"""The one clock that stamps are read from, and the text of a stamp."""

from __future__ import annotations

import datetime as dt


def utc_now() -> dt.datetime:
    """The present moment, in UTC."""
    return dt.datetime.now(dt.UTC)


def format_micro_time(moment: dt.datetime) -> str:
    """RFC 3339 in UTC with exactly six fractional digits and Z, as Go's MicroTime wants (case C42)."""
    if moment.tzinfo is None:
        raise ValueError("a time without a zone is ambiguous")
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> dt.datetime:
    """Read an RFC 3339 time of either precision; ValueError if it is none."""
    moment = dt.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"a time without a zone is ambiguous: {text!r}")
    return moment.astimezone(dt.UTC)
