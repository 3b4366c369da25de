"""The matcher alone: one gang of like members on clusters of several sizes, beside its floor.

The floor is the least that any answer needs: one floor division over the array of free resources, the
minimum, and a mapping from pod to node. `python -m bench.matcher` prints the table, `make bench` takes the
rows from `measure()`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from scheduler_core.constraints import NodeConstraints, Shape, Taint, Toleration
from scheduler_core.gang import Gang, Member, Placement
from scheduler_core.kinds import pod_kind
from scheduler_core.ledger import Ledger
from scheduler_core.match import match
from scheduler_core.nodes import Node
from scheduler_core.placed import Placed
from scheduler_core.reasons import Refusal
from scheduler_core.view import View

GIB: Final = 1 << 30
CASES: Final = tuple((nodes, gang) for nodes in (256, 1_000, 10_000) for gang in (8, 1_000))
_RUNS: Final = 41


def cluster(nodes: int) -> Ledger:
    """A cluster as it is in the middle of a day: every node half used, no two alike, some tainted."""
    ledger = Ledger(nodes)
    gpu = (Taint("nvidia.com/gpu", "present"),)
    for index in range(nodes):
        name = f"node-{index:05d}"
        ledger.upsert_node(
            Node(
                name,
                {"cpu": 64_000, "memory": 256 * GIB, "pods": 110, "nvidia.com/gpu": 8},
                labels={"kubernetes.io/hostname": name, "zone": f"z{index % 3}"},
                taints=gpu if index % 10 == 0 else (),
            )
        )
        used = 24_000 + index * 7_919 % 36_000
        requests = (("cpu", used), ("memory", used // 1_000 * 4 * GIB), ("pods", 9))
        ledger.put(f"used-{index}", Placed(pod_kind("default", None, Shape(requests)), name))
    return ledger


def gang(size: int, cpu: int = 1_000) -> Gang:
    """A gang of alike members. Each has a label of its own, as the pods of an Indexed Job have."""
    constraints = NodeConstraints(tolerations=(Toleration("spot", "Exists"),))
    requests = (("cpu", cpu), ("memory", 2 * GIB), ("pods", 1))
    shape = Shape(requests, constraints)
    members = [Member(f"uid-{n}", pod_kind("bench", {"index": str(n)}, shape)) for n in range(size)]
    return Gang("bench/gang", members, needed=size)


def measure(runs: int = _RUNS) -> list[dict[str, Any]]:
    """Every case: `nodes`, `gang`, `ms` and what else is worth knowing; milliseconds are medians."""
    return [_measure(nodes, size, runs) for nodes, size in CASES]


def _measure(nodes: int, size: int, runs: int) -> dict[str, Any]:
    ledger, wanted, hopeless = cluster(nodes), gang(size), gang(size, cpu=63_000)
    view = ledger.view()
    placement = match(view, wanted)
    assert isinstance(placement, Placement), placement
    assert isinstance(match(view, hopeless), Refusal)
    ms = median_ms(lambda: match(view, wanted), runs)
    floor_ms = median_ms(lambda: _floor(view, wanted), runs)

    def book() -> None:
        ledger.assume(placement)
        for uid in placement.nodes:
            ledger.forget(uid)

    return {
        "nodes": nodes,
        "gang": size,
        "ms": ms,
        "floor_ms": floor_ms,
        "ratio": round(ms / floor_ms, 2),
        "refusal_ms": median_ms(lambda: match(view, hopeless), runs),
        "booking_ms": median_ms(book, max(3, runs // 4)),
    }


def _floor(view: View, wanted: Gang) -> dict[str, str]:
    """The first nodes that come: no rules, no choice, no order."""
    slots = np.full(view.width, len(wanted.members), dtype=np.int64)
    for resource, amount in wanted.members[0].kind.shape.requests:
        np.minimum(slots, view.free(resource) // amount, out=slots)
    columns = np.repeat(np.arange(len(slots)), slots)[: len(wanted.members)]
    names = [view.table.node_at(column).name for column in columns.tolist()]
    return dict(zip([member.uid for member in wanted.members], names, strict=True))


def median_ms(call: Callable[[], object], runs: int) -> float:
    """Milliseconds of a call: the median of several."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return round(statistics.median(times) * 1e3, 4)


def main() -> None:
    """Print the table."""
    head = ("nodes", "gang", "match ms", "floor ms", "ratio", "refusal ms", "assume + forget ms")
    print("".join(f"{text:>20}" for text in head))
    for row in measure():
        print("".join(f"{value:>20}" for value in row.values()))


if __name__ == "__main__":
    main()
