"""What to answer to one admission request: read the object, decide its labels, make the patch. Pure.

A valid value that the user wrote is never rewritten (A3); a mistake is denied with a sentence (A4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from groups.contract import SCHEDULER_NAME
from groups.workloads.grouping import Grouped, group_parts
from groups.workloads.reading import Workload, read
from groups.workloads.rules import Rules, builtin_rules
from groups.workloads.shapes import lookup, mapping, text
from webhook.models import AdmissionRequest
from webhook.patch import Operation, add_metadata
from webhook.warn import LENGTH, warnings_about

#: Namespaces that hold the cluster itself (case C29); ours is added by the process.
SYSTEM_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease")

_INVALID: Final = 422


@dataclass(frozen=True)
class Policy:
    """What an administrator may choose."""

    scheduler_name: str = SCHEDULER_NAME
    skipped_namespaces: frozenset[str] = frozenset(SYSTEM_NAMESPACES)
    rules: Rules = field(default_factory=builtin_rules)


@dataclass(frozen=True)
class Decision:
    """The answer: allowed, perhaps with a patch; or denied with a code and a sentence."""

    allowed: bool = True
    patch: tuple[Operation, ...] = ()
    code: int = 200
    message: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """One word for log and metric: unchanged, labelled or denied."""
        if not self.allowed:
            return "denied"
        return "labelled" if self.patch else "unchanged"


UNCHANGED: Final = Decision()


@dataclass(frozen=True)
class Reviewed:
    """A decision and what led to it: the object as it was read, and what its templates end up with."""

    decision: Decision
    workload: Workload
    grouped: tuple[Grouped, ...] = ()

    @property
    def why_unchanged(self) -> str:
        """Why nothing is written."""
        return self.workload.untouched or "it has all its labels already"


def decide(request: AdmissionRequest, policy: Policy) -> Decision:
    """The decision about `request`; never raises, whatever the object contains."""
    return review(request, policy).decision


def review(request: AdmissionRequest, policy: Policy) -> Reviewed:
    """The decision about `request`, with what led to it."""
    workload = _read(request, policy)
    if workload.mistake:
        return Reviewed(_denied(workload.mistake), workload)
    if workload.untouched:
        return Reviewed(Decision(warnings=_about_untouched(workload)), workload)
    grouped = group_parts(workload, policy.rules)
    if mistake := _selected_though_empty(workload.obj, grouped):
        return Reviewed(_denied(mistake), workload, grouped)
    patch = [
        operation
        for one in grouped
        for operation in add_metadata(workload.obj, one.part.place, one.labels, one.annotations)
    ]
    return Reviewed(
        Decision(patch=tuple(patch), warnings=warnings_about(workload, grouped)), workload, grouped
    )


def _read(request: AdmissionRequest, policy: Policy) -> Workload:
    obj = request.object
    if request.operation != "CREATE" or request.sub_resource or obj is None:
        return Workload(obj or {}, "", untouched="only the creation of objects is looked at")
    namespace = request.namespace or text(lookup(obj, ("metadata", "namespace")))
    if namespace in policy.skipped_namespaces:
        return Workload(obj, namespace, untouched=f'the namespace "{namespace}" is never looked at')
    return read(
        obj,
        request.kind.api_version or text(obj.get("apiVersion")),
        request.kind.kind or text(obj.get("kind")),
        namespace,
        rules=policy.rules,
        scheduler_name=policy.scheduler_name,
        request_uid=request.uid,
    )


def _denied(mistake: str) -> Decision:
    return Decision(allowed=False, code=_INVALID, message=mistake)


def _about_untouched(workload: Workload) -> tuple[str, ...]:
    """A warning where the user names a group in an object that is left as it is."""
    untouched = workload.rule.untouched if workload.rule is not None else None
    named = next((one.stated.group for one in workload.parts if one.stated.group), "")
    if untouched is None or not untouched.if_grouped or not named:
        return ()
    return (f'group "{named}": {untouched.if_grouped}'[:LENGTH],)


def _selected_though_empty(obj: Mapping[str, Any], grouped: Iterable[Grouped]) -> str:
    """What is wrong where the object selects its pods by a label of ours that it leaves empty; or nothing.

    With a value the template would no longer match, and without one the pods would leave their owner as soon
    as they get it.
    """
    selector = mapping(lookup(obj, ("spec", "selector")))
    selected = {**selector, **mapping(selector.get("matchLabels"))}
    for one in grouped:
        labels = mapping(lookup(obj, (*one.part.place, "metadata", "labels")))
        for key in one.labels:
            if key in labels and key in selected:
                return f"{key}: an empty label cannot select pods; give it a value here and in the selector"
    return ""
