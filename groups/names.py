"""The default name of a group: different workloads of a namespace get different names (rule A1).

Owns: how a name is put together, and cut where it is too long. Does not own: which kind has which word
(`groups.workloads`), or what a legal name is (`groups.contract`).

    Job                     fluence-group-<namespace>-<name>, with "job." before a name that has a dot
    any other kind          fluence-group-<namespace>-<word>.<name>, and .<part> for a part of the object
    bare pod                fluence-group-<name>, with "pod." before a name that could be a workload's

The plain form of a Job has no dot after the namespace, and that of every other kind has one. The word has no
dot, so that the first dot ends it.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from groups.contract import MAX_LABEL_LENGTH, is_group_name

PREFIX: Final = "fluence-group-"
#: The word of Jobs, whose names stand without it.
JOB: Final = "job"
#: Stands before the name of a bare pod where a workload could have the plain form.
POD: Final = "pod"
_HASH_LENGTH: Final = 10
_NOT_DNS = re.compile(r"[^-a-z0-9.]+")


def workload_group_name(namespace: str, word: str, name: str, part: str = "") -> str:
    """The default group of a workload, or of a part of it; `word` is that of its kind."""
    if word == JOB and "." not in name and not part:
        return _legal(f"{PREFIX}{namespace}-{name}")
    raw = f"{PREFIX}{namespace}-{word}.{name}"
    if not part:
        return _legal(raw)
    raw = f"{raw}.{part}"
    if "." in name or "." in part:
        # "a.b" with part "c", and "a" with part "b.c", would be one name; so would "a.b.c" without a part.
        return _cut_with_hash(raw, f"{namespace}/{word}/{name}/{part}")
    return _legal(raw)


def whole_group_name(namespace: str, word: str, name: str) -> str:
    """The same for an object whose kind may have parts: with a dot in its name it could be another's part."""
    if "." in name:
        return _cut_with_hash(f"{PREFIX}{namespace}-{word}.{name}", f"{namespace}/{word}/{name}/")
    return workload_group_name(namespace, word, name)


def pod_group_name(namespace: str, name: str) -> str:
    """The default group of a bare pod."""
    if name.startswith((f"{namespace}-", f"{POD}.")):
        return _legal(f"{PREFIX}{POD}.{name}")
    return _legal(f"{PREFIX}{name}")


def generated_group_name(prefix: str, request_uid: str, namespace: str = "", word: str = "") -> str:
    """The group of an object that has only a generateName yet: the prefix and a hash of the request's uid.

    `namespace` and `word` are given for workloads and left out for bare pods.
    """
    middle = f"{namespace}-{word}.{prefix}" if word not in ("", JOB) else f"{namespace}-{prefix}"
    if not namespace:
        middle = prefix
    return _cut_with_hash(PREFIX + middle, f"{namespace}/{word}/{prefix}/{request_uid}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]


def _legal(raw: str) -> str:
    """`raw` itself where it is a legal group name, else a legal cut of it with a hash of the whole."""
    return raw if is_group_name(raw) else _cut_with_hash(raw, raw)


def _cut_with_hash(raw: str, hashed: str) -> str:
    # A dot must not stand beside a dash or a dot, so illegal names lose their dots altogether.
    clean = _NOT_DNS.sub("-", raw.lower())
    if not is_group_name(clean):
        clean = clean.replace(".", "-")
    room = MAX_LABEL_LENGTH - _HASH_LENGTH - 1
    return f"{clean[:room].strip('-.') or 'group'}-{_hash(hashed)}"
