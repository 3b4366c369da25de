"""`fluence label`: the labels of the webhook without a webhook."""

from __future__ import annotations

import uuid
from typing import Annotated

import typer

from fluence.commands.files import read_text
from fluence.commands.rules import RulesOption
from groups.contract import SCHEDULER_NAME
from groups.errors import FluenceError
from groups.workloads.rules import read_rules
from webhook.decide import SYSTEM_NAMESPACES, Policy
from webhook.documents import Document, read_documents, write_documents
from webhook.offline import label_object


def label(
    filename: Annotated[
        list[str],
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help='A file with manifests, YAML or JSON; "-" is standard input. May be given several times.',
        ),
    ],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="The namespace of objects that name none.")
    ] = "default",
    scheduler_name: Annotated[
        str, typer.Option(help="Label what has this spec.schedulerName.", envvar="FLUENCE_SCHEDULER_NAME")
    ] = SCHEDULER_NAME,
    rules: RulesOption = None,
) -> None:
    """Print manifests with the labels that the webhook would add, as YAML.

    Objects that did not ask for Fluence come out unchanged. If any object would be denied, the
    reason is printed on standard error and nothing on standard output, so that a pipe never applies half:

        fluence label -f job.yaml | kubectl apply -f -
    """
    try:
        documents = [document for name in filename for document in read_documents(*read_text(name))]
    except FluenceError as error:
        typer.echo(f"fluence: {error}", err=True)
        raise typer.Exit(1) from error
    policy = Policy(scheduler_name, frozenset(SYSTEM_NAMESPACES), read_rules(rules))
    labelled, denials = _label_all(documents, namespace, policy)
    if denials:
        for denial in denials:
            typer.echo(f"fluence: {denial}", err=True)
        raise typer.Exit(1)
    if labelled:
        typer.echo(write_documents(labelled), nl=False)


def _label_all(documents: list[Document], namespace: str, policy: Policy) -> tuple[list[object], list[str]]:
    labelled: list[object] = []
    denials: list[str] = []
    for document in documents:
        outcome = label_object(document.value, namespace, policy, lambda: str(uuid.uuid4()))
        where = f"{document.source}, line {document.line}"
        for warning in outcome.warnings:
            typer.echo(f"Warning: {where}: {warning}", err=True)
        denials += [f"{where}: {denial}" for denial in outcome.denials]
        labelled.append(outcome.value)
    return labelled, denials
