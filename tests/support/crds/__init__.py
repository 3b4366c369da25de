"""Minimal CRDs for every custom kind of the table of rules; they accept and keep all fields.

Validation and defaults of the operators' real CRDs are not tested. Tested is that the API server calls the
webhook for these kinds, stores the patch, and evaluates every condition.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from devcluster.api import Api, ApiFailure
from groups.workloads.rules import Rule, Rules, builtin_rules

_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DEADLINE_S: Final = 30.0


def crd(rule: Rule) -> dict[str, Any]:
    """A CRD that serves every version of a rule's kind."""
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{rule.resource}.{rule.group}",
            # Some of these groups are protected: only approved APIs may be defined in them.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests only"},
        },
        "spec": {
            "group": rule.group,
            "scope": "Namespaced",
            "names": {"plural": rule.resource, "singular": rule.kind.lower(), "kind": rule.kind},
            "versions": [
                {"name": version, "served": True, "storage": number == 0, "schema": anything}
                for number, version in enumerate(rule.versions)
            ],
        },
    }


async def install(api: Api, rules: Rules | None = None) -> None:
    """Define every custom kind that the cluster does not know yet, and wait until all are served."""
    custom = [rule for rule in (rules or builtin_rules()).all if not rule.is_built_in]
    for rule in custom:
        try:
            await api.post(_CRDS, crd(rule))
        except ApiFailure as error:
            if error.status != 409:
                raise
    for rule in custom:
        await _until_served(api, rule)


async def _until_served(api: Api, rule: Rule) -> None:
    end_s = time.monotonic() + _DEADLINE_S
    for version in rule.versions:
        path = f"/apis/{rule.group}/{version}/{rule.resource}"
        while not await _is_served(api, path):
            assert time.monotonic() < end_s, f"{path} is not served"
            await asyncio.sleep(0.1)


async def _is_served(api: Api, path: str) -> bool:
    try:
        return await api.find(path) is not None
    except ApiFailure as error:
        # The API server is still setting up its storage.
        if error.status in (429, 503):
            return False
        raise
