"""The ledger counts every pod once, in whatever order events arrive."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from scheduler_core.constraints import Requests, Shape, Taint
from scheduler_core.gang import Placement
from scheduler_core.growth import RoomGrowth
from scheduler_core.kinds import pod_kind
from scheduler_core.ledger import Ledger
from scheduler_core.nodes import Node
from scheduler_core.placed import Placed
from scheduler_core.quantity import LIMIT
from tests.matching.clusters import asks, cluster, gang, node, placed, pod, refused, use

NODE_NAMES = ("a", "b", "c", "d", "e")
NAMES = st.sampled_from(NODE_NAMES)
UIDS = st.sampled_from(tuple("12345678"))
REQUESTS = st.sampled_from(
    (
        (("pods", 1),),
        (("cpu", 500), ("pods", 1)),
        (("cpu", 2000), ("memory", 1 << 30), ("pods", 1)),
        (("amd.com/gpu", 1), ("pods", 1)),
        (("pods", 1), ("x.io/a", 3), ("x.io/b", 4)),
    )
)


class LedgerMachine(RuleBasedStateMachine):
    """A ledger compared with a simple model: dictionaries of the last known state."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(1)
        self.nodes: dict[str, Node] = {}
        self.bound: dict[str, tuple[str, Requests]] = {}
        self.assumed: dict[str, tuple[str, Requests]] = {}

    @rule(name=NAMES, cpu=st.sampled_from(("1", "4")), gpu=st.booleans())
    def node_is_added_or_updated(self, name: str, cpu: str, gpu: bool) -> None:
        self.nodes[name] = node(name, cpu, extended={"amd.com/gpu": "2"} if gpu else None)
        self.ledger.upsert_node(self.nodes[name])

    @rule(name=NAMES)
    def node_is_removed(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.ledger.remove_node(name)

    @rule(uid=UIDS, name=NAMES, requests=REQUESTS)
    def pod_is_seen(self, uid: str, name: str, requests: Requests) -> None:
        self.assumed.pop(uid, None)
        self.bound[uid] = (name, requests)
        use(self.ledger, uid, name, requests)

    @rule(uid=UIDS)
    def pod_is_removed(self, uid: str) -> None:
        self.assumed.pop(uid, None)
        self.bound.pop(uid, None)
        self.ledger.remove(uid)

    @rule(uids=st.sets(UIDS), name=NAMES, requests=REQUESTS)
    def pods_are_assumed(self, uids: set[str], name: str, requests: Requests) -> None:
        some = dict.fromkeys(sorted(uids), name)
        self.ledger.assume(
            Placement("g", some, dict.fromkeys(some, pod_kind("default", None, Shape(requests))))
        )
        for uid in uids - self.bound.keys():
            self.assumed[uid] = (name, requests)

    @rule(uid=UIDS)
    def assumption_is_undone(self, uid: str) -> None:
        assert self.ledger.forget(uid) is (self.assumed.pop(uid, None) is not None)

    @invariant()
    def free_is_allocatable_less_every_pod_once(self) -> None:
        for name, one in self.nodes.items():
            free = dict(one.allocatable)
            for where, requests in (*self.bound.values(), *self.assumed.values()):
                if where == name:
                    for resource, amount in requests:
                        free[resource] = free.get(resource, 0) - amount
            found = self.ledger.view().free_on(name)
            assert {r: v for r, v in found.items() if v} == {r: v for r, v in free.items() if v}
        for name in NODE_NAMES:
            if name not in self.nodes:
                assert self.ledger.view().free_on(name) == {}
        assert self.ledger.node_count == len(self.nodes)

    @invariant()
    def unused_columns_are_empty(self) -> None:
        here = set(self.ledger.view().table.columns.values())
        cpu = self.ledger.view().free("cpu")
        assert all(cpu[column] == 0 for column in range(len(cpu)) if column not in here)


LedgerMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestLedger = LedgerMachine.TestCase


def test_a_pod_that_is_put_again_is_counted_once():
    """S5: after a new list everything is put again."""
    ledger = cluster(node("a", "4"))
    for _ in range(3):
        use(ledger, "p", "a", asks(cpu="1"))
    assert ledger.view().free_on("a")["cpu"] == 3000
    ledger.remove("p")
    ledger.remove("p")
    assert ledger.view().free_on("a")["cpu"] == 4000


def test_usage_on_a_node_that_is_not_known_yet_counts_once_it_is():
    """Pods and nodes come from two lists, in either order."""
    ledger = cluster()
    use(ledger, "p", "a", asks(cpu="3"))
    ledger.upsert_node(node("a", "4"))
    assert ledger.view().free_on("a")["cpu"] == 1000


def test_a_node_that_is_added_again_still_has_its_pods():
    """C103: a Node object deleted and made again does not make its pods disappear."""
    ledger = cluster(node("a", "4"))
    use(ledger, "p", "a", asks(cpu="3"))
    ledger.remove_node("a")
    assert refused(ledger, gang(pod())).nodes == 0
    ledger.upsert_node(node("a", "4"))
    assert ledger.view().free_on("a")["cpu"] == 1000


def test_an_assumed_pod_that_is_seen_bound_is_not_counted_twice_nor_forgotten():
    """B6 and S5: own assumed pods count until they are seen bound, and then as bound."""
    ledger = cluster(node("a", "4"))
    plan = placed(ledger, gang(pod("3")))
    ledger.assume(plan)
    use(ledger, "default/g-0", "a", pod("3").requests)
    assert ledger.view().free_on("a")["cpu"] == 1000
    assert not ledger.forget("default/g-0")
    assert ledger.view().free_on("a")["cpu"] == 1000


def test_a_pod_that_is_seen_elsewhere_than_assumed_moves():
    """What the API server shows counts: another scheduler was faster."""
    ledger = cluster(node("a", "4"), node("b", "4"))
    ledger.assume(placed(ledger, gang(pod("3"))))
    use(ledger, "default/g-0", "b", pod("3").requests)
    assert (ledger.view().free_on("a")["cpu"], ledger.view().free_on("b")["cpu"]) == (4000, 1000)


def test_resources_that_only_a_pod_names_are_counted():
    """R8: the arrays grow by new resources."""
    ledger = cluster(node("a", "4"))
    names = [f"x.io/r{number}" for number in range(20)]
    use(ledger, "p", "a", tuple((name, 2) for name in names))
    assert [ledger.view().free_on("a")[name] for name in names] == [-2] * 20
    ledger.upsert_node(node("a", "4", extended=dict.fromkeys(names, "3")))
    assert [ledger.view().free_on("a")[name] for name in names] == [1] * 20


def test_absurdly_large_requests_do_not_overflow():
    """A pod with a node name of its own bypasses every check; its numbers must not wrap around."""
    ledger = cluster(node("a", "4"))
    for uid in "pqr":
        use(ledger, uid, "a", (("memory", LIMIT), ("pods", 1)))
    assert "memory" in refused(ledger, gang(pod())).message
    for uid in "pqr":
        ledger.remove(uid)
    assert placed(ledger, gang(pod())).nodes


@pytest.mark.parametrize(
    ("before", "after", "grown"),
    [
        pytest.param(node("a", "2"), node("a", "4"), True, id="more cpu"),
        pytest.param(node("a", "4"), node("a", "2"), False, id="less cpu"),
        pytest.param(node("a"), node("a", extended={"amd.com/gpu": "1"}), True, id="a new resource"),
        pytest.param(node("a", ready=False), node("a"), True, id="ready"),
        pytest.param(node("a"), node("a", ready=False), False, id="not ready"),
        pytest.param(node("a", unschedulable=True), node("a"), True, id="uncordoned"),
        pytest.param(node("a", taints=[Taint("x")]), node("a"), True, id="taint gone"),
        pytest.param(node("a"), node("a", taints=[Taint("x")]), False, id="taint added"),
        pytest.param(
            node("a", taints=[Taint("x", effect="PreferNoSchedule")]), node("a"), False, id="no filter"
        ),
        pytest.param(node("a"), node("a", labels={"zone": "z1"}), True, id="label added"),
        pytest.param(node("a", labels={"zone": "z1"}), node("a"), True, id="label gone: NotIn"),
        pytest.param(node("a", network_unavailable=True), node("a"), True, id="network there"),
        pytest.param(node("a"), node("a", deleting=True), False, id="deleting"),
        pytest.param(node("a"), node("a"), False, id="nothing"),
    ],
)
def test_the_room_version_rises_exactly_when_a_change_of_a_node_may_help(
    before: Node, after: Node, grown: bool
):
    """C105: gangs are tried again for what could help, and not for every heartbeat."""
    ledger = cluster(before)
    seen = ledger.room_version
    ledger.upsert_node(after)
    assert (ledger.room_version > seen) is grown


def test_the_room_version_rises_when_usage_falls_and_not_when_it_grows():
    """C93: room that a pod frees may help others."""
    ledger = cluster(node("a"), node("b"))
    seen = ledger.room_version
    use(ledger, "p", "a", asks(cpu="1"))
    plan = placed(ledger, gang(pod()))
    ledger.assume(plan)
    use(ledger, "p", "a", asks(cpu="1"))
    use(ledger, "on-no-node", "z", asks(cpu="1"))
    ledger.remove("on-no-node")
    ledger.remove_node("b")
    assert ledger.room_version == seen
    ledger.forget("default/g-0")
    assert ledger.room_version == seen + 1
    ledger.remove("p")
    assert ledger.room_version == seen + 2


def test_columns_of_removed_nodes_are_used_again():
    """Adding and removing nodes does not make the arrays grow."""
    ledger = Ledger(2)
    for number in range(50):
        ledger.upsert_node(node(f"n{number}", labels={"kubernetes.io/hostname": f"n{number}"}))
        if number >= 3:
            ledger.remove_node(f"n{number - 3}")
    assert ledger.view().table.used_width == 4
    assert len(ledger.view().table.labels["kubernetes.io/hostname"].interner.values) <= 5


@given(
    st.lists(st.tuples(st.sampled_from(("node", "gone", "everywhere", "mark")), NAMES), max_size=20),
    st.integers(0, 20),
)
@settings(deadline=None)
def test_growth_since_a_version_names_the_nodes_that_grew_after_it(steps: list[tuple[str, str]], mark: int):
    growth, nodes = RoomGrowth(), dict.fromkeys(NODE_NAMES, 0)
    expected: set[str] = set()
    version = 0
    for number, (step, name) in enumerate(steps):
        if number == mark:
            version, expected = growth.version, set()
        if step == "node" and name in nodes:
            growth.on(name)
            expected.add(name)
        elif step == "everywhere":
            growth.everywhere()
            expected = set(nodes)
        elif step == "gone":
            nodes.pop(name, None)
            growth.forget(name)
            expected.discard(name)
        assert growth.since(version, nodes) == expected


def test_held_room_that_becomes_a_pod_is_a_pod():
    """A pod with the uid of held room replaces it: to release what is held does not remove the pod."""
    ledger = cluster(node("a", "4"))
    kind = pod_kind("default", None, pod("1"))
    ledger.hold("default/g", Placement("default/g", {"p": "a", "q": "a"}, {"p": kind, "q": kind}))
    ledger.put("p", Placed(kind, "a"))
    ledger.remove("q")
    assert ledger.held("default/g") == ()
    ledger.release("default/g")
    assert ledger.view().free_on("a")["cpu"] == 3000
