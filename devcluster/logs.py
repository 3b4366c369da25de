"""Print the logs of a cluster's processes."""

from __future__ import annotations

import time
from typing import Final

from devcluster import folders
from devcluster.errors import DevclusterError
from devcluster.paths import ClusterFolder

_LINES: Final = 10
_POLL_S: Final = 0.2


def print_ends(folder: ClusterFolder) -> None:
    """The last lines of every log."""
    for path in sorted(folder.logs.glob("*.log")):
        print(f"==> {path.stem} ({path}) <==")
        for line in path.read_text(errors="replace").splitlines()[-_LINES:]:
            print(line)
        print()


def print_whole(folder: ClusterFolder, process: str, *, follow: bool) -> None:
    """One log; with `follow` until the cluster ends."""
    path = folder.log(process)
    if not path.exists():
        there = ", ".join(sorted(path.stem for path in folder.logs.glob("*.log")))
        raise DevclusterError(f'there is no log of "{process}": there are those of {there}')
    with path.open(errors="replace") as log:
        while True:
            if chunk := log.read(65_536):
                print(chunk, end="", flush=True)
            elif follow and folders.is_up(folder):
                time.sleep(_POLL_S)
            else:
                return
