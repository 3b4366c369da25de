"""The scheduling cases that the matching core decides: what is bound where, or why not."""

from __future__ import annotations

import pytest

from scheduler_core.constraints import (
    NodeConstraints,
    Requirement,
    SelectorTerm,
    Shape,
    Taint,
    Toleration,
)
from scheduler_core.gang import Gang, Placement
from scheduler_core.ledger import Ledger
from scheduler_core.match import match
from scheduler_core.requests import ContainerRequest, pod_requests
from tests.matching.clusters import asks, by_node, cluster, gang, node, placed, pod, refused, use


def bind(ledger: Ledger, wanted: Gang) -> Placement:
    """Match, assume, and see it bound, as the scheduler does."""
    plan = placed(ledger, wanted)
    ledger.assume(plan)
    for uid, name in plan.nodes.items():
        use(ledger, uid, name, plan.kinds[uid].shape.requests)
    return plan


def end(ledger: Ledger, plan: Placement) -> None:
    """The pods end or are deleted."""
    for uid in plan.nodes:
        ledger.remove(uid)


def rest(wanted: Gang, plan: Placement) -> Gang:
    """What is left of a gang once the plan is bound (A5)."""
    waiting = [one for one in wanted.members if one.uid not in plan.nodes]
    needed = max(0, wanted.needed - len(plan))
    return Gang(wanted.key, waiting, needed, counted=len(plan))


def test_no_member_of_a_gang_that_does_not_fit_is_placed_and_others_are():
    """C81: 5 x 1 on 2 + 2; the smaller gang passes; the numbers are said."""
    ledger = cluster(node("a", "2"), node("b", "2"))
    five, four = gang(*[pod()] * 5, key="default/g5"), gang(*[pod()] * 4, key="default/g4")
    no = refused(ledger, five)
    assert (no.needed, no.room) == (5, 4)
    assert by_node(bind(ledger, four)) == {"a": 2, "b": 2}
    assert refused(ledger, five).room == 0


def test_of_two_gangs_with_room_for_one_exactly_one_is_placed():
    """C82: never 2 + 2."""
    ledger = cluster(node("a", "4"))
    first = bind(ledger, gang(*[pod()] * 3, key="default/a"))
    second = gang(*[pod()] * 3, key="default/b")
    assert len(first) == 3
    assert refused(ledger, second).room == 1
    end(ledger, first)
    assert len(placed(ledger, second)) == 3


def test_a_waiting_gang_holds_nothing():
    """C85: a single pod is placed meanwhile; the gang is placed once there is room."""
    ledger = cluster(node("a", "9"))
    ten = gang(*[pod()] * 10, key="default/ten")
    assert refused(ledger, ten).room == 9
    single = bind(ledger, gang(pod("5"), key="default/s"))
    end(ledger, single)
    ledger.upsert_node(node("b", "1"))
    assert by_node(placed(ledger, ten)) == {"a": 9, "b": 1}


@pytest.mark.parametrize("order", [("5", "1", "1"), ("1", "5", "1"), ("1", "1", "5")])
def test_members_that_ask_for_different_amounts_are_each_counted_as_they_are(order: tuple[str, ...]):
    """C87, first: 5 on a, the ones beside or on b, whatever the order of the members."""
    found = placed(cluster(node("a", "6"), node("b", "2")), gang(*map(pod, order)))
    assert len(found) == 3
    assert found.nodes[f"default/g-{order.index('5')}"] == "a"


def test_no_member_of_a_mixed_gang_that_does_not_fit_is_placed():
    """C87, variant: 1 + 4 + 4 on 6 and 2."""
    no = refused(cluster(node("a", "6"), node("b", "2")), gang(pod("1"), pod("4"), pod("4")))
    assert (no.needed, no.room, no.proven) == (3, 2, True)


def test_a_mixed_gang_that_no_greedy_order_places_is_found_by_search():
    """C87, the kind: 3 + 3 + 2 + 2 + 2 fill 6 and 6 in one way only."""
    ledger = cluster(node("a", "6"), node("b", "6"))
    found = placed(ledger, gang(pod("2"), pod("3"), pod("2"), pod("3"), pod("2")))
    assert len(found) == 5


def three_containers() -> Shape:
    return Shape(pod_requests([ContainerRequest({"cpu": "100m", "memory": "64Mi"})] * 3))


@pytest.mark.parametrize(
    ("members", "places"),
    [
        pytest.param([pod("500m")] * 8, 8, id="i: eight halves"),
        pytest.param([three_containers()] * 10, 10, id="ii: thirty tenths"),
        pytest.param([pod("500m")] * 9, 0, id="iv: nine halves"),
    ],
)
def test_millicores_are_counted_exactly(members: list[Shape], places: int):
    """C88: no container is rounded up to a core."""
    found = match(cluster(node("a", "4")).view(), gang(*members))
    assert (len(found) if isinstance(found, Placement) else 0) == places


def test_pods_without_requests_go_where_the_cpu_is_full():
    """C88 (iii): they ask for a pod slot only."""
    ledger = cluster(node("a", "4"))
    use(ledger, "full", "a", asks(cpu="4"))
    assert len(placed(ledger, gang(*[Shape(asks())] * 4))) == 4


