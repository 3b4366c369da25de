"""A refused gang is matched again only if it may fit."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.queue import Refused
from scheduler.refusals import Growth, remembered
from scheduler_core.constraints import Repulsion, Shape
from scheduler_core.gang import Gang, Member
from scheduler_core.kinds import pod_kind
from scheduler_core.ledger import Ledger
from scheduler_core.match import match
from scheduler_core.nodes import Node
from scheduler_core.placed import Placed
from scheduler_core.reasons import Refusal

ORDER = (0, True, "", "g")


def full(nodes: int) -> Ledger:
    ledger = Ledger(nodes)
    for number in range(nodes):
        ledger.upsert_node(Node(f"n{number}", {"cpu": 1000, "pods": 10}, labels={"host": f"n{number}"}))
        put(ledger, number)
    return ledger


def put(ledger: Ledger, number: int, cpu: int = 1000) -> None:
    kind = pod_kind("ns", None, Shape((("cpu", cpu), ("pods", 1))))
    ledger.put(f"p{number}", Placed(kind, f"n{number}"))


def put_guard(ledger: Ledger) -> None:
    """A pod on the first node that keeps all pods of its namespace away from there."""
    term = Repulsion("host", frozenset({"ns"}), ())
    ledger.put("guard", Placed(pod_kind("ns", None, Shape((("pods", 1),)), (term,)), "n0"))


def gang(*cpus: int) -> Gang:
    members = [
        Member(f"m{number}", pod_kind("ns", None, Shape((("cpu", cpu), ("pods", 1)))))
        for number, cpu in enumerate(cpus)
    ]
    return Gang("ns/g", members, needed=len(members))


def refuse(ledger: Ledger, wanted: Gang) -> Refused:
    view = ledger.view()
    answer = match(view, wanted)
    assert isinstance(answer, Refusal)
    return remembered(wanted, answer, view, ledger.room_version, ORDER)


def growth(ledger: Ledger) -> Growth:
    return Growth(ledger.view(), ledger.room_version, ledger.grown_since)


def end_and_refill(ledger: Ledger, refused: Refused, numbers: Iterable[int]) -> Refused | None:
    """Each pod ends, the refusal is looked at, and another pod takes the room."""
    still: Refused | None = refused
    for number in numbers:
        ledger.remove(f"p{number}")
        assert still is not None
        still = growth(ledger).still_refused(still)
        put(ledger, number)
    return still


def test_too_little_new_room_needs_no_match() -> None:
    ledger = full(4)
    refused = refuse(ledger, gang(1000, 1000))
    ledger.remove("p0")
    still = growth(ledger).still_refused(refused)
    assert still is not None
    assert still.room_version == ledger.room_version


def test_enough_new_room_needs_a_match() -> None:
    ledger = full(4)
    refused = refuse(ledger, gang(1000, 1000))
    ledger.remove("p0")
    ledger.remove("p1")
    assert growth(ledger).still_refused(refused) is None


def test_room_that_others_took_again_needs_no_match() -> None:
    ledger = full(8)
    assert end_and_refill(ledger, refuse(ledger, gang(1000, 1000)), range(8)) is not None


def test_anti_affinity_of_other_pods_does_not_make_each_end_a_match() -> None:
    ledger = full(4)
    put_guard(ledger)
    refused = refuse(ledger, gang(1000, 1000))
    ledger.remove("p0")
    assert growth(ledger).still_refused(refused) is not None


def test_anti_affinity_that_ends_can_make_room_for_a_gang() -> None:
    ledger = full(4)
    for number in range(2):
        ledger.remove(f"p{number}")
    put_guard(ledger)
    wanted = gang(1000, 1000)
    refused = refuse(ledger, wanted)
    assert growth(ledger).still_refused(refused) is not None
    ledger.remove("guard")
    assert growth(ledger).still_refused(refused) is None
    assert not isinstance(match(ledger.view(), wanted), Refusal)


def test_room_that_a_gang_has_just_taken_makes_no_match_for_the_next() -> None:
    ledger = full(4)
    refused = refuse(ledger, gang(1000, 1000))
    ledger.remove("p0")
    ledger.remove("p1")
    current = growth(ledger)
    put(ledger, 0)
    current.see(ledger.view())
    assert current.still_refused(refused) is not None


def test_a_mixed_gang_that_may_fit_is_matched() -> None:
    ledger = full(4)
    wanted = gang(1000, 500, 500)
    refused = refuse(ledger, wanted)
    ledger.remove("p0")
    ledger.remove("p1")
    assert not isinstance(match(ledger.view(), wanted), Refusal)
    assert growth(ledger).still_refused(refused) is None
