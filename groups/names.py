"""The default name of a group: different workloads get different names (rule A1).

Owns: how a name is put together, and cut where it is too long. Does not own: which kind has which word
(`groups.workloads`), or what a legal name is (`groups.contract`).
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from groups.contract import MAX_LABEL_LENGTH, is_group_name

_HASH_LENGTH: Final = 10
_NOT_DNS = re.compile(r"[^-a-z0-9.]+")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]


def _legal(raw: str) -> str:
    """`raw` itself where it is a legal group name, else a legal cut of it with a hash of the whole."""
    return raw if is_group_name(raw) else _cut_with_hash(raw, raw)


def _cut_with_hash(raw: str, hashed: str) -> str:
    # A dot may not stand beside a dash or a dot, so illegal names lose their dots altogether.
    clean = _NOT_DNS.sub("-", raw.lower())
    if not is_group_name(clean):
        clean = clean.replace(".", "-")
    room = MAX_LABEL_LENGTH - _HASH_LENGTH - 1
    return f"{clean[:room].strip('-.') or 'group'}-{_hash(hashed)}"


def workload_group_name(namespace: str, name: str) -> str:
    """The default group of a workload: `fluence-group-<namespace>-<name>` (rule A1)."""
    return _legal(f"fluence-group-{namespace}-{name}")


def pod_group_name(name: str) -> str:
    """The default group of a bare pod: `fluence-group-<pod name>` (rule A1)."""
    return _legal(f"fluence-group-{name}")


def generated_group_name(prefix: str, request_uid: str, namespace: str | None = None) -> str:
    """The group of an object that has only a generateName yet: the prefix and a hash of the uid (A1).

    `namespace` is given for workloads and left out for bare pods.
    """
    middle = f"{namespace}-{prefix}" if namespace is not None else prefix
    return _cut_with_hash(f"fluence-group-{middle}", f"{middle} {request_uid}")
