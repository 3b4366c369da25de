"""Choose free ports on loopback.

Ports are below the kernel's ephemeral range. Outgoing connections take ports of that range, also while a
process of ours is stopped for a test and needs its port again.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from devcluster.errors import DevclusterError

_EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST: Final = 10_000


def choose(names: Iterable[str], taken: Collection[int]) -> dict[str, int]:
    """A free port for each name, none of them in `taken` (the ports of other clusters)."""
    candidates = iter(_candidates())
    chosen: dict[str, int] = {}
    for name in names:
        for port in candidates:
            if port not in taken and is_free(port):
                chosen[name] = port
                break
        else:
            raise DevclusterError("no free port is left on 127.0.0.1: end a cluster with `down`")
    return chosen


def is_free(port: int) -> bool:
    """Whether nothing is bound to this port of 127.0.0.1."""
    with socket.socket() as probe:
        # The servers set this option too. With it a connection in TIME_WAIT does not count as a listener.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _candidates() -> list[int]:
    low = int(_EPHEMERAL.read_text().split()[0])
    # If nearly all ports are ephemeral, those must be used.
    ports = list(range(_LOWEST, low) if low - _LOWEST >= 1000 else range(_LOWEST, 65_536))
    # Random ports keep two clusters apart that start at the same moment. They need not be secret.
    random.shuffle(ports)
    return ports