def init_pod(
    main: str, *, init: str = "", sidecar: str = "", overhead: dict[str, str] | None = None
) -> Shape:
    steps = [ContainerRequest({"cpu": init})] if init else []
    steps += [ContainerRequest({"cpu": sidecar}, restartable=True)] if sidecar else []
    return Shape(pod_requests([ContainerRequest({"cpu": main})], steps, overhead))


@pytest.mark.parametrize(
    ("shape", "size", "fits"),
    [
        pytest.param(init_pod("100m", init="3"), 2, False, id="i: init 3"),
        pytest.param(init_pod("1", sidecar="1"), 2, True, id="ii: sidecar"),
        pytest.param(init_pod("1", sidecar="1"), 3, False, id="iii: three with sidecars"),
        pytest.param(init_pod("1", overhead={"cpu": "1500m"}), 2, False, id="iv: overhead"),
    ],
)
def test_init_containers_sidecars_and_overhead_count(shape: Shape, size: int, fits: bool):
    """C90: on 4 CPU."""
    assert isinstance(match(cluster(node("a", "4")).view(), gang(*[shape] * size)), Placement) is fits


def test_extended_resources_decide_like_any_other():
    """C91: any vendor's; limits stand in for requests because the API server has copied them (R4)."""
    gpus = {"nvidia.com/gpu": "4", "amd.com/gpu": "2"}
    ledger = cluster(node("a", "8", extended=gpus), node("b", "8"))
    nvidia, amd = (Shape(pod_requests([ContainerRequest({f"{v}.com/gpu": "1"})])) for v in ("nvidia", "amd"))
    assert by_node(placed(ledger, gang(*[nvidia] * 4))) == {"a": 4}
    assert refused(ledger, gang(*[amd] * 3)).room == 2
    five = Shape(asks(cpu="5"))
    assert by_node(placed(ledger, gang(five, five))) == {"a": 1, "b": 1}


def test_a_resource_that_no_node_has_is_lacking_everywhere():
    """C91: zero room, named; not an error."""
    no = refused(cluster(node("a")), gang(Shape(asks(**{"x.io/fpga": "1"}))))
    assert [lack.resource for lack in no.shapes[0].lacks] == ["x.io/fpga"]


def test_pods_that_have_ended_hold_nothing():
    """C94: six finished pods of 1 CPU on 4 CPU; the caller removes them from the ledger (R13)."""
    ledger = cluster(node("a", "4"))
    for number in range(4):
        use(ledger, f"old-{number}", "a", asks(cpu="1"))
    four = gang(*[pod()] * 4)
    assert refused(ledger, four).room == 0
    for number in range(4):
        ledger.remove(f"old-{number}")
    assert len(placed(ledger, four)) == 4


def test_more_pods_than_the_minimum_take_what_there_is():
    """C99: ten pods, five needed, room for seven; the rest follow one at a time."""
    ledger = cluster(node("a", "7"))
    ten = gang(*[pod()] * 10, needed=5)
    seven = bind(ledger, ten)
    assert len(seven) == 7
    late = rest(ten, seven)
    no = refused(ledger, late)
    assert (no.needed, no.room, no.members) == (0, 0, 3)
    ledger.upsert_node(node("b", "1"))
    one = bind(ledger, late)
    assert len(one) == 1
    ledger.upsert_node(node("b", "3"))
    assert len(placed(ledger, rest(late, one))) == 2


def test_below_the_minimum_no_pod_is_placed():
    """C99, second run: room for four where five are needed."""
    no = refused(cluster(node("a", "4")), gang(*[pod()] * 10, needed=5))
    assert (no.needed, no.room) == (5, 4)
    assert "needs 5 of 10 members placed together, room for 4 now" in no.message


def test_members_already_bound_count_towards_the_minimum():
    """A5: a scheduler killed between two binds completes the gang with what is left."""
    ledger = cluster(node("a", "4"))
    whole = gang(*[pod()] * 4)
    plan = placed(ledger, whole)
    half = Placement(plan.key, dict(list(plan.nodes.items())[:2]), plan.kinds)
    ledger.assume(half)
    assert len(placed(ledger, rest(whole, half))) == 2
    use(ledger, "other", "a", asks(cpu="1"))
    no = refused(ledger, rest(whole, half))
    assert "needs 2 more members placed together (2 have a node already), room for 1 now" in no.message


def test_a_taint_keeps_out_those_that_do_not_tolerate_it():
    """C106: 0/3, 3/3 with the toleration, 3/3 with PreferNoSchedule; NoExecute counts alike."""
    tolerant = NodeConstraints(tolerations=(Toleration("x", "Equal", "y", ""),))
    for effect in ("NoSchedule", "NoExecute"):
        ledger = cluster(node("a", "2"), node("b", "4", taints=[Taint("x", "y", effect)]))
        no = refused(ledger, gang(*[pod()] * 3))
        assert no.room == 2
        assert "1 node has untolerated taint {x: y}" in no.message
        assert len(placed(ledger, gang(*[pod(constraints=tolerant)] * 3))) == 3
    soft = cluster(node("a", "2"), node("b", "4", taints=[Taint("x", "y", "PreferNoSchedule")]))
    assert len(placed(soft, gang(*[pod()] * 3))) == 3


