"""Small clusters and gangs for the matching tests, and a brute-force oracle beside the matcher."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scheduler_core.constraints import NodeConstraints, Repulsion, Requests, Shape, Taint
from scheduler_core.eligibility import Eligibility
from scheduler_core.gang import Gang, Member, Placement
from scheduler_core.kinds import pod_kind
from scheduler_core.ledger import Ledger
from scheduler_core.match import match
from scheduler_core.nodes import Node
from scheduler_core.placed import Placed
from scheduler_core.reasons import Refusal
from scheduler_core.requests import ContainerRequest, capacity, pod_requests

ANYWHERE = NodeConstraints()


def node(
    name: str,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    *,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    extended: Mapping[str, str] | None = None,
    unschedulable: bool = False,
    ready: bool = True,
    network_unavailable: bool = False,
    deleting: bool = False,
) -> Node:
    """`node a 4c 8Gi` of the cases' conventions."""
    return Node(
        name,
        capacity({"cpu": cpu, "memory": memory, "pods": pods, **(extended or {})}),
        labels=labels or {},
        taints=tuple(taints),
        unschedulable=unschedulable,
        ready=ready,
        network_unavailable=network_unavailable,
        deleting=deleting,
    )


def cluster(*nodes: Node, width: int = 2) -> Ledger:
    """A ledger that has to grow for more than two nodes, so that growing is always under test."""
    ledger = Ledger(width)
    for one in nodes:
        ledger.upsert_node(one)
    return ledger


def asks(**texts: str) -> Requests:
    """What a pod of one container asks for: `asks(cpu="1")`."""
    return pod_requests([ContainerRequest({name.replace("_", "-"): t for name, t in texts.items()})])


def pod(cpu: str = "1", constraints: NodeConstraints = ANYWHERE) -> Shape:
    """`P(x)` of the cases' conventions: x CPU and 64Mi."""
    return Shape(asks(cpu=cpu, memory="64Mi"), constraints)


def gang(*shapes: Shape, needed: int | None = None, key: str = "default/g", counted: int = 0) -> Gang:
    """A gang whose members are called 0, 1, 2 ... in the order given."""
    members = [Member(f"{key}-{number}", pod_kind("default", None, one)) for number, one in enumerate(shapes)]
    return Gang(key, members, len(members) if needed is None else needed, counted)


def use(
    ledger: Ledger, uid: str, name: str, requests: Requests, repulsions: tuple[Repulsion, ...] = ()
) -> None:
    """Show the ledger a pod on a node."""
    ledger.put(uid, Placed(pod_kind("default", None, Shape(requests), repulsions), name))


def eligible(ledger: Ledger, constraints: NodeConstraints) -> Eligibility:
    """The nodes that a pod with these constraints may use."""
    return ledger.view().eligible(pod_kind("default", None, pod(constraints=constraints)))


def placed(ledger: Ledger, wanted: Gang) -> Placement:
    """The placement; the test fails with the reason if there is none."""
    found = match(ledger.view(), wanted)
    assert isinstance(found, Placement), found.message
    return found


def refused(ledger: Ledger, wanted: Gang) -> Refusal:
    """The refusal; the test fails with the placement if there is one."""
    found = match(ledger.view(), wanted)
    assert isinstance(found, Refusal), found.nodes
    return found


def by_node(placement: Placement) -> dict[str, int]:
    """How many members each node takes."""
    counts: dict[str, int] = {}
    for name in placement.nodes.values():
        counts[name] = counts.get(name, 0) + 1
    return counts


def most(free: Mapping[str, Mapping[str, int]], members: Sequence[tuple[Requests, set[str]]]) -> int:
    """The largest number of these members that fit together, by trying everything.

    `free` is what each node has left; a member is what it asks for and the names of nodes it may use.
    """
    best = 0

    def place(index: int, left: dict[str, dict[str, int]], done: int) -> None:
        nonlocal best
        best = max(best, done)
        if index == len(members) or done + len(members) - index <= best:
            return
        requests, allowed = members[index]
        for name in sorted(allowed):
            if all(left[name].get(resource, 0) >= amount for resource, amount in requests):
                taken = dict(left[name])
                for resource, amount in requests:
                    taken[resource] -= amount
                place(index + 1, {**left, name: taken}, done + 1)
        place(index + 1, left, done)

    place(0, {name: dict(amounts) for name, amounts in free.items()}, 0)
    return best
