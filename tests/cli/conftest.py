import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Fluence = Callable[..., "subprocess.CompletedProcess[str]"]
#: Longer than a process waits for its API server.
_DEADLINE_S = 110


def environment_without_settings() -> dict[str, str]:
    """The environment of this test run without what would be read as a setting or as the way to a cluster."""
    return {
        name: value
        for name, value in os.environ.items()
        if name != "KUBECONFIG" and not name.startswith("FLUENCE_")
    }


@pytest.fixture
def fluence(tmp_path: Path) -> Fluence:
    """Run the command line as a user would, in an empty home."""

    def run(*arguments: str, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "fluence", *arguments],
            env={**environment_without_settings(), "HOME": str(tmp_path), **(env or {})},
            capture_output=True,
            text=True,
            timeout=_DEADLINE_S,
            check=False,
        )

    return run


def kubeconfig(folder: Path, server: str) -> Path:
    """A kubeconfig for an API server without TLS or users."""
    path = folder / "kubeconfig"
    path.write_text(
        f"""
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{server}"}}}}]
users: [{{name: u, user: {{token: t}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""
    )
    return path
