"""Logs of a process: one JSON object a line on standard error, ours and those of libraries alike.

Our own lines do not pass through the standard library's logging, which would cost the webhook more than
the decision that a line tells of.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from typing import Any, Final

import msgspec
import structlog

#: Libraries that tell each request at a level which is ours for news.
_CHATTY: Final = ("aiohttp.access", "uvicorn.access", "kubernetes_asyncio", "asyncio")
_encoder: Final = msgspec.json.Encoder(enc_hook=str)


def configure(level: str, process: str) -> None:
    """Log from `level` on; every line carries the name of the process."""

    def name_process(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        event["process"] = process
        return event

    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        name_process,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, _render],
        logger_factory=_Lines,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(default=str),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


class _Lines(structlog.BytesLogger):
    """Lines to standard error; a pipe that nobody reads any more must not stop the work that is logged."""

    def __init__(self, name: str = "fluence") -> None:
        super().__init__(sys.stderr.buffer, name=name)

    def msg(self, message: bytes) -> None:
        """Write one line."""
        with contextlib.suppress(OSError):
            super().msg(message)

    log = debug = info = warn = warning = msg
    fatal = failure = err = error = critical = exception = msg


def _render(_: object, __: str, event: structlog.typing.EventDict) -> bytes:
    try:
        return _encoder.encode(event)
    except (UnicodeEncodeError, TypeError):
        # Text that is no UTF-8, as names of files may be, or a key that is no text.
        return json.dumps(_plain(event), default=str).encode()


def _plain(event: Any) -> Any:
    return {str(key): value for key, value in event.items()}
