"""Required anti-affinity of pods already placed rejects those that come (rule IA4)."""

from __future__ import annotations

import pytest

from scheduler_core.constraints import Repulsion, Requirement
from scheduler_core.gang import Gang, Member
from scheduler_core.kinds import pod_kind
from scheduler_core.ledger import Ledger
from tests.matching.clusters import asks, by_node, cluster, node, placed, pod, refused, use

HOST, ZONE = "kubernetes.io/hostname", "zone"
APP = (Requirement("app", "In", ("web",)),)


def three_nodes() -> Ledger:
    """Nodes a and b in zone z1, c in z2, d in none."""
    zones = {"a": "z1", "b": "z1", "c": "z2", "d": None}
    return cluster(
        *[node(name, labels={HOST: name, **({ZONE: zone} if zone else {})}) for name, zone in zones.items()]
    )


def web(size: int, namespace: str = "default", app: str = "web") -> Gang:
    members = [
        Member(f"m{n}", pod_kind(namespace, {"app": app, "index": str(n)}, pod())) for n in range(size)
    ]
    return Gang(f"{namespace}/g", members, size)


def allowed(ledger: Ledger, wanted: Gang) -> set[str]:
    """Every node that takes members of the gang when it is as large as the cluster."""
    return set(by_node(placed(ledger, wanted)))


@pytest.mark.parametrize(
    ("term", "wanted", "open_nodes"),
    [
        pytest.param(Repulsion(HOST, frozenset({"default"}), APP), web(12), "bcd", id="host"),
        pytest.param(Repulsion(ZONE, frozenset({"default"}), APP), web(8), "cd", id="zone"),
        pytest.param(Repulsion(ZONE, None, APP), web(8), "cd", id="all namespaces"),
        pytest.param(Repulsion(ZONE, frozenset({"other"}), APP), web(16), "abcd", id="elsewhere"),
        pytest.param(Repulsion(ZONE, None, ()), web(8, app="db"), "cd", id="empty matches all"),
        pytest.param(Repulsion(ZONE, None, None), web(16), "abcd", id="nil matches nothing"),
        pytest.param(Repulsion(ZONE, None, APP), web(16, app="db"), "abcd", id="others are free"),
        pytest.param(Repulsion("rack", None, APP), web(16), "abcd", id="no such key anywhere"),
    ],
)
def test_a_placed_pod_closes_its_domain_to_those_it_selects(term: Repulsion, wanted: Gang, open_nodes: str):
    """IA3, IA4 and IA5: nodes without the key belong to no domain."""
    ledger = three_nodes()
    use(ledger, "there", "a", asks(), (term,))
    assert allowed(ledger, wanted) == set(open_nodes)


def test_a_pod_on_a_node_without_the_key_closes_nothing():
    """IA3: there is no domain around it."""
    ledger = three_nodes()
    use(ledger, "there", "d", asks(), (Repulsion(ZONE, None, APP),))
    assert allowed(ledger, web(16)) == set("abcd")


def test_the_domain_opens_when_the_last_such_pod_goes_and_the_room_version_rises():
    """IA7: pods that have ended keep none away."""
    ledger = three_nodes()
    term = Repulsion(HOST, None, APP)
    for uid in ("one", "two"):
        use(ledger, uid, "a", asks(), (term,))
    ledger.remove("one")
    assert allowed(ledger, web(12)) == set("bcd")
    seen = ledger.room_version
    ledger.remove("two")
    assert ledger.room_version > seen
    assert allowed(ledger, web(16)) == set("abcd")


@pytest.mark.parametrize("change", ["removed", "other zone"])
def test_the_domain_opens_when_its_node_leaves_it_and_room_may_have_grown(change: str):
    """IA3: the other node of the zone takes members again, so refused gangs are tried again."""
    ledger = three_nodes()
    use(ledger, "there", "a", asks(), (Repulsion(ZONE, None, APP),))
    assert allowed(ledger, web(8)) == set("cd")
    seen = ledger.room_version
    if change == "removed":
        ledger.remove_node("a")
    else:
        ledger.upsert_node(node("a", "0", labels={HOST: "a", ZONE: "z9"}))
    assert ledger.room_version > seen
    assert "b" in ledger.grown_since(seen)
    assert allowed(ledger, web(12)) == set("bcd")


def test_members_that_a_term_tells_apart_go_to_different_nodes():
    """Only the labels that a term reads make members differ."""
    ledger = three_nodes()
    first = (Requirement("index", "In", ("0",)),)
    use(ledger, "there", "a", asks(), (Repulsion(ZONE, None, first),))
    for name in "cd":
        use(ledger, f"full-{name}", name, asks(cpu="4" if name == "d" else "3"))
    found = placed(ledger, web(9))
    assert found.nodes["m0"] == "c"


def test_the_refusal_names_anti_affinity():
    """It is never ignored silently."""
    ledger = cluster(node("a", labels={HOST: "a"}))
    use(ledger, "there", "a", asks(), (Repulsion(HOST, None, APP),))
    message = refused(ledger, web(1)).message
    assert "1 node is closed by the anti-affinity of pods there" in message
