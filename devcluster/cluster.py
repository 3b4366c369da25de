"""Clusters for Python code: start one, find one, work with its processes, end it.

with start(ClusterSpec(name="mine", nodes=4)) as cluster:
    cluster.kubectl("get", "nodes")
    cluster.process("scheduler").kill()
    cluster.process("scheduler").start()
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import msgspec

from devcluster import binaries, control, folders
from devcluster.api import Api, read_kubeconfig
from devcluster.errors import DevclusterError
from devcluster.locks import locked
from devcluster.paths import ROOT, ClusterFolder
from devcluster.progress import Heartbeat, Say, duration, silent
from devcluster.spec import DEFAULT_NAME, ClusterSpec
from groups.errors import FluenceError

_DOWN_DEADLINE_S: Final = 30.0
_POLL_S: Final = 0.02


@dataclass(frozen=True)
class Process:
    """One process of a cluster, by name."""

    cluster: RunningCluster
    name: str

    @property
    def _row(self) -> dict[str, Any]:
        rows = {row["name"]: row for row in self.cluster.status()}
        if self.name not in rows:
            raise DevclusterError(f'"{self.name}" is no process of this cluster: it has {", ".join(rows)}')
        return rows[self.name]

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._row["pid"]  # type: ignore[no-any-return] # decoded from JSON

    @property
    def state(self) -> str:
        """`running`, `stopped` or `ended with exit code N`."""
        return str(self._row["state"])

    @property
    def log(self) -> Path:
        """Its log file."""
        return self.cluster.folder.log(self.name)

    @property
    def probes(self) -> str:
        """The base address of its probes and metrics."""
        return str(self._row["ready_url"]).rpartition("/")[0]

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig that it uses."""
        return self.cluster.folder.kubeconfig_of(self.name)

    def start(
        self,
        *arguments: str,
        environment: dict[str, str] | None = None,
        ready: bool = True,
    ) -> None:
        """Start it, with more arguments or environment if given; wait until it is `ready`."""
        self.cluster.ask(
            "start", name=self.name, arguments=arguments, environment=environment or {}, ready=ready
        )

    def stop(self) -> None:
        """End it (SIGTERM, and SIGKILL if it does not end in time); it stays down until it is started."""
        self.cluster.ask("stop", name=self.name)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal. After SIGKILL it has ended when this returns, and stays down until it is started."""
        self.cluster.ask("kill", name=self.name, signal=int(number))

    def restart(self, *, ready: bool = True) -> None:
        """Stop and start it."""
        self.cluster.ask("restart", name=self.name, ready=ready)


@dataclass(frozen=True)
class RunningCluster:
    """A cluster that is up."""

    folder: ClusterFolder

    def __enter__(self) -> RunningCluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()

    @property
    def name(self) -> str:
        """Its name."""
        return self.folder.name

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder.kubeconfig

    @property
    def url(self) -> str:
        """The address of the API server."""
        return read_kubeconfig(self.kubeconfig)[0]

    @property
    def token(self) -> str:
        """The administrator's token."""
        return read_kubeconfig(self.kubeconfig)[1]

    @property
    def ca_file(self) -> Path:
        """The authority that signed the API server's certificate."""
        return read_kubeconfig(self.kubeconfig)[2]

    @property
    def environment(self) -> dict[str, str]:
        """The environment for programs that use this cluster."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}

    def api(self) -> Api:
        """A client as administrator. Create it inside an event loop, and close it."""
        return Api(self.kubeconfig)

    def process(self, name: str) -> Process:
        """One of its processes by name.

        etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok; with Fluence also webhook,
        controller and scheduler.
        """
        return Process(self, name)

    def status(self) -> list[dict[str, Any]]:
        """One row for each process: name, state, pid, ready_url, log."""
        rows: list[dict[str, Any]] = self.ask("status")
        return rows

    def kubectl(self, *arguments: str | Path, stdin: str | None = None, check: bool = True) -> str:
        """Run kubectl as administrator; its standard output."""
        done = subprocess.run(
            [binaries.kubectl(), *arguments],
            env=self.environment, input=stdin, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if check and done.returncode:
            raise DevclusterError(f"kubectl {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return done.stdout

    def ask(self, do: str, **details: Any) -> Any:
        """Send a request to the supervisor."""
        try:
            return control.ask(self.folder.socket, do, **details)
        except OSError as error:
            raise DevclusterError(f'cluster "{self.name}" does not answer ({error}): it has ended') from error

    def down(self) -> None:
        """End every process and remove the folder; returns when that is done."""
        take_down(self.folder)


def start(spec: ClusterSpec, say: Say = silent) -> RunningCluster:
    """Start a cluster and return once everything in it is ready."""
    if sys.platform != "linux":
        raise DevclusterError("devcluster needs Linux: its processes end together by a feature of the kernel")
    spec.check()
    if spec.owner_pid is not None and not Path(f"/proc/{spec.owner_pid}").exists():
        raise DevclusterError(f"--owner-pid {spec.owner_pid}: there is no such process")
    binaries.ensure(spec.kubernetes, say)
    folder = ClusterFolder.of(spec.name)
    heartbeat = Heartbeat(say)
    with contextlib.ExitStack() as until_begun:
        until_begun.enter_context(
            locked(
                folders.start_lock(),
                lambda waited_s: heartbeat.beat(f"another cluster is starting, {duration(waited_s)}"),
            )
        )
        folders.remove_leavings()
        if folders.is_up(folder):
            raise DevclusterError(
                f'a cluster called "{spec.name}" is up already: choose another --name, '
                f"or end it with `python -m devcluster down --name {spec.name}`"
            )
        if folder.path.exists():
            say(f'removing what a dead cluster called "{spec.name}" left behind')
            folders.remove(folder)
        try:
            _launch(spec, folder, say, until_begun)
        except FluenceError:
            # The supervisor ends by itself and leaves the logs, which say why.
            raise
        except BaseException:
            # We give up, as after Ctrl-C.
            take_down(folder)
            raise
    return RunningCluster(folder)


def _launch(spec: ClusterSpec, folder: ClusterFolder, say: Say, until_begun: contextlib.ExitStack) -> None:
    read, write = os.pipe()
    command = [
        sys.executable, "-m", "devcluster.supervisor",
        msgspec.json.encode(spec).decode(), str(write), str(os.getpid()),
    ]  # fmt: skip
    with open(read, "rb") as reports:
        try:
            subprocess.run(
                command, cwd=ROOT, pass_fds=[write], start_new_session=True, check=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        finally:
            os.close(write)
        for line in reports:
            match msgspec.json.decode(line):
                case {"say": str(said)}:
                    say(said)
                case {"begun": True}:
                    until_begun.close()
                case {"ready": True}:
                    return
                case {"error": str(error)}:
                    raise DevclusterError(f'cluster "{spec.name}" did not come up: {error}')
    raise DevclusterError(
        f'cluster "{spec.name}" did not come up: its supervisor ended; see {folder.log("supervisor")}'
    )


def find(name: str = DEFAULT_NAME) -> RunningCluster:
    """The cluster of that name, or DevclusterError with the names there are."""
    folder = ClusterFolder.of(name)
    if not folders.is_up(folder):
        others = ", ".join(cluster.name for cluster in running()) or "none"
        raise DevclusterError(f'no cluster called "{name}" is up (up now: {others})')
    return RunningCluster(folder)


def running() -> list[RunningCluster]:
    """Every cluster that is up."""
    return [RunningCluster(folder) for folder in folders.all_folders() if folders.is_up(folder)]


def take_down(folder: ClusterFolder) -> None:
    """End the cluster in this folder, alive or dead, and remove the folder."""
    try:
        lock = os.open(folder.lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        folders.remove(folder)
        return
    try:
        if folders.is_up(folder):
            with contextlib.suppress(OSError):
                control.ask(folder.socket, "down")
            if not _ends(lock, _DOWN_DEADLINE_S):
                _kill(folder, lock)
    finally:
        os.close(lock)
    folders.remove(folder)


def _kill(folder: ClusterFolder, lock: int) -> None:
    """Kill the supervisor; its children end with it."""
    if (state := folders.read_state(folder)) is not None:
        os.kill(state.supervisor_pid, signal.SIGKILL)
        _ends(lock, _DOWN_DEADLINE_S)


def _ends(lock: int, deadline_s: float) -> bool:
    """Wait until the supervisor, which holds the lock, has ended."""
    end_s = time.monotonic() + deadline_s
    while time.monotonic() < end_s:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_POLL_S)
        else:
            return True
    return False
