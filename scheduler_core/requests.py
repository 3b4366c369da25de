"""What a pod asks for and what a node has, as whole numbers (rules R1 to R8).

Owns: the sum over containers, init containers, sidecars, overhead and pod-level resources. Does not own:
reading a pod (the scheduler's decoder fills `ContainerRequest`), or which pods count (rule R13, the caller).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduler_core import quantity
from scheduler_core.constraints import Requests

_Texts = tuple[tuple[str, str], ...]
_Amounts = dict[str, int]


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """`resources.requests` of a container, or of the pod itself.

    `restartable`: an init container with restartPolicy Always (a sidecar). `actual` and `allocated`
    are what its status shows (`resources.requests`, `allocatedResources`), rule R5: None if unknown.
    """

    requests: Mapping[str, str]
    restartable: bool = False
    actual: Mapping[str, str] | None = None
    allocated: Mapping[str, str] | None = None


def pod_requests(
    containers: Sequence[ContainerRequest],
    init_containers: Sequence[ContainerRequest] = (),
    overhead: Mapping[str, str] | None = None,
    pod_level: ContainerRequest | None = None,
    *,
    resize_infeasible: bool = False,
) -> Requests:
    """What the whole pod asks for, one pod slot included; equal contents give the same object.

    Pass statuses only for bound pods (rule R5). An illegal quantity raises QuantityError with resource and
    value.
    """
    return _pod_requests(
        tuple([_frozen(one, infeasible=resize_infeasible) for one in containers]),
        tuple([(one.restartable, _frozen(one, infeasible=resize_infeasible)) for one in init_containers]),
        tuple(overhead.items()) if overhead else (),
        _frozen(pod_level, infeasible=resize_infeasible) if pod_level is not None else (),
    )


def capacity(allocatable: Mapping[str, str]) -> dict[str, int]:
    """`status.allocatable` of a node as whole numbers, rounded down; a name that is absent is 0 (R6)."""
    return {name: max(0, _amount(name, text, up=False)) for name, text in sorted(allocatable.items())}


def _frozen(one: ContainerRequest, *, infeasible: bool) -> tuple[_Texts, ...]:
    """The maps whose maximum counts (rule R5): the requests, and values in the status if there are any."""
    if one.actual is None and one.allocated is None:
        return (tuple(one.requests.items()),)
    seen = [tuple(known.items()) for known in (one.actual, one.allocated) if known is not None]
    # A resize that the kubelet marked infeasible will never happen, so the actual values count.
    return tuple(seen) if infeasible else (tuple(one.requests.items()), *seen)


@functools.lru_cache(maxsize=8192)
def _pod_requests(
    containers: tuple[tuple[_Texts, ...], ...],
    init_containers: tuple[tuple[bool, tuple[_Texts, ...]], ...],
    overhead: _Texts,
    pod_level: tuple[_Texts, ...],
) -> Requests:
    total: _Amounts = {}
    for container in containers:
        _add(total, _largest(container))
    sidecars: _Amounts = {}
    peak: _Amounts = {}
    for restartable, texts in init_containers:
        asked = _largest(texts)
        if restartable:
            _add(total, asked)
            _add(sidecars, asked)
            _raise_to(peak, sidecars)
        else:
            # It runs together with the sidecars declared before it, and before everything else (rule R1).
            _add(asked, sidecars)
            _raise_to(peak, asked)
    _raise_to(total, peak)
    for name, value in _largest(pod_level).items():
        if _is_pod_level(name):
            total[name] = value  # replaces the sum, even if it is lower (rule R2)
    _add(total, _amounts(overhead))
    # Every pod uses one pod slot, even if it asks for nothing (rule R7).
    total["pods"] = 1
    return _interned(tuple(sorted((n, min(v, quantity.LIMIT)) for n, v in total.items() if v > 0)))


@functools.lru_cache(maxsize=8192)
def _interned(requests: Requests) -> Requests:
    return requests


def _is_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _amounts(texts: _Texts) -> _Amounts:
    return {name: _amount(name, text) for name, text in texts}


def _amount(name: str, text: str, *, up: bool = True) -> int:
    try:
        return quantity.amount(name, text, up=up)
    except quantity.QuantityError as error:
        raise quantity.QuantityError(text, resource=name) from error


def _largest(maps: Iterable[_Texts]) -> _Amounts:
    largest: _Amounts = {}
    for texts in maps:
        _raise_to(largest, _amounts(texts))
    return largest


def _add(total: _Amounts, more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise_to(total: _Amounts, other: Mapping[str, int]) -> None:
    for name, value in other.items():
        if value > total.get(name, 0):
            total[name] = value
