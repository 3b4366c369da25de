"""What to answer to one admission request. Pure: the request, the rules and the policy, nothing else.

The order matters: whether the object is ours to judge comes first (A2, case C30: a foreign pod with a
nonsensical label of ours is none of our business), then whether its labels are mistakes (A4), then what
is missing (A1, A7, A8). A valid value that the user wrote is never rewritten (A3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fluence.contract import (
    GROUP_LABEL,
    SCHEDULER_NAME,
    SIZE_LABEL,
    ContractError,
    check_group_name,
    parse_group_size,
)
from fluence.workloads.adopt import adopt, identify, workload_group
from fluence.workloads.rules import Rule, Rules, builtin_rules
from fluence.workloads.shapes import Path, controller_of, lookup, mapping, text
from fluence.workloads.sizing import count_members
from webhook.models import AdmissionRequest
from webhook.patch import Operation, add_labels

#: Namespaces that hold the cluster itself (case C29); ours is added by the process.
SYSTEM_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease")

_INVALID: Final = 422
_SHOWN: Final = 80
_WARNING_LENGTH: Final = 120  # rule W12


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
class _Wanted:
    """The values that the user wrote; empty where there is none."""

    group: str
    size: str


def decide(request: AdmissionRequest, policy: Policy) -> Decision:
    """The decision about `request`; never raises, whatever the object contains."""
    obj = request.object
    if request.operation != "CREATE" or request.sub_resource or obj is None:
        return UNCHANGED
    namespace = request.namespace or text(lookup(obj, ("metadata", "namespace")))
    rule = _rule_of(request, obj, policy.rules)
    if rule is None or namespace in policy.skipped_namespaces:
        return UNCHANGED
    templates = [path for path in rule.templates if _opted_in(obj, path, policy.scheduler_name)]
    if not templates or rule.leaves_alone(obj, controller_of(obj)):
        return UNCHANGED
    # Metadata of an odd type is for the API server to refuse: a patch into it would not apply (W8).
    if not all(_has_usable_metadata(obj, path) for path in templates):
        return UNCHANGED
    try:
        on_object = _read(obj, Path(()))
        on_templates = [_read(obj, path) for path in templates]
    except ContractError as error:
        return Decision(allowed=False, code=_INVALID, message=str(error))
    wanted = _first_given(on_object, *on_templates)
    labels = _complete(wanted, rule, obj, namespace, request.uid, policy.rules)
    return _decision(obj, templates, on_templates, labels)


def _rule_of(request: AdmissionRequest, obj: Mapping[str, Any], rules: Rules) -> Rule | None:
    api_version, kind = request.kind.api_version, request.kind.kind
    return rules.find(
        api_version or text(obj.get("apiVersion")),
        kind or text(obj.get("kind")),
    )


def _opted_in(obj: Mapping[str, Any], template: Path, scheduler_name: str) -> bool:
    return bool(lookup(obj, (*template, "spec", "schedulerName")) == scheduler_name)


def _has_usable_metadata(obj: Mapping[str, Any], template: Path) -> bool:
    return all(
        isinstance(lookup(obj, path), dict | None)
        for path in ((*template, "metadata"), (*template, "metadata", "labels"))
    )


def _read(obj: Mapping[str, Any], template: Path) -> _Wanted:
    """The user's labels at `template`, checked; raises ContractError (A4)."""
    labels = mapping(lookup(obj, (*template, "metadata", "labels")))
    group = _value(labels, GROUP_LABEL)
    size = _value(labels, SIZE_LABEL)
    if group:
        check_group_name(group)
    if size:
        parse_group_size(size)
    return _Wanted(group, size)


def _value(labels: Mapping[str, Any], key: str) -> str:
    """A label's value; empty where it is missing, null or empty, which all mean the same (case C04)."""
    value = labels.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ContractError(f"{key}: the value of a label must be a quoted string, not {_describe(value)}")
    return value if len(value) <= _SHOWN else value[:_SHOWN] + "..."


def _describe(value: object) -> str:
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    # Python refuses to write out an integer of more than 4,300 digits.
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < 10**_SHOWN):
        return f'the number {value}: write "{value}"'
    if isinstance(value, int):
        return "a number"
    return "a list" if isinstance(value, list) else "a map"


def _first_given(*places: _Wanted) -> _Wanted:
    """What fills a gap: the first value on the object, then on its templates (A3)."""
    return _Wanted(
        next((place.group for place in places if place.group), ""),
        next((place.size for place in places if place.size), ""),
    )


def _complete(
    wanted: _Wanted,
    rule: Rule,
    obj: Mapping[str, Any],
    namespace: str,
    request_uid: str,
    rules: Rules,
) -> _Wanted:
    """`wanted`, with defaults where the user said nothing.

    The size stays empty for a pod whose owner the controller has to count (A8).
    """
    if rule.named_by == "pod":
        adoption = adopt(identify(obj, namespace), request_uid=request_uid, rules=rules)
        size = "" if adoption.size is None else str(adoption.size)
        return _Wanted(wanted.group or adoption.group_name, wanted.size or size)
    return _Wanted(
        wanted.group or workload_group(obj, namespace, request_uid),
        wanted.size or str(count_members(rule, obj)),
    )


def _decision(
    obj: Mapping[str, Any],
    templates: Sequence[Path],
    present: Sequence[_Wanted],
    labels: _Wanted,
) -> Decision:
    patch: list[Operation] = []
    warnings: list[str] = []
    for path, has in zip(templates, present, strict=True):
        missing: dict[str, str] = {}
        for key, value, wanted in (
            (GROUP_LABEL, has.group, labels.group),
            (SIZE_LABEL, has.size, labels.size),
        ):
            if not value and wanted:
                missing[key] = wanted
            elif value and value != wanted:
                # The pods carry the template's value; to rewrite it could break a selector.
                warnings.append(f'{key}: the pod template\'s "{value}" counts, not "{wanted}"')
        patch += add_labels(obj, path, missing)
    return Decision(patch=tuple(patch), warnings=tuple(one[:_WARNING_LENGTH] for one in warnings))
