"""Build one program from its Go module, once for all checkouts and test runs of this user.

Owns: locking, compiling into a temporary name, renaming, progress. Does not own: which programs
are needed (`binaries`), or versions (`programs`).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from devcluster.errors import DevclusterError
from devcluster.golang import find_go, go_environment
from devcluster.locks import locked
from devcluster.programs import Source
from devcluster.progress import Heartbeat, Say, duration

_POLL_S: Final = 0.2


def build(source: Source, program: str, say: Say) -> Path:
    """The path of `program` in the cache, built now if it is not there."""
    path = source.cache / program
    if path.exists():
        return path
    what = f"{program} {source.version}"
    heartbeat = Heartbeat(say)
    with locked(
        source.cache / ".lock",
        lambda waited_s: heartbeat.beat(f"waiting for another build of {what}, {duration(waited_s)}"),
    ):
        # The previous holder of the lock has probably built this program.
        if not path.exists():
            _compile(source, program, path, what, say)
    return path


def _compile(source: Source, program: str, path: Path, what: str, say: Say) -> None:
    # Nobody else writes here under the lock, so files that are here are from a build that was killed.
    for stale in source.cache.glob(".tmp-*"):
        stale.unlink(missing_ok=True)
    new = source.cache / f".tmp-{os.getpid()}-{program}"
    command: list[str | Path] = [
        find_go(say), "build", "-trimpath", "-ldflags", source.ldflags,
        "-o", new, source.packages[program],
    ]  # fmt: skip
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=source.folder, env=go_environment(),
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
        try:
            _wait(process, f"building {what}", source.estimate, Heartbeat(say))
        except BaseException:
            process.kill()
            process.wait()
            with contextlib.suppress(FileNotFoundError):
                new.unlink()
            raise
        if process.returncode:
            output.seek(0)
            said = output.read().decode(errors="replace").strip()
            raise DevclusterError(f"building {what} failed: {said[-2000:]}")
    # A rename is atomic, so an unfinished program is never started.
    new.rename(path)


def _wait(process: subprocess.Popen[bytes], doing: str, estimate: str, heartbeat: Heartbeat) -> None:
    begin_s = time.monotonic()
    while process.poll() is None:
        heartbeat.beat(f"{doing}, {duration(time.monotonic() - begin_s)}, {estimate}")
        time.sleep(_POLL_S)
    heartbeat.say(f"{doing}: {'failed' if process.returncode else 'done'} "
                  f"after {duration(time.monotonic() - begin_s)}")  # fmt: skip
