"""The fastest possible webhook: a server that answers every review with the same patch, without reading it.

The difference to an API server without a webhook is the API server's own work for one call.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
from pathlib import Path
from typing import Any, Final

import typer
import uvloop

from groups.contract import GROUP_LABEL, SIZE_LABEL

_LENGTH: Final = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_UID: Final = re.compile(rb'"uid":"([^"]+)"')
_LABELS: Final = {GROUP_LABEL: "g", SIZE_LABEL: "1"}
_PATCH: Final = base64.b64encode(
    json.dumps(
        [
            {"op": "add", "path": f"/metadata/labels/{key.replace('/', '~1')}", "value": value}
            for key, value in _LABELS.items()
        ]
    ).encode()
)
_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_ANSWER: Final = (
    b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":'
    b'{"uid":"%b","allowed":true,"patchType":"JSONPatch","patch":"%b"}}'
)


class _Connection(asyncio.Protocol):
    """One connection of the API server."""

    def connection_made(self, transport: Any) -> None:
        """Begin."""
        self._transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        """Answer once the whole review has arrived."""
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end or (length := _LENGTH.search(head)) is None or len(body) < int(length[1]):
            return
        self._received = b""
        # The request's uid is the first thing in it.
        uid = _UID.search(body)
        assert uid is not None
        answer = _ANSWER % (uid[1], _PATCH)
        self._transport.write(_HEAD % len(answer) + answer)


async def _serve(folder: Path, port: int) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", port, ssl=context)
    print("serving", flush=True)
    await server.serve_forever()


def main(folder: Path, port: int) -> None:
    """Serve on 127.0.0.1 with the certificate in FOLDER, until killed."""
    uvloop.run(_serve(folder, port))


if __name__ == "__main__":
    typer.run(main)
