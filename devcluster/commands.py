"""`python -m devcluster`: the command line.

Owns: options, what is printed and where. Standard output carries results only (the kubeconfig's path, tables,
logs); progress and errors go to standard error.
"""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from devcluster import binaries, cluster, folders, logs
from devcluster.errors import DevclusterError
from devcluster.paths import ClusterFolder
from devcluster.programs import KUBERNETES_VERSIONS
from devcluster.progress import to_stderr
from devcluster.spec import DEFAULT_NAME, ClusterSpec
from groups.errors import FluenceError

app = typer.Typer(
    name="python -m devcluster",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="A real Kubernetes control plane on this machine, with fake nodes, and Fluence running in it.",
    epilog="Try: export KUBECONFIG=$(python -m devcluster up --nodes 4 | tail -1); kubectl get nodes",
)

Name = Annotated[str, typer.Option("--name", metavar="N", help="Which cluster.")]
Component = Annotated[str, typer.Argument(metavar="PROCESS", help="A process that `status` lists.")]


@app.command()
def up(
    name: Name = DEFAULT_NAME,
    nodes: Annotated[int, typer.Option(help="How many fake nodes.")] = 8,
    cpu: Annotated[str, typer.Option(help="CPUs of each node.")] = "8",
    memory: Annotated[str, typer.Option(help="Memory of each node.")] = "32Gi",
    kubernetes: Annotated[
        str, typer.Option(help=f"Version: {' or '.join(KUBERNETES_VERSIONS)}.")
    ] = KUBERNETES_VERSIONS[0],
    native_gangs: Annotated[
        bool, typer.Option("--native-gangs", help="Turn on kube-scheduler's own gang scheduling.")
    ] = False,
    no_fluence: Annotated[bool, typer.Option("--no-fluence", help="Kubernetes alone.")] = False,
    owner_pid: Annotated[
        int | None, typer.Option(metavar="PID", help="End the cluster when this process ends.")
    ] = None,
) -> None:
    """Start a cluster and print its kubeconfig's path.

    Returns when everything is ready; the path is the last line of standard output. Missing binaries are
    built first, which takes about 8 minutes once. On the fake nodes the pod of a Job runs for a second and
    any other pod runs for ever. To change that, set the annotations of the pod
    fluence.flux-framework.org/devcluster-run (500ms, 2s) and devcluster-outcome (succeed, fail, never).
    """
    spec = ClusterSpec(
        name=name,
        nodes=nodes,
        cpu=cpu,
        memory=memory,
        kubernetes=kubernetes,
        native_gangs=native_gangs,
        fluence=not no_fluence,
        owner_pid=owner_pid,
    )
    started = cluster.start(spec, to_stderr)
    to_stderr(f"ready; end it with `python -m devcluster down{_option(name)}`")
    print(started.kubeconfig)


@app.command()
def down(
    name: Name = DEFAULT_NAME,
    every: Annotated[bool, typer.Option("--all", help="Every cluster.")] = False,
) -> None:
    """End a cluster: its processes, its ports and its folder."""
    chosen = folders.all_folders() if every else [ClusterFolder.of(name)]
    if not every and not chosen[0].path.exists():
        cluster.find(name)
    for folder in chosen:
        cluster.take_down(folder)
        to_stderr(f'cluster "{folder.name}" is down')
    folders.remove_leavings()


@app.command()
def status(
    name: Annotated[str | None, typer.Option("--name", metavar="N", help="Only this cluster.")] = None,
) -> None:
    """List clusters and their processes."""
    clusters = cluster.running() if name is None else [cluster.find(name)]
    if not clusters:
        to_stderr("no cluster is up: start one with `python -m devcluster up`")
    for one in clusters:
        state = folders.read_state(one.folder)
        version = f"Kubernetes {state.spec.kubernetes}, {state.server}" if state else "starting"
        print(f"{one.name}: {version}, KUBECONFIG={one.kubeconfig}")
        for row in one.status():
            print(f"  {row['name']:<24} {row['state']:<10} {row['pid'] or '':<8} {row['ready_url']}")


@app.command(name="logs")
def show_logs(
    process: Annotated[
        str | None,
        typer.Argument(metavar="[PROCESS]", help="One process (default: the ends of all logs)."),
    ] = None,
    name: Name = DEFAULT_NAME,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log.")] = False,
) -> None:
    """Print the logs of a cluster, also of one that failed to start."""
    folder = ClusterFolder.of(name)
    if not folder.logs.is_dir():
        cluster.find(name)
    if process is None:
        logs.print_ends(folder)
    else:
        logs.print_whole(folder, process, follow=follow)


@app.command()
def build(
    kubernetes: Annotated[
        str, typer.Option(help=f"Version: {' or '.join(KUBERNETES_VERSIONS)}.")
    ] = KUBERNETES_VERSIONS[0],
) -> None:
    """Build missing binaries, and start nothing."""
    binaries.ensure(kubernetes, to_stderr)
    to_stderr(f"all binaries for Kubernetes {kubernetes} are there")


@app.command()
def start(process: Component, name: Name = DEFAULT_NAME) -> None:
    """Start a process that was stopped or killed."""
    cluster.find(name).process(process).start()


@app.command()
def stop(process: Component, name: Name = DEFAULT_NAME) -> None:
    """Stop a process; it stays down until `start`."""
    cluster.find(name).process(process).stop()


@app.command()
def restart(process: Component, name: Name = DEFAULT_NAME) -> None:
    """Stop a process and start it again."""
    cluster.find(name).process(process).restart()


@app.command()
def kill(
    process: Component,
    name: Name = DEFAULT_NAME,
    number: Annotated[str, typer.Option("--signal", "-s", metavar="SIGNAL", help="Name or number.")] = "KILL",
) -> None:
    """Send a signal to a process (kill -9 by default)."""
    cluster.find(name).process(process).kill(_signal(number))


def _signal(text: str) -> int:
    try:
        return int(text) if text.isdigit() else signal.Signals[f"SIG{text.upper().removeprefix('SIG')}"]
    except KeyError:
        raise DevclusterError(
            f'--signal "{text}" is not a signal: write KILL, TERM, STOP or a number'
        ) from None


def _option(name: str) -> str:
    return "" if name == DEFAULT_NAME else f" --name {name}"


def main() -> None:
    """Run; an error is one sentence on standard error."""
    try:
        app()
    except FluenceError as error:
        print(f"devcluster: {error}", file=sys.stderr)
        sys.exit(1)
