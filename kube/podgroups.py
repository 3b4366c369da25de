"""Where PodGroups are in the API, and whether the cluster has them at all.

Owns: paths of `podgroups.scheduling.x-k8s.io`; always the full name, since Kubernetes 1.36 and newer have
another `podgroups`. Does not own: what a PodGroup means.
"""

from __future__ import annotations

import contextlib
from typing import Final

import structlog

from fluence.contract import POD_GROUP_API_VERSION, POD_GROUP_PLURAL, FluenceError
from kube.backoff import ROLES_DEADLINE_S, Backoff, once_roles_are_read, persist
from kube.errors import Forbidden, KubeError, NotFound
from kube.session import Kube

#: The collection of all namespaces.
POD_GROUPS: Final = f"/apis/{POD_GROUP_API_VERSION}/{POD_GROUP_PLURAL}"

_START_DEADLINE_S: Final = 60.0
_log = structlog.get_logger(__name__)


def pod_groups_of(namespace: str) -> str:
    """The collection of one namespace."""
    return f"/apis/{POD_GROUP_API_VERSION}/namespaces/{namespace}/{POD_GROUP_PLURAL}"


async def require_pod_groups(kube: Kube, *, roles_deadline_s: float = ROLES_DEADLINE_S) -> None:
    """Return once PodGroups can be listed; an API server that is away is waited for, and the wait is logged.

    Raises FluenceError where the CRD is missing, Forbidden where the right to list is missing for longer than
    `roles_deadline_s`, and the last error when the server stays away for a minute.
    """

    async def attempt() -> None:
        await once_roles_are_read(lambda: _list_one(kube), deadline_s=roles_deadline_s)

    try:
        await persist(
            attempt, deadline_s=_START_DEADLINE_S, backoff=Backoff(most_s=5.0), on_retry=_say_that_it_waits
        )
    except NotFound as error:
        raise FluenceError(
            "the CRD podgroups.scheduling.x-k8s.io is not installed: install the chart (helm install "
            "fluence manifests/chart), or kubectl apply -f manifests/chart/crds/podgroups.yaml"
        ) from error


def _say_that_it_waits(error: KubeError, delay_s: float) -> None:
    _log.warning("waiting for the API server", error=str(error), retry_in_seconds=round(delay_s, 2))


async def _list_one(kube: Kube) -> None:
    try:
        await kube.get(POD_GROUPS, {"limit": "1"})
    except NotFound:
        # An API server that is just starting knows no custom resources yet; it says so by not being ready,
        # which is an error worth another try.
        with contextlib.suppress(Forbidden, NotFound):
            await kube.get("/readyz")
        await kube.get(POD_GROUPS, {"limit": "1"})
