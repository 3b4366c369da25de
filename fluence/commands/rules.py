"""`fluence rules`: look at the table of rules, check a file of one's own, and see what it leads to."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from fluence.commands.files import read_text
from groups.contract import SCHEDULER_NAME
from groups.workloads.rules import Rule, Rules, builtin_rules, read_rules, read_rules_file
from webhook.decide import SYSTEM_NAMESPACES, Policy
from webhook.documents import read_documents
from webhook.explain import explain as explain_object
from webhook.registration import entry, kind_name, registered

app = typer.Typer(
    no_args_is_help=True,
    help="The table of rules by which workloads are labelled: check your own rules, see what they lead to.",
    epilog="Try: fluence rules explain -f job.yaml   or: fluence rules check my-rules.yaml",
)
RulesOption = Annotated[
    Path | None,
    typer.Option(
        "--rules", metavar="FILE", help="Rules of your own beside the shipped ones.", envvar="FLUENCE_RULES"
    ),
]
_RulesFile = Annotated[Path, typer.Argument(metavar="FILE", help="A file with rules, YAML.")]


@app.command()
def check(file: _RulesFile) -> None:
    """Check a file with rules; say what it adds and what it replaces, or what is wrong with it."""
    rules = read_rules_file(file)
    ours = builtin_rules()
    for rule in rules.all:
        verb = "replaces ours for" if ours.of_kind(rule.group, rule.kind) is not None else "adds"
        typer.echo(f"{file}: {verb} {_name(rule)}: {_what(rule)}")
    for label in rules.older:
        typer.echo(f"{file}: reads the label {label.group} of {label.of}")


@app.command("list")
def list_(rules: RulesOption = None) -> None:
    """List the kinds that rules are for, and what is done with each."""
    table = read_rules(rules)
    for rule in table.all:
        typer.echo(f"{_name(rule):50} {table.source_of(rule):18} {_what(rule)}")


@app.command()
def explain(
    filename: Annotated[
        list[str],
        typer.Option(
            "--filename", "-f", metavar="FILE", help='Manifests, YAML or JSON; "-" is standard input.'
        ),
    ],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="The namespace of objects that name none.")
    ] = "default",
    rules: RulesOption = None,
    scheduler_name: Annotated[
        str, typer.Option(help="Explain for this spec.schedulerName.", envvar="FLUENCE_SCHEDULER_NAME")
    ] = SCHEDULER_NAME,
) -> None:
    """Say for each object which rule matches, how its pods are counted, and which labels are written."""
    policy = Policy(scheduler_name, frozenset(SYSTEM_NAMESPACES), read_rules(rules))
    for name in filename:
        for document in read_documents(*read_text(name)):
            lines = list(explain_object(document.value, namespace, policy, str(uuid.uuid4())))
            typer.echo(f"{document.source}, line {document.line}: " + "\n".join(lines))


@app.command()
def registration(file: _RulesFile) -> None:
    """Print values for the chart that install a file of rules: the rules, their webhooks, and rights.

    \b
    fluence rules registration my-rules.yaml > values-rules.yaml
    helm upgrade fluence manifests/chart --reuse-values -f values-rules.yaml
    """
    content = read_text(str(file))[1]
    typer.echo(_dump(chart_values(read_rules_file(file), content)), nl=False)


def chart_values(rules: Rules, content: str) -> dict[str, Any]:
    """The values of the chart for rules of an administrator."""
    replaced = [one for one in registered(builtin_rules()) if rules.of_kind(one.group, one.kind) is not None]
    return {
        "webhook": {
            "extraRules": content,
            "extraWebhooks": [entry(rule, "{{ .Values.schedulerName }}") for rule in registered(rules)],
            "replacedKinds": [kind_name(rule) for rule in replaced],
        },
        "controller": {
            "extraRights": [
                {"apiGroups": [rule.group], "resources": [rule.resource], "verbs": ["get", "list", "watch"]}
                for rule in rules.all
                if rule.is_counted
            ]
        },
    }


def _dump(values: object) -> str:
    text = yaml.dump(values, Dumper=_Dumper, sort_keys=False, width=2**31 - 1)
    return f"# Made by `fluence rules registration`.\n{text}"


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks."""


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _block)


def _name(rule: Rule) -> str:
    return f"{rule.kind} of {rule.group} {'/'.join(rule.versions)}".replace("of  ", "of core ")


def _what(rule: Rule) -> str:
    if rule.untouched is not None:
        return f"left as it is: {rule.untouched.because}"
    return "each pod, or team of pods, by itself" if rule.named_by == "pod" else "one gang"
