"""Why a gang is not placed: the numbers, and their text.

Owns: the refusal and its text (rule F3: it begins with "0/N nodes are available: "). Does not own: where the
text is shown (condition, event, log).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from groups.contract import Why
from scheduler_core import quantity
from scheduler_core.constraints import Requests

#: Longer notes of events are refused by the API server (rule E1).
MAX_BYTES: Final = 1024
_CUT: Final = "; ..."
_MAX_SHAPES: Final = 6
_PLURALS: Final = {"is": "are", "has": "have", "does": "do"}


@dataclass(frozen=True, slots=True)
class Lack:
    """A resource that is short: what each member asks for, and what the eligible nodes have.

    `room` is how many members this resource alone would allow. `nodes_without` is how many eligible nodes
    have too little of it for one member.
    """

    resource: str
    asks: int
    free: int
    room: int
    nodes_without: int


@dataclass(frozen=True, slots=True)
class ShapeReport:
    """The numbers of one shape: its members, the nodes it may use, and how many fit there alone.

    `lacks` are resources that are short by themselves. `together` are resources that are enough in sum, but
    not on the same nodes. `excluded`: why nodes may not be used ("is cordoned"), and how many.
    """

    members: int
    requests: Requests
    eligible_nodes: int
    room: int
    lacks: tuple[Lack, ...] = ()
    together: tuple[str, ...] = ()
    excluded: tuple[tuple[str, int], ...] = ()
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing of the gang is placed now. `room` is how many of its members would fit together.

    `proven` is False if the search for a mixed gang ended at its step limit. Otherwise no plan places more
    than `most` members.
    """

    key: str
    why: Why
    needed: int
    members: int
    room: int
    nodes: int
    shapes: tuple[ShapeReport, ...] = ()
    counted: int = 0
    proven: bool = True
    most: int = 0

    @property
    def message(self) -> str:
        """The text for condition, event and log: at most 1024 bytes, equal for equal numbers."""
        return sentence(self)


def sentence(refusal: Refusal) -> str:
    """The usual beginning (rule F3), then how many are needed, the room, and the lacking resources."""
    head = f"0/{refusal.nodes} nodes are available: {_gist(refusal)}"
    honoured = [report for report in refusal.shapes if not report.unsupported]
    parts = list(_unsupported(refusal))
    if len(honoured) == 1:
        parts += _one_shape(honoured[0], max(refusal.needed, 1))
    else:
        parts += _several_shapes(honoured)
    if not refusal.proven:
        parts.append("no way to mix them was found within the search limit")
    return _joined(head, parts)


def _gist(refusal: Refusal) -> str:
    room = f"room for {refusal.room} now"
    if refusal.why is Why.UNSUPPORTED_RULE:
        room = "none is placed"
    if refusal.why is Why.WAITING_FOR_MEMBERS:
        room = f"{_count(refusal.members, 'waits', 'wait')}"
    if refusal.needed == 0:
        late = _count(refusal.members, "member waits", "members wait")
        return f"the gang has its quorum, {late}, {room}"
    there = f" ({refusal.counted} have a node already)" if refusal.counted else ""
    more = " more" if refusal.counted else ""
    of_all = f" of {refusal.members}" if refusal.members > refusal.needed else ""
    members = "member" if refusal.needed == 1 and not of_all else "members"
    return f"the gang needs {refusal.needed}{of_all}{more} {members} placed together{there}, {room}"


def _unsupported(refusal: Refusal) -> Iterable[str]:
    for report in refusal.shapes:
        if report.unsupported:
            who = _count(report.members, "member carries", "members carry")
            yield f"{who} rules that Fluence does not support yet: {', '.join(report.unsupported)}"


def _one_shape(report: ShapeReport, wanted: int) -> list[str]:
    parts = [f"each asks {_asks(report.requests)}"]
    parts += [_lack(lack, min(wanted, report.members), report) for lack in report.lacks]
    if report.together:
        parts.append(f"{_together(report)} of {min(wanted, report.members)} needed")
    return parts + _excluded(report.excluded)


def _together(report: ShapeReport) -> str:
    """For resources that are enough in sum, but on different nodes."""
    if len(report.together) == 1:
        return f"too little {report.together[0]} on the nodes that have the rest: room for {report.room}"
    *first, last = report.together
    return f"too little {', '.join(first)} and {last} on the same nodes: room for {report.room}"


def _lack(lack: Lack, wanted: int, report: ShapeReport) -> str:
    name = lack.resource
    asked = f"{wanted} x {quantity.human(name, lack.asks)} needed"
    free = f"{quantity.human(name, lack.free)} free on {_nodes(report.eligible_nodes)}"
    if lack.nodes_without:
        free += f", {lack.nodes_without} of them with too little for one member"
    return f"lacking {name}: {asked}, room for {lack.room} ({free})"


def _several_shapes(reports: list[ShapeReport]) -> list[str]:
    shared = {report.excluded for report in reports}
    parts = []
    for report in reports[:_MAX_SHAPES]:
        who = _count(report.members, "member asks", "members ask")
        text = f"{who} {_asks(report.requests)}: room for {report.room} of them alone"
        if report.together:
            text += f", {_together(report)}"
        for lack in report.lacks:
            free = f"{quantity.human(lack.resource, lack.free)} free"
            text += f", lacking {lack.resource} ({free} on {_nodes(report.eligible_nodes)})"
        if len(shared) > 1:
            text = ", ".join([text, *_excluded(report.excluded)])
        parts.append(text)
    if len(reports) > _MAX_SHAPES:
        parts.append(f"{len(reports) - _MAX_SHAPES} more kinds of members")
    if len(shared) == 1:
        parts += _excluded(next(iter(shared)))
    return parts


def _excluded(excluded: tuple[tuple[str, int], ...]) -> list[str]:
    return [f"{_nodes(count)} {_agree(count, reason)}" for reason, count in excluded]


def _agree(count: int, reason: str) -> str:
    if count == 1:
        return reason
    verb, _, rest = reason.partition(" ")
    return f"{_PLURALS.get(verb, verb)} {rest}"


def _nodes(count: int) -> str:
    return _count(count, "node", "nodes")


def _count(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _asks(requests: Requests) -> str:
    asks = [f"{name} {quantity.human(name, amount)}" for name, amount in requests if name != "pods"]
    return ", ".join(asks) or "only a pod slot"


def _joined(head: str, parts: Iterable[str]) -> str:
    """As many parts as fit, and a mark if some are left out."""
    text = head
    for part in parts:
        longer = f"{text}; {part}"
        if len(longer.encode()) > MAX_BYTES - len(_CUT):
            # A single part can be too long (many rules, long taints): show its beginning.
            return longer.encode()[: MAX_BYTES - len(_CUT)].decode(errors="ignore") + _CUT
        text = longer
    return text
