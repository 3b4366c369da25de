"""The registration with the API server, generated from the table of rules so that the two cannot drift.

`python -m webhook.registration` prints the chart's template. One webhook for each rule, since the
condition under which the API server calls us depends on where the kind keeps its pod template: it asks
for our scheduler and is not labelled completely. So a Job costs one call and its pods none, and pods of
other schedulers never reach us. Labels that are there but wrong do reach us, to be denied (A4).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import yaml

from fluence.contract import GROUP_LABEL, SIZE_LABEL
from fluence.workloads.rules import Rule, Rules, builtin_rules
from fluence.workloads.shapes import EACH_ITEM, WILDCARDS
from webhook.decide import SYSTEM_NAMESPACES

WEBHOOK_DOMAIN: Final = "fluence.flux-framework.org"
NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
#: What `contract.is_group_name` accepts; the length of a label value is the API server's own rule.
GROUP_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
#: Sizes that are right at a glance: ten digits may exceed an int32, and are judged by us.
SIZE_PATTERN: Final = "^[1-9][0-9]{0,8}$"


def webhook_name(rule: Rule) -> str:
    """The name that users see in a denial; it must have at least three parts."""
    return ".".join(part for part in (rule.resource, rule.group, WEBHOOK_DOMAIN) if part)


def condition(rule: Rule, scheduler_name: str) -> str:
    """CEL: some pod template asks for our scheduler and lacks a good label.

    Of a kind that is left as it is, only templates with a label of ours are of interest: to deny mistakes.
    An expression that fails counts as false under failurePolicy Ignore, so each step asks first whether
    the field is there and no null (case C10).
    """
    wanted = _labelled_at_all if rule.untouched is not None else _lacks_labels
    return "\n|| ".join(f"({_reach('object', one.path, scheduler_name, wanted)})" for one in rule.templates)


#: Names of the variables that stand for the items of a list or the keys of a map.
_VARIABLES: Final = "abcdefgh"


def _reach(
    start: str, path: Sequence[str], scheduler_name: str, wanted: Callable[[str], str], depth: int = 0
) -> str:
    """CEL: some pod template at `path` below `start` asks for us and is `wanted`."""
    wildcard = next((number for number, step in enumerate(path) if step in WILDCARDS), None)
    if wildcard is None:
        template = _dotted((start, *path))
        steps = (*_present(start, path), _opted_in(template, scheduler_name), wanted(template))
        return _all(*steps)
    variable = _VARIABLES[depth]
    holder = _dotted((start, *path[:wildcard]))
    # A list gives its items, a map its keys; either may be of an odd type.
    item = variable if path[wildcard] == EACH_ITEM else f"{holder}[{variable}]"
    inner = _reach(item, path[wildcard + 1 :], scheduler_name, wanted, depth + 1)
    there = f"{item} != null"
    return _all(*_present(start, path[:wildcard]), f"{holder}.exists({variable}, {there}\n  && {inner})")


def _opted_in(template: str, scheduler_name: str) -> str:
    return _all(
        *_present(template, ("spec",)),
        f"has({template}.spec.schedulerName)",
        f'{template}.spec.schedulerName == "{scheduler_name}"',
    )


def _lacks_labels(template: str) -> str:
    labels = f"{template}.metadata.labels"
    good = _all(
        *_present(template, ("metadata", "labels")),
        *_good_label(labels, GROUP_LABEL, GROUP_PATTERN),
        *_good_label(labels, SIZE_LABEL, SIZE_PATTERN),
    )
    return f"!({good})"


def _labelled_at_all(template: str) -> str:
    labels = f"{template}.metadata.labels"
    keys = " || ".join(f'"{key}" in {labels}' for key in (GROUP_LABEL, SIZE_LABEL))
    return _all(*_present(template, ("metadata", "labels")), f"({keys})")


def _good_label(labels: str, key: str, pattern: str) -> Iterable[str]:
    yield f'"{key}" in {labels}'
    yield f'type({labels}["{key}"]) == string'
    yield f'{labels}["{key}"].matches("{pattern}")'


def _present(start: str, path: Sequence[str]) -> Iterable[str]:
    """Each step of `path` below `start` is there and no null."""
    for length in range(1, len(path) + 1):
        step = _dotted((start, *path[:length]))
        yield f"has({step}) && {step} != null"


def _dotted(path: Iterable[str]) -> str:
    return ".".join(path)


def _all(*conditions: str) -> str:
    return "\n  && ".join(conditions)


def registered(rules: Rules) -> list[Rule]:
    """The rules for whose objects the API server has to ask us."""
    return [rule for rule in rules.all if rule.templates]


def entry(rule: Rule, scheduler_name: str) -> dict[str, Any]:
    """What of a webhook depends on the rule: its name, and when the API server has to ask."""
    return {
        "name": webhook_name(rule),
        "rules": [
            {
                "operations": ["CREATE"],
                "apiGroups": [rule.group],
                "apiVersions": list(rule.versions),
                "resources": [rule.resource],
                "scope": "Namespaced",
            }
        ],
        "matchConditions": [
            {
                "name": "asks-for-fluence-and-lacks-labels",
                "expression": condition(rule, scheduler_name),
            }
        ],
    }


def webhooks(
    rules: Rules,
    scheduler_name: str,
    client_config: Mapping[str, Any],
    release_namespace: str,
    failure_policy: str = "Ignore",
    timeout_s: int | str = 5,
) -> list[dict[str, Any]]:
    """The `webhooks` of the MutatingWebhookConfiguration."""
    common = {
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": failure_policy,
        "matchPolicy": "Equivalent",
        # A webhook after ours may change what we counted or drop our labels; being asked twice
        # does no harm, for a second patch of ours is empty.
        "reinvocationPolicy": "IfNeeded",
        "timeoutSeconds": timeout_s,
        "clientConfig": dict(client_config),
        "namespaceSelector": {
            "matchExpressions": [
                {
                    "key": NAMESPACE_LABEL,
                    "operator": "NotIn",
                    "values": [*SYSTEM_NAMESPACES, release_namespace],
                }
            ]
        },
    }
    return [{**entry(rule, scheduler_name), **common} for rule in registered(rules)]


_HEAD: Final = """\
{{- /*
Generated from fluence/workloads/table/ by `python -m webhook.registration`: change the table of
rules, not this file. The caBundle is written by the webhook itself once it serves.
*/ -}}
{{- define "fluence.webhookCommon" -}}
admissionReviewVersions: [v1]
sideEffects: None
failurePolicy: {{ .Values.webhook.failurePolicy }}
matchPolicy: Equivalent
reinvocationPolicy: IfNeeded
timeoutSeconds: {{ .Values.webhook.timeoutSeconds }}
clientConfig:
  {{- if .Values.webhook.url }}
  url: {{ .Values.webhook.url | quote }}
  {{- else }}
  service:
    name: {{ include "fluence.process" (dict "root" $ "process" "webhook") }}
    namespace: {{ .Release.Namespace }}
    path: REVIEW_PATH
    port: 443
  {{- end }}
