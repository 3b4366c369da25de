"""The webhook's decision without an API server: what admission would make of an object in a file.

Owns: the request that the API server would send, lists of objects, applying the patch. Does not own: the
decision, which is `webhook.decide` for both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jsonpatch

from fluence.workloads.shapes import lookup, text
from webhook.decide import Policy, decide
from webhook.documents import items_of
from webhook.models import AdmissionRequest, GroupVersionKind


@dataclass
class Outcome:
    """An object as admission would leave it, and what it would say about it."""

    value: dict[str, Any]
    denials: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def label_object(
    value: dict[str, Any], namespace: str, policy: Policy, new_uid: Callable[[], str]
) -> Outcome:
    """Label `value`, or each object in it if it is a list; `namespace` is for objects that name none."""
    items = items_of(value)
    if items is None:
        return _label_one(value, namespace, policy, new_uid())
    outcome = Outcome(value)
    labelled = []
    for item in items:
        if not isinstance(item, dict):
            labelled.append(item)
            continue
        one = label_object(_typed(item, value), namespace, policy, new_uid)
        outcome.denials += one.denials
        outcome.warnings += one.warnings
        labelled.append(one.value)
    outcome.value = {**value, "items": labelled}
    return outcome


def _typed(item: dict[str, Any], parent: dict[str, Any]) -> dict[str, Any]:
    """Items of a PodList may leave out what they are."""
    if "kind" in item or parent["kind"] == "List":
        return item
    kind = parent["kind"].removesuffix("List")
    return {"apiVersion": parent.get("apiVersion"), "kind": kind, **item}


def _label_one(value: dict[str, Any], namespace: str, policy: Policy, uid: str) -> Outcome:
    api_version, kind = text(value.get("apiVersion")), text(value.get("kind"))
    group, _, version = api_version.rpartition("/")
    name = text(lookup(value, ("metadata", "name")))
    request = AdmissionRequest(
        uid=uid,
        kind=GroupVersionKind(group=group, version=version, kind=kind),
        name=name,
        namespace=text(lookup(value, ("metadata", "namespace"))) or namespace,
        operation="CREATE",
        object=value,
    )
    decision = decide(request, policy)
    shown = f'{kind} "{name or text(lookup(value, ("metadata", "generateName")))}"'
    warnings = [f"{shown}: {one}" for one in decision.warnings]
    if not decision.allowed:
        return Outcome(value, [f"{shown}: {decision.message}"], warnings)
    if not decision.patch:
        return Outcome(value, [], warnings)
    patched = jsonpatch.JsonPatch(list(decision.patch)).apply(value)
    return Outcome(patched, [], warnings)
