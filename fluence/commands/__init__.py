"""The command line: `fluence webhook|controller|scheduler|label|rules|version`.

Owns: which commands there are, and how a failed one ends. Each command is a composition root of its own:
it turns settings into the parts of one process and runs them. Modules that take long to load are imported
by the command that needs them.
"""

from __future__ import annotations

import sys

import typer

from fluence.commands import controller, errors, label, rules, scheduler, version, webhook
from fluence.commands.options import EPILOG

app = typer.Typer(
    name="fluence",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Plain text: help is piped, searched and read in logs.
    rich_markup_mode=None,
    help="Gang scheduling for Kubernetes: a group of pods starts together or not at all.",
    epilog="Try: fluence label -f job.yaml   or: fluence scheduler --help",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
app.command(epilog=EPILOG, short_help="Label workloads as they are created.")(webhook.webhook)
app.command(epilog=EPILOG, short_help="Keep a PodGroup for each group of pods.")(controller.controller)
app.command(epilog=EPILOG, short_help="Place whole groups on nodes.")(scheduler.scheduler)
app.command(short_help="Print manifests with the labels that they would get.")(label.label)
app.add_typer(rules.app, name="rules", short_help="Check rules, and see what they lead to.")
app.command()(version.version)


def main() -> None:
    """Run the command line; what a user can put right ends in one sentence, never in a stack trace."""
    try:
        app(prog_name="fluence")
    # Anything: a group of failed tasks must be looked into before it is known what it is.
    except Exception as error:
        if (sentences := errors.sentences(error)) is None:
            raise
        for sentence in sentences:
            print(f"fluence: {sentence}", file=sys.stderr)
        sys.exit(errors.exit_code(error))