namespaceSelector:
  matchExpressions:
    - key: NAMESPACE_LABEL
      operator: NotIn
      values: [SYSTEM_NAMESPACES, {{ .Release.Namespace | quote }}]
{{- end -}}
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: {{ include "fluence.fullname" . }}
  labels:
    {{- include "fluence.labels" . | nindent 4 }}
    app.kubernetes.io/component: webhook
webhooks:
"""
#: One webhook; left out where the administrator has a rule for the kind (`fluence rules registration`).
_ENTRY: Final = """\
{{- if not (has "NAME" .Values.webhook.replacedWebhooks) }}
BODY
  {{- include "fluence.webhookCommon" . | nindent 2 }}
{{- end }}
"""
_TAIL: Final = """\
{{- range .Values.webhook.extraWebhooks }}
- {{- tpl (toYaml .) $ | nindent 2 }}
  {{- include "fluence.webhookCommon" $ | nindent 2 }}
{{- end }}
"""


class _Dumper(yaml.SafeDumper):
    """Expressions as blocks, one condition a line, so that a person can read them."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def chart_template(rules: Rules | None = None) -> str:
    """The chart's template file."""
    # Imported here: the command line needs the rest of this module, and not a web server.
    from webhook.app import REVIEW_PATH

    head = _HEAD.replace("REVIEW_PATH", REVIEW_PATH).replace("NAMESPACE_LABEL", NAMESPACE_LABEL)
    head = head.replace("SYSTEM_NAMESPACES", ", ".join(SYSTEM_NAMESPACES))
    return head + "".join(map(_chart_entry, registered(rules or builtin_rules()))) + _TAIL


def _chart_entry(rule: Rule) -> str:
    one = entry(rule, "{{ .Values.schedulerName }}")
    body = yaml.dump([one], Dumper=_Dumper, sort_keys=False, width=1000).rstrip()
    return _ENTRY.replace("NAME", one["name"]).replace("BODY", body)


if __name__ == "__main__":
    sys.stdout.write(chart_template())
