"""What is registered with the API server while pods are created: nothing, Fluence, or one of two floors.

The floors add the same labels to every pod without reading it. A webhook (`bench.admission_floor`) shows the
lowest cost of a call; an admission policy shows the lowest cost of labelling without a call.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime as dt
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from certs.authority import new_bundle
from devcluster import ports
from groups.contract import GROUP_LABEL, SIZE_LABEL
from kube.errors import NotFound
from kube.session import Kube

WITHOUT: Final = "without"
WITH: Final = "with"
FLOOR_WEBHOOK: Final = "floor_webhook"
FLOOR_POLICY: Final = "floor_policy"

#: What to register, in order: the path of a collection, and an object for it.
Way = list[tuple[str, dict[str, Any]]]

_API: Final = "/apis/admissionregistration.k8s.io/v1"
_WEBHOOKS: Final = f"{_API}/mutatingwebhookconfigurations"
_POLICIES: Final = f"{_API}/mutatingadmissionpolicies"
_BINDINGS: Final = f"{_API}/mutatingadmissionpolicybindings"
_NAME: Final = "fluence"
_DEADLINE_S: Final = 120.0
#: In how many consecutive answers a change must be visible, because the API server has several caches.
_IN_FORCE: Final = 5
_ROOT: Final = Path(__file__).parent.parent


async def ways(kube: Kube, floor: dict[str, str]) -> dict[str, Way]:
    """Every way; `floor` is the clientConfig of the webhook that does nothing."""
    found = json.loads(await kube.get(f"{_WEBHOOKS}/{_NAME}"))
    ours = {**found, "metadata": {"name": _NAME, "labels": found["metadata"].get("labels")}}
    unread = {**ours, "webhooks": [{**one, "clientConfig": floor} for one in ours["webhooks"]]}
    return {
        WITHOUT: [],
        WITH: [(_WEBHOOKS, ours)],
        FLOOR_WEBHOOK: [(_WEBHOOKS, unread)],
        FLOOR_POLICY: _policy(),
    }


def _policy() -> Way:
    labels = f'{{"{GROUP_LABEL}": "g", "{SIZE_LABEL}": "1"}}'
    spec = {
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "resourceRules": [
                {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
            ]
        },
        "mutations": [
            {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {
                    "expression": f"Object{{metadata: Object.metadata{{labels: {labels}}}}}"
                },
            }
        ],
    }
    metadata = {"name": _NAME}
    return [(_POLICIES, {"metadata": metadata, "spec": spec}), (_BINDINGS, _binding(metadata))]


def _binding(metadata: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": metadata, "spec": {"policyName": _NAME}}


async def register(kube: Kube, way: Way, pods: str, opted_in: dict[str, Any]) -> None:
    """Register `way` instead of what is registered now, and wait until the API server uses it.

    `opted_in` is a pod that is labelled under every way but the first.
    """
    for collection in (_WEBHOOKS, _BINDINGS, _POLICIES):
        with contextlib.suppress(NotFound):
            await kube.delete(f"{collection}/{_NAME}")
    await _until_labelled(kube, pods, opted_in, labelled=False)
    for collection, body in way:
        await kube.post(collection, body)
    if way:
        await _until_labelled(kube, pods, opted_in, labelled=True)


async def _until_labelled(kube: Kube, pods: str, opted_in: dict[str, Any], *, labelled: bool) -> None:
    probe = json.dumps(opted_in).encode()
    async with asyncio.timeout(_DEADLINE_S):
        in_force = 0
        while in_force < _IN_FORCE:
            made = await kube.request("POST", pods, body=probe, params={"dryRun": "All"})
            in_force = in_force + 1 if (SIZE_LABEL.encode() in made) == labelled else 0


def write_certificate(folder: Path) -> bytes:
    """A certificate for 127.0.0.1 as files for --cert-dir; its authority."""
    bundle = new_bundle(["127.0.0.1"], dt.datetime.now(dt.UTC))
    for name, content in (("tls.crt", bundle.cert), ("tls.key", bundle.key), ("ca.crt", bundle.ca)):
        (folder / name).write_bytes(content)
    return bundle.ca


@contextlib.contextmanager
def floor_webhook() -> Iterator[dict[str, str]]:
    """The webhook that does nothing, as a process; its clientConfig."""
    (port,) = ports.choose(("floor",), ()).values()
    with tempfile.TemporaryDirectory() as folder:
        ca = write_certificate(Path(folder))
        command = [sys.executable, "-m", "bench.admission_floor", folder, str(port)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=_ROOT)  # noqa: S603  (our own program)
        try:
            assert child.stdout is not None
            if not child.stdout.readline():
                raise RuntimeError("the webhook that does nothing did not start; its output is above")
            yield {"url": f"https://127.0.0.1:{port}/mutate", "caBundle": base64.b64encode(ca).decode()}
        finally:
            child.kill()
            child.communicate()
