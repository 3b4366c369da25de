"""Post reviews to a webhook as fast as it answers, or at a fixed rate, from a process of its own.

`python -m bench.admission_load PORT CA-FILE` prints one line of JSON. Requests and answers are plain bytes on
open connections: a real HTTP client would need as much CPU time as the server that is measured.
"""

from __future__ import annotations

import asyncio
import collections
import ssl
import time
from typing import Annotated, Any, Final

import msgspec
import typer
import uvloop

from bench.admission_pod import pod

_CONNECTIONS: Final = 8
_WARM_UP_S: Final = 1.0


def review() -> bytes:
    """The review of a new pod as an API server sends it, with what its admission plugins have added."""
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    ca = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    fields: dict[str, Any] = {f"f:field-{number}": {"f:inner": {}, "k:{}": {".": {}}} for number in range(40)}
    created = pod("fluence", {}, generateName="web-5d4f6c7b8-", namespace="default")
    created["metadata"]["managedFields"] = [{"manager": "kubectl", "operation": "Update", "fieldsV1": fields}]
    created["spec"] |= {
        "serviceAccountName": "default",
        "volumes": [{"name": "kube-api-access-x2x4z", "projected": {"sources": [token, ca]}}],
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
    }
    created["status"] = {}
    user = {"username": "system:serviceaccount:kube-system:replicaset-controller", "groups": ["system:nodes"]}
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": user,
        "object": created,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return msgspec.json.encode(body)


def request_of(body: bytes) -> bytes:
    """The whole request, as Go's client writes it."""
    head = (
        "POST /mutate?timeout=5s HTTP/1.1\r\nHost: fluence-webhook.fluence-system.svc:443\r\n"
        "User-Agent: kube-apiserver-admission\r\nAccept: application/json, */*\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nAccept-Encoding: gzip\r\n\r\n"
    )
    return head.encode() + body


class Load:
    """Sends requests on several connections and records how long each answer took."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.waiting: collections.deque[float] = collections.deque()
        self.idle: list[Connection] = []
        self.took_s: list[float] = []
        self.flat_out = False

    def ask(self, asked_s: float) -> None:
        """Send one request, on the next connection that is free; the wait for it counts."""
        if self.idle:
            self.idle.pop().ask(asked_s)
        else:
            self.waiting.append(asked_s)

    def answered(self, connection: Connection, took_s: float) -> None:
        """Take back a connection that is free again."""
        self.took_s.append(took_s)
        if self.flat_out:
            connection.ask(time.perf_counter())
        elif self.waiting:
            connection.ask(self.waiting.popleft())
        else:
            self.idle.append(connection)


class Connection(asyncio.Protocol):
    """One open connection with at most one request in flight."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._received = b""
        self._asked_s = 0.0

    def connection_made(self, transport: Any) -> None:
        """Be ready to ask."""
        self._transport = transport
        self._load.idle.append(self)

    def ask(self, asked_s: float) -> None:
        """Send the request."""
        self._asked_s = asked_s
        self._transport.write(self._load.request)

    def data_received(self, data: bytes) -> None:
        """Read the answer once all of it has arrived."""
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]):
            return
        if not head.startswith(b"HTTP/1.1 200") or b'"patch"' not in body:
            raise AssertionError(self._received.decode())
        self._received = b""
        self._load.answered(self, time.perf_counter() - self._asked_s)


async def _run(port: int, ca: str, rate: float, seconds: float, connections: int) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    load = Load(request_of(review()))
    context = ssl.create_default_context(cafile=ca)
    for _ in range(connections):
        await loop.create_connection(lambda: Connection(load), "127.0.0.1", port, ssl=context)
    if rate:
        await _at_rate(load, rate, _WARM_UP_S)
        load.took_s.clear()
        began_s = time.perf_counter()
        await _at_rate(load, rate, seconds)
    else:
        load.flat_out = True
        while load.idle:
            load.idle.pop().ask(time.perf_counter())
        await asyncio.sleep(_WARM_UP_S)
        load.took_s.clear()
        began_s = time.perf_counter()
        await asyncio.sleep(seconds)
    took_s = sorted(load.took_s)
    return {
        "reviews_per_s": round(len(took_s) / (time.perf_counter() - began_s), 1),
        "p50_ms": round(took_s[len(took_s) // 2] * 1e3, 3),
        "p99_ms": round(took_s[int(len(took_s) * 0.99)] * 1e3, 3),
        "max_ms": round(took_s[-1] * 1e3, 3),
        "body_bytes": len(review()),
    }


async def _at_rate(load: Load, rate: float, seconds: float) -> None:
    """Send requests at equal intervals, whether or not answers arrive."""
    begin_s, count = time.perf_counter(), int(rate * seconds)
    for number in range(count):
        if (ahead_s := begin_s + number / rate - time.perf_counter()) > 0:
            await asyncio.sleep(ahead_s)
        load.ask(time.perf_counter())
    # Requests that are not answered by then count as lost, and lower the rate.
    await asyncio.sleep(0.2)


def main(
    port: int,
    ca: str,
    rate: Annotated[float, typer.Option(help="Reviews per second; 0: as fast as they are answered.")] = 0.0,
    seconds: Annotated[float, typer.Option(help="How long to measure.")] = 4.0,
    connections: Annotated[int, typer.Option(help="Kept connections.")] = _CONNECTIONS,
) -> None:
    """Post reviews and print how long the answers took."""
    print(msgspec.json.encode(uvloop.run(_run(port, ca, rate, seconds, connections))).decode())


if __name__ == "__main__":
    typer.run(main)
