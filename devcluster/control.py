"""The protocol to control the supervisor of a cluster: one line of JSON each way over a Unix socket.

Owns: the protocol, both ends. Does not own: what the requests do.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from devcluster.errors import DevclusterError
from groups.errors import FluenceError

Request = dict[str, Any]
Handler = Callable[[Request], Awaitable[Any]]

#: Longer than any request takes: a process may use all of its time to become ready.
_DEADLINE_S: Final = 150.0


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """The same path in fewer characters: the kernel allows at most 108 for the path of a socket."""
    folder = os.open(path.parent, os.O_PATH | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def listen(path: Path) -> socket.socket:
    """A socket that waits for requests at `path`."""
    server = socket.socket(socket.AF_UNIX)
    with _short(path) as short:
        server.bind(short)
    return server


async def serve(sock: socket.socket, handle: Handler) -> asyncio.Server:
    """Answer requests by `handle`; what it returns is the answer, and what it raises an error's text."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            line = await reader.readline()
            if line:
                try:
                    reply = {"ok": await handle(msgspec.json.decode(line))}
                except FluenceError as error:
                    reply = {"error": str(error)}
                writer.write(msgspec.json.encode(reply) + b"\n")
                await writer.drain()
        writer.close()

    return await asyncio.start_unix_server(answer, sock=sock)


def ask(path: Path, do: str, **details: Any) -> Any:
    """Send one request and wait for its answer; DevclusterError with what the supervisor said."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_DEADLINE_S)
        with _short(path) as short:
            client.connect(short)
        client.sendall(msgspec.json.encode({"do": do, **details}) + b"\n")
        with client.makefile("rb") as answers:
            line = answers.readline()
    if not line:
        raise ConnectionResetError("the supervisor ended before it answered")
    reply = msgspec.json.decode(line, type=dict)
    if "error" in reply:
        raise DevclusterError(reply["error"])
    return reply["ok"]
