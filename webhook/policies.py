"""Admission policies that label without a webhook, generated from the same table of rules.

`python -m webhook.policies` prints manifests/policies/fluence.yaml. One MutatingAdmissionPolicy for each
kind whose size CEL can count, and one ValidatingAdmissionPolicy that denies mistakes (A4) in every kind.
What they cannot do (manifests/policies/README.md) is left unlabelled, and the controller labels the pods
(rule A8). A policy whose expression fails does nothing: it must never block an object.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from groups.contract import (
    GROUP_LABEL,
    SCHEDULER_NAME,
    SIZE_FROM_ANNOTATION,
    SIZE_FROM_RULE,
    SIZE_LABEL,
    check_group_name,
    parse_group_size,
)
from groups.errors import FluenceError
from groups.workloads.grouping import MOST_ANNOTATED
from groups.workloads.rules import Rule, Rules, builtin_rules, read_rules
from groups.workloads.shapes import WILDCARDS
from webhook import policy_expressions as cel
from webhook.conditions import condition
from webhook.decide import SYSTEM_NAMESPACES
from webhook.registration import NAMESPACE_LABEL, WEBHOOK_DOMAIN, webhook_name

RELEASE_NAMESPACE: Final = "fluence-system"
MISTAKES: Final = f"mistakes.{WEBHOOK_DOMAIN}"
_API_VERSION: Final = "admissionregistration.k8s.io/v1"
_HEAD: Final = """\
# Fluence's labels without a webhook, for Kubernetes 1.36 and newer: README.md tells when to use it.
# Generated from groups/workloads/table/ by `python -m webhook.policies`: change the table of rules, not
# this file. Another scheduler name, release namespace or table: `python -m webhook.policies --help`.
"""


def has_policy(rule: Rule) -> bool:
    """Whether CEL can count the members of such an object: it has one pod template, at a fixed place."""
    if rule.untouched is not None or len(rule.templates) != 1 or rule.at_most is not None:
        return False
    template = rule.templates[0]
    return (
        template.own_group is None
        and not WILDCARDS.intersection(template.path)
        and cel.can_count(template.pods)
    )


def policies(rules: Rules, scheduler_name: str, release_namespace: str) -> list[dict[str, Any]]:
    """Every policy, each followed by its binding."""
    found: list[dict[str, Any]] = []
    for rule in filter(has_policy, rules.all):
        name = webhook_name(rule)
        spec = _mutating(rule, rules, scheduler_name, release_namespace)
        found += [_document("MutatingAdmissionPolicy", name, spec)]
        found += [_document("MutatingAdmissionPolicyBinding", name, {"policyName": name})]
    spec = _validating(rules, scheduler_name, release_namespace)
    binding = {"policyName": MISTAKES, "validationActions": ["Deny"]}
    found += [_document("ValidatingAdmissionPolicy", MISTAKES, spec)]
    found += [_document("ValidatingAdmissionPolicyBinding", MISTAKES, binding)]
    return found


def _document(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "fluence", "app.kubernetes.io/component": "policies"}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": dict(spec)}


def _mutating(rule: Rule, rules: Rules, scheduler_name: str, release_namespace: str) -> dict[str, Any]:
    conditions = {"asks-for-fluence-and-lacks-labels": condition(rule, scheduler_name)}
    if alone := cel.left_alone(rule.leave_alone):
        conditions["is-not-left-alone"] = f"!({alone})"
    if behind := cel.left_to_controller(rule, rules):
        conditions["is-not-left-to-the-controller"] = f"!({behind})"
    return {
        "failurePolicy": "Ignore",
        # Being asked twice does no harm: what is labelled is not labelled again.
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": _constraints([rule], release_namespace),
        "matchConditions": _named(conditions),
        "variables": _named(_variables(rule, rules)),
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _patch(rule)}}],
    }


def _constraints(rules: Iterable[Rule], release_namespace: str) -> dict[str, Any]:
    return {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {
            "matchExpressions": [
                {
                    "key": NAMESPACE_LABEL,
                    "operator": "NotIn",
                    "values": [*SYSTEM_NAMESPACES, release_namespace],
                }
            ]
        },
        "resourceRules": [
            {
                "operations": ["CREATE"],
                "apiGroups": [rule.group],
                "apiVersions": list(rule.versions),
                "resources": [rule.resource],
                "scope": "Namespaced",
            }
            for rule in rules
        ],
    }


def _variables(rule: Rule, rules: Rules) -> dict[str, str]:
    """The steps of `groups.workloads.grouping` for an object with one template."""
    is_pod = not rule.templates[0].path
    template = ".".join(("object", *rule.templates[0].path))
    steps = {
        "older": cel.older_keys(rules.older),
        "places": cel.places("[object]" if is_pod else f"[object, {template}]"),
        "readings": cel.READINGS,
        "mistakes": cel.MISTAKES,
        "onObject": "variables.readings[0]",
        "onTemplate": f"variables.readings[{0 if is_pod else 1}]",
    }
    for place in ("Object", "Template"):
        on = f"variables.on{place}"
        steps[f"group{place}"] = f'{on}[0] != "" ? {on}[0] : {on}[2]'
        steps[f"size{place}"] = f'{on}[1] != "" ? {on}[1] : {on}[3]'
    steps["named"] = cel.default_name(rule)
    steps["group"] = _first("variables.groupTemplate", "variables.groupObject", "variables.named")
    if is_pod:
        steps["size"] = 'variables.sizeObject != "" ? variables.sizeObject : "1"'
        return steps
    steps["isGang"] = "true" if rule.gang_when is None else cel.holds(rule.gang_when)
    # Another system's size is no wish of the user's for pods that start one after another.
    steps["wish"] = 'variables.sizeObject != "" ? variables.sizeObject : variables.sizeTemplate'
    steps["isOurs"] = '(variables.sizeObject != "" ? variables.onObject : variables.onTemplate)[1] != ""'
    steps["isCounted"] = 'variables.wish == "" || !(variables.isOurs || variables.isGang)'
    steps["size"] = f"variables.isCounted ? string({cel.members(rule)}) : variables.wish"
    annotations = f"{template}.metadata.annotations"
    counted = 'variables.onTemplate[1] == "" && variables.isCounted'
    steps["hasAnnotations"] = f"{_has(f'{template}.metadata')} && {_has(annotations)}"
    steps["isMarked"] = (
        f"{counted} && (!variables.hasAnnotations || "
        f"{annotations}.map(key, key.size() + {annotations}[key].size()).sum() <= {MOST_ANNOTATED})"
    )
    return steps


def _first(*values: str) -> str:
    *conditional, last = values
    return " : ".join([f'{value} != "" ? {value}' for value in conditional] + [last])


def _patch(rule: Rule) -> str:
    """Only what is missing is added, parents that are missing or null first (cases C08 and C10)."""
    path = rule.templates[0].path
    template = ".".join(("object", *path))
    pointer = "".join(f"/{step}" for step in (*path, "metadata"))
    has_metadata = _has(f"{template}.metadata")
    has_labels = f"{has_metadata} && {_has(f'{template}.metadata.labels')}"
    add = [
        f'({has_metadata} ? [] : [JSONPatch{{op: "add", path: "{pointer}", value: {{}}}}])',
        f'({has_labels} ? [] : [JSONPatch{{op: "add", path: "{pointer}/labels", value: {{}}}}])',
    ]
    for key, index, variable in ((GROUP_LABEL, 0, "group"), (SIZE_LABEL, 1, "size")):
        where = f'"{pointer}/labels/" + jsonpatch.escapeKey("{key}")'
        operation = f'JSONPatch{{op: "add", path: {where}, value: variables.{variable}}}'
        add.append(f'(variables.onTemplate[{index}] != "" ? [] : [{operation}])')
    if path:
        # The size was counted: the controller may follow the object's present count (A7).
        parent = f'JSONPatch{{op: "add", path: "{pointer}/annotations", value: {{}}}}'
        where = f'"{pointer}/annotations/" + jsonpatch.escapeKey("{SIZE_FROM_ANNOTATION}")'
        operation = f'JSONPatch{{op: "add", path: {where}, value: "{SIZE_FROM_RULE}"}}'
        add.append(f"(!variables.isMarked || variables.hasAnnotations ? [] : [{parent}])")
        add.append(f"(variables.isMarked ? [{operation}] : [])")
    # What is wrong stays as it is, for the validating policy to see and to deny.
    sound = "variables.mistakes.size() == 0"
    legal = f"{sound}\n&& {cel.is_group('variables.group')}\n&& {cel.is_size('variables.size')}"
    # No hash can be made in CEL: where the name would need one (A1), the controller names the group.
    operations = "\n  + ".join(add)
    return f"{legal}\n? {operations}\n: []"


def _has(field: str) -> str:
    """A field may be missing, and in a custom resource also null."""
    return f"has({field}) && {field} != null"


def _validating(rules: Rules, scheduler_name: str, release_namespace: str) -> dict[str, Any]:
    checked = [rule for rule in rules.all if rule.templates and cel.can_reach(rule)]
    ours = cel.templates(checked, scheduler_name)
    conditions = {"asks-for-fluence": f"({ours}).size() > 0"}
    for rule in checked:
        if alone := cel.left_alone(rule.leave_alone):
            kind = f'request.kind.group == "{rule.group}" && request.kind.kind == "{rule.kind}"'
            conditions[f"is-no-{rule.kind.lower()}-left-alone"] = f"!({kind} && ({alone}))"
    variables = {
        "older": cel.older_keys(rules.older),
        "places": cel.places(f"([dyn(object)] + {ours})"),
        "readings": cel.READINGS,
        "mistakes": cel.MISTAKES,
    }
    checks = (("group", check_group_name), ("size", parse_group_size))
    return {
        "failurePolicy": "Ignore",
        "matchConstraints": _constraints(checked, release_namespace),
        "matchConditions": _named(conditions),
        "variables": _named(variables),
        "validations": [
            {
                "expression": f'variables.mistakes.size() == 0 || variables.mistakes[0][2] != "{what}"',
                "messageExpression": cel.sentence(
                    check, "variables.mistakes[0][0]", "variables.mistakes[0][1]"
                ),
                "reason": "Invalid",
            }
            for what, check in checks
        ],
    }


def _named(expressions: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "expression": expression} for name, expression in expressions.items()]


class _Dumper(yaml.SafeDumper):
    """Expressions of several lines as blocks, so that a person can read them."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def manifest(
    rules: Rules | None = None,
    scheduler_name: str = SCHEDULER_NAME,
    release_namespace: str = RELEASE_NAMESPACE,
) -> str:
    """All policies as one file for `kubectl apply`."""
    documents = policies(rules or builtin_rules(), scheduler_name, release_namespace)
    return _HEAD + yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=1000, explicit_start=True)


def main() -> None:
    """Print the policies."""
    parser = argparse.ArgumentParser(prog="python -m webhook.policies", description=main.__doc__)
    parser.add_argument("--scheduler-name", default=SCHEDULER_NAME, help="whom objects must ask for")
    parser.add_argument("--namespace", default=RELEASE_NAMESPACE, help="where Fluence runs: never labelled")
    parser.add_argument("--rules", type=Path, help="your own table of rules beside ours")
    asked = parser.parse_args()
    try:
        sys.stdout.write(manifest(read_rules(asked.rules), asked.scheduler_name, asked.namespace))
    except FluenceError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