def two_zones() -> Ledger:
    return cluster(node("a", "4", labels={"zone": "z1"}), node("b", "2", labels={"zone": "z2"}))


def test_a_node_selector_decides_inside_the_plan():
    """C107: 3 x 1 in z2, which has 2 CPU."""
    in_z2 = NodeConstraints(node_selector=(("zone", "z2"),))
    no = refused(two_zones(), gang(*[pod(constraints=in_z2)] * 3))
    assert no.room == 2
    assert "1 node does not match the node selector or affinity" in no.message


def test_members_with_different_constraints_share_the_cluster():
    """C107: one wants z2, two want to be outside."""
    in_z2 = NodeConstraints(node_selector=(("zone", "z2"),))
    outside = NodeConstraints(required=(SelectorTerm((Requirement("zone", "NotIn", ("z2",)),)),))
    shapes = [pod(constraints=one) for one in (in_z2, outside, outside)]
    assert list(placed(two_zones(), gang(*shapes)).nodes.values()) == ["b", "a", "a"]


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param(SelectorTerm(fields=(Requirement("metadata.name", "In", ("b",)),)), {"b"}, id="by name"),
        pytest.param(SelectorTerm((Requirement("slots", "Gt", ("3",)),)), {"b"}, id="Gt"),
        pytest.param(SelectorTerm((Requirement("slots", "Lt", ("9",)),)), {"a"}, id="Lt"),
        pytest.param(SelectorTerm((Requirement("slots", "Exists"),)), {"a", "b"}, id="Exists"),
        pytest.param(SelectorTerm((Requirement("slots", "DoesNotExist"),)), {"c"}, id="DoesNotExist"),
        pytest.param(SelectorTerm(), set(), id="an empty term matches nothing"),
    ],
)
def test_every_operator_of_node_affinity(term: SelectorTerm, expected: set[str]):
    """C107: -- and a term on the node's name."""
    ledger = cluster(node("a", labels={"slots": "3"}), node("b", labels={"slots": "10"}), node("c"))
    found = match(ledger.view(), gang(*[pod(constraints=NodeConstraints(required=(term,)))] * 12, needed=1))
    assert (set(found.nodes.values()) if isinstance(found, Placement) else set()) == expected


def test_nodes_that_do_not_count():
    """C109: tainted, cordoned, not ready, without network, and one that is good."""
    control = Taint("node-role.kubernetes.io/control-plane")
    network = Taint("node.kubernetes.io/network-unavailable")
    ledger = cluster(
        node("control", labels={control.key: ""}, taints=[control]),
        node("cordoned", unschedulable=True),
        node("unknown", ready=False),
        node("cut-off", taints=[network]),
        node("good"),
    )
    no = refused(ledger, gang(*[pod()] * 5))
    assert no.room == 4
    for text in (
        "1 node has untolerated taint {node-role.kubernetes.io/control-plane}",
        "1 node is cordoned",
        "1 node is not ready",
        "1 node has no network",
    ):
        assert text in no.message
    assert by_node(placed(ledger, gang(*[pod()] * 4))) == {"good": 4}


def test_a_label_alone_excludes_no_pod():
    """C109: a single-node cluster whose node is called a control plane but carries no taint."""
    ledger = cluster(node("a", labels={"node-role.kubernetes.io/control-plane": ""}))
    assert len(placed(ledger, gang(*[pod()] * 4))) == 4


def test_the_number_of_pods_on_a_node_is_a_limit():
    """C114: ten slots, eight taken, three wanted."""
    ledger = cluster(node("a", "64", pods="10"))
    for number in range(8):
        use(ledger, f"tiny-{number}", "a", asks())
    three = gang(*[pod("10m")] * 3)
    no = refused(ledger, three)
    assert [lack.resource for lack in no.shapes[0].lacks] == ["pods"]
    ledger.remove("tiny-0")
    assert len(placed(ledger, three)) == 3


def test_members_without_requests_wait_with_the_others():
    """C115: two of 2 CPU and two of nothing, on 2 CPU and on 2 + 2."""
    members = [pod("2"), pod("2"), Shape(asks()), Shape(asks())]
    ledger = cluster(node("a", "2"))
    assert refused(ledger, gang(*members)).room == 3
    ledger.upsert_node(node("b", "2"))
    assert len(placed(ledger, gang(*members))) == 4


def test_an_over_committed_resource_does_not_matter_to_those_that_do_not_ask_for_it():
    """R8: a zero request is skipped even where the node has less than nothing left."""
    ledger = cluster(node("a", "4"))
    use(ledger, "greedy", "a", asks(cpu="1", memory="99Gi"))
    assert len(placed(ledger, gang(Shape(asks(cpu="1"))))) == 1
    assert refused(ledger, gang(pod())).room == 0
