"""The webhook's decision without an API server: the result of admission for an object in a file.

Owns: the request that the API server would send, lists of objects, applying the patch. Does not own: the
decision, which is `webhook.decide` for both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jsonpatch

from groups.workloads.shapes import lookup, mapping, text
from webhook.decide import Policy, decide
from webhook.documents import items_of
from webhook.models import AdmissionRequest, GroupVersionKind


@dataclass
class Outcome:
    """An object after admission, with warnings, or with denials."""

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
    labelled: list[Any] = []
    for item in items:
        if not isinstance(item, dict):
            labelled.append(item)
            continue
        one = label_object(typed_item(item, value), namespace, policy, new_uid)
        outcome.denials += one.denials
        outcome.warnings += one.warnings
        labelled.append(one.value)
    outcome.value = {**value, "items": labelled}
    return outcome


def typed_item(item: dict[str, Any], parent: dict[str, Any]) -> dict[str, Any]:
    """Items of a PodList may leave out what they are."""
    if "kind" in item or parent["kind"] == "List":
        return item
    kind = parent["kind"].removesuffix("List")
    return {"apiVersion": parent.get("apiVersion"), "kind": kind, **item}


def request_for(value: dict[str, Any], namespace: str, uid: str) -> AdmissionRequest:
    """The request that the API server would send for the creation of `value`."""
    api_version, kind = text(value.get("apiVersion")), text(value.get("kind"))
    group, _, version = api_version.rpartition("/")
    return AdmissionRequest(
        uid=uid,
        kind=GroupVersionKind(group=group, version=version, kind=kind),
        name=text(lookup(value, ("metadata", "name"))),
        namespace=text(lookup(value, ("metadata", "namespace"))) or namespace,
        operation="CREATE",
        object=value,
    )


def describe(value: dict[str, Any]) -> str:
    """The name of an object in messages: its kind, and its name or the beginning of it."""
    metadata = mapping(value.get("metadata"))
    return f'{text(value.get("kind"))} "{text(metadata.get("name")) or text(metadata.get("generateName"))}"'


def _label_one(value: dict[str, Any], namespace: str, policy: Policy, uid: str) -> Outcome:
    decision = decide(request_for(value, namespace, uid), policy)
    shown = describe(value)
    warnings = [f"{shown}: {one}" for one in decision.warnings]
    if not decision.allowed:
        return Outcome(value, [f"{shown}: {decision.message}"], warnings)
    if not decision.patch:
        return Outcome(value, [], warnings)
    patched = jsonpatch.JsonPatch(list(decision.patch)).apply(value)
    return Outcome(patched, [], warnings)
