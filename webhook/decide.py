"""What to answer to one admission request. Pure: the request, the rules and the policy, nothing else.

The order matters: whether the object is ours to judge comes first (A2, case C30: a foreign pod with a
nonsensical label of ours is none of our business), then whether its labels are mistakes (A4), then what
is missing (A1, A7, A8: `webhook.labels`). A valid value that the user wrote is never rewritten (A3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from groups.contract import SCHEDULER_NAME
from groups.errors import ContractError
from groups.workloads.rules import Rule, Rules, builtin_rules
from groups.workloads.shapes import Place, controller_of, lookup, mapping, show_path, text
from groups.workloads.sizing import opted_in, parts_of
from webhook.labels import Labelled, Reading, label_parts, read_labels
from webhook.models import AdmissionRequest
from webhook.patch import Operation, add_labels
from webhook.warn import warnings_about

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
class Judgement:
    """A decision and how it came about: the rule, the labels of each template, or why nothing is done."""

    decision: Decision
    rule: Rule | None = None
    why_not: str = ""
    templates: tuple[Labelled, ...] = ()


def decide(request: AdmissionRequest, policy: Policy) -> Decision:
    """The decision about `request`; never raises, whatever the object contains."""
    return judge(request, policy).decision


def judge(request: AdmissionRequest, policy: Policy) -> Judgement:
    """The decision about `request`, with what led to it."""
    obj = request.object
    if request.operation != "CREATE" or request.sub_resource or obj is None:
        return _nothing("only the creation of objects is looked at")
    api_version, kind = _type_of(request, obj)
    rule = policy.rules.find(api_version, kind)
    if rule is None:
        return _nothing(f"no rule is for kind {kind} of {api_version}")
    namespace = request.namespace or text(lookup(obj, ("metadata", "namespace")))
    if namespace in policy.skipped_namespaces:
        return _nothing(f'the namespace "{namespace}" is never looked at', rule)
    return _judge_ours(obj, rule, namespace, request.uid, policy)


def _judge_ours(
    obj: Mapping[str, Any], rule: Rule, namespace: str, request_uid: str, policy: Policy
) -> Judgement:
    parts = [part for part in parts_of(rule, obj) if opted_in(obj, part.place, policy.scheduler_name)]
    if rule.untouched is not None and not parts:
        return _nothing(rule.untouched.because, rule)
    if not parts:
        return _nothing(_why_not_ours(rule, policy.scheduler_name), rule)
    if why := rule.leaves_alone(obj, controller_of(obj)):
        return _nothing(why, rule)
    for part in parts:
        # Metadata of an odd type is for the API server to refuse: a patch into it would not apply (W8).
        if not _has_usable_metadata(obj, part.place):
            return _nothing(f'"{show_path((*part.place, "metadata"))}" holds no metadata', rule)
    try:
        on_object = read_labels(obj, (), policy.rules.older)
        on_parts = [read_labels(obj, part.place, policy.rules.older) for part in parts]
    except ContractError as error:
        return Judgement(Decision(allowed=False, code=_INVALID, message=str(error)), rule)
    if rule.untouched is not None:
        return _untouched(rule, on_parts)
    labelled = label_parts(
        obj, parts, on_object, on_parts, rule=rule, namespace=namespace, uid=request_uid, rules=policy.rules
    )
    if mistake := _selected_though_empty(obj, labelled):
        return Judgement(Decision(allowed=False, code=_INVALID, message=mistake), rule)
    patch: list[Operation] = []
    for one in labelled:
        patch += add_labels(obj, one.part.place, one.missing)
    decision = Decision(patch=tuple(patch), warnings=warnings_about(obj, rule, labelled))
    return Judgement(decision, rule, "" if patch else "it has all its labels already", labelled)


def _selected_though_empty(obj: Mapping[str, Any], labelled: tuple[Labelled, ...]) -> str:
    """What is wrong where the object selects its pods by a label of ours that it leaves empty; or nothing.

    With a value the template would no longer match, and without one the pods would leave their owner as soon
    as they get it.
    """
    selector = mapping(lookup(obj, ("spec", "selector")))
    selected = {**selector, **mapping(selector.get("matchLabels"))}
    for one in labelled:
        labels = mapping(lookup(obj, (*one.part.place, "metadata", "labels")))
        for key in one.missing:
            if key in labels and key in selected:
                return f"{key}: an empty label cannot select pods; give it a value here and in the selector"
    return ""


def _nothing(why: str, rule: Rule | None = None) -> Judgement:
    return Judgement(UNCHANGED, rule, why)


def _why_not_ours(rule: Rule, scheduler_name: str) -> str:
    places = " or ".join(show_path((*one.path, "spec", "schedulerName")) for one in rule.templates)
    return f"{places} is not {scheduler_name}"


def _untouched(rule: Rule, on_parts: list[Reading]) -> Judgement:
    """Nothing is added, but mistakes were denied, and a group named all the same is remarked upon."""
    assert rule.untouched is not None
    said = rule.untouched.if_grouped
    named = next((one.group for one in on_parts if one.group), "")
    warnings = (f'group "{named}": {said}'[:120],) if named and said else ()
    return Judgement(Decision(warnings=warnings), rule, rule.untouched.because)


def _type_of(request: AdmissionRequest, obj: Mapping[str, Any]) -> tuple[str, str]:
    return (
        request.kind.api_version or text(obj.get("apiVersion")),
        request.kind.kind or text(obj.get("kind")),
    )


def _has_usable_metadata(obj: Mapping[str, Any], template: Place) -> bool:
    return all(
        isinstance(lookup(obj, path), dict | None)
        for path in ((*template, "metadata"), (*template, "metadata", "labels"))
    )
