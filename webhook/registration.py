"""The registration with the API server, generated from the table of rules so that the two cannot drift.

`python -m webhook.registration` prints the chart's template. One webhook is for pods and one for workloads
of every kind, each with a condition that asks for our scheduler and for labels that are missing. So a Job
costs one call and its pods none, and pods of other schedulers never reach us. Labels that are there but
wrong do reach us, to be denied (A4).

Two webhooks and not one for each kind, since the API server goes through all of them for every object that
anybody creates (docs/decisions/007-two-webhooks.md). A rule of an administrator is a webhook of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

from groups.workloads.rules import Rule, Rules, builtin_rules
from webhook.conditions import condition
from webhook.decide import SYSTEM_NAMESPACES

WEBHOOK_DOMAIN: Final = "fluence.flux-framework.org"
NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
_WORKLOADS: Final = f"workloads.{WEBHOOK_DOMAIN}"
_ALONE: Final = "asks-for-fluence-and-lacks-labels"


def kind_name(rule: Rule) -> str:
    """The resource that a rule is for, in the usual form: `jobs.batch`, `pods`."""
    return ".".join(part for part in (rule.resource, rule.group) if part)


def webhook_name(rule: Rule) -> str:
    """The name of a webhook or policy for one kind; it must have at least three parts."""
    return f"{kind_name(rule)}.{WEBHOOK_DOMAIN}"


def registered(rules: Rules) -> list[Rule]:
    """The rules for whose objects the API server has to ask us."""
    return [rule for rule in rules.all if rule.templates]


def entry(rule: Rule, scheduler_name: str) -> dict[str, Any]:
    """What of a webhook for one rule depends on it: its name, and when the API server has to ask."""
    return {
        "name": webhook_name(rule),
        "rules": [resource_rule(rule)],
        "matchConditions": [{"name": _ALONE, "expression": condition(rule, scheduler_name)}],
    }


def resource_rule(rule: Rule) -> dict[str, Any]:
    """The creation of objects of the rule's kind; templates of what runs cannot be changed (rule W25)."""
    return {
        "operations": ["CREATE"],
        "apiGroups": [rule.group],
        "apiVersions": list(rule.versions),
        "resources": [rule.resource],
        "scope": "Namespaced",
    }


def _one_of_many(rule: Rule, scheduler_name: str) -> dict[str, str]:
    """The rule's condition among those of other kinds, all of which have to hold: true for other kinds."""
    another = f'request.resource.group != "{rule.group}" || request.resource.resource != "{rule.resource}"'
    return {"name": kind_name(rule), "expression": f"{another}\n|| {condition(rule, scheduler_name)}"}


def _by_webhook(rules: Rules) -> tuple[list[Rule], list[Rule]]:
    """Rules with a webhook of their own, which are those for pods, and those that share one."""
    every = registered(rules)
    return [one for one in every if _is_for_pods(one)], [one for one in every if not _is_for_pods(one)]


def _is_for_pods(rule: Rule) -> bool:
    return (rule.group, rule.kind) == ("", "Pod")


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
    alone, together = _by_webhook(rules)
    found = [entry(rule, scheduler_name) for rule in alone]
    if together:
        found.append(
            {
                "name": _WORKLOADS,
                "rules": [resource_rule(rule) for rule in together],
                "matchConditions": [_one_of_many(rule, scheduler_name) for rule in together],
            }
        )
    return [{**one, **common} for one in found]


_HEAD: Final = """\
{{- /*
Generated from groups/workloads/table/ by `python -m webhook.registration`: change the table of
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
{{- if or .Values.webhook.replicas .Values.webhook.url }}
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: {{ include "fluence.fullname" . }}
  labels:
    {{- include "fluence.labels" . | nindent 4 }}
    app.kubernetes.io/component: webhook
webhooks:
"""
#: Left out where the administrator has a rule for the kind (`fluence rules registration`).
_UNLESS_REPLACED: Final = """\
{{- if not (has "KIND" .Values.webhook.replacedKinds) }}
BODY
{{- end }}
"""
_COMMON: Final = '  {{- include "fluence.webhookCommon" . | nindent 2 }}\n'
_TAIL: Final = """\
{{- range .Values.webhook.extraWebhooks }}
- {{- tpl (toYaml .) $ | nindent 2 }}
  {{- include "fluence.webhookCommon" $ | nindent 2 }}
{{- end }}
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
    alone, together = _by_webhook(rules or builtin_rules())
    return "".join([head, *map(_pods_template, alone), _workloads_template(together), _TAIL])


_SCHEDULER_NAME: Final = "{{ .Values.schedulerName }}"


def _pods_template(rule: Rule) -> str:
    return _unless_replaced(rule, _shown([entry(rule, _SCHEDULER_NAME)]) + _COMMON)


def _workloads_template(rules: Sequence[Rule]) -> str:
    resources = (_unless_replaced(one, _shown([resource_rule(one)], indent=2)) for one in rules)
    conditions = (
        _unless_replaced(one, _shown([_one_of_many(one, _SCHEDULER_NAME)], indent=2)) for one in rules
    )
    return "".join(
        [f"- name: {_WORKLOADS}\n", "  rules:\n", *resources, "  matchConditions:\n", *conditions, _COMMON]
    )


def _unless_replaced(rule: Rule, body: str) -> str:
    return _UNLESS_REPLACED.replace("KIND", kind_name(rule)).replace("BODY\n", body)


def _shown(items: list[dict[str, Any]], indent: int = 0) -> str:
    text = yaml.dump(items, Dumper=_Dumper, sort_keys=False, width=1000)
    return "".join(" " * indent + line for line in text.splitlines(keepends=True))


if __name__ == "__main__":
    sys.stdout.write(chart_template())
