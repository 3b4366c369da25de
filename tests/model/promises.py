"""What holds whatever happens: the promises of the scheduler, checked after every step of the model test."""

from __future__ import annotations

from scheduler.gangs import GangState
from scheduler.process import SchedulingTerm
from scheduler.queue import State
from scheduler.stranded import Fate, missing_members, stand_ins, waiting_members
from scheduler_core.gang import Placement
from scheduler_core.match import match
from scheduler_core.placed import State as PlacedState
from tests.model.cluster import Cluster
from tests.model.server import NAMESPACE, Object
from tests.model.workloads import NODE_CPUS, cpus_of


def watch_bindings(cluster: Cluster) -> list[str]:
    """Check each Binding that is carried out; the list collects what was broken."""
    broken: list[str] = []

    def check(pod: Object, node: str) -> None:
        used = sum(map(cpus_of, _pods_on(cluster, node)))
        if node in NODE_CPUS and used + cpus_of(pod) > NODE_CPUS[node]:
            broken.append(
                f"node {node} is over-committed by pod {pod['metadata']['name']}: {used} cpus in use"
            )
        run = pod["metadata"]["annotations"]["fluence.flux-framework.org/pod-group-uid"]
        owner = next((one["uid"] for one in pod["metadata"]["ownerReferences"]), "")
        if cluster.workloads.owner_of_run[run] != owner:
            broken.append(f"pod {pod['metadata']['name']} of {owner or 'nobody'} was bound for {run}")

    cluster.server.on_bound = check
    return broken


def check_queue(cluster: Cluster, work: SchedulingTerm) -> None:
    """Every gang that waits is in the queue, and each assumption has an open call or will be seen."""
    cache = work.loop._cache
    for key in cache.gang_keys():
        state = cache.state(key)
        if state.candidates or state.is_stranded:
            assert key in work.loop.queue, f"{key} waits, and is not in the queue"
    waiting = {
        pod["metadata"]["uid"]
        for pod in cluster.server.objects["pods"].values()
        if not pod["spec"].get("nodeName")
    }
    left = [uid for uid in cache._assumed if uid in waiting and not work.binder.is_binding(uid)]
    assert not left, f"pods are assumed whose binding has ended: {left}"


def check_counted(cluster: Cluster, work: SchedulingTerm) -> None:
    """Each pod that is bound, or may yet be bound by a request on its way, is counted on its node."""
    server, ledger = cluster.server, work.loop._cache.ledger
    pods = server.objects["pods"]
    expected = {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in pods.values() if _uses_node(pod)}
    for late in server.on_their_way:
        if late.method == "POST":
            pod = pods.get(f"{NAMESPACE}/{late.body['metadata']['name']}")
            uid = late.body["metadata"]["uid"]
            if (
                pod is not None
                and pod["metadata"]["uid"] == uid
                and "deletionTimestamp" not in pod["metadata"]
            ):
                expected.setdefault(uid, late.body["target"]["name"])
    for uid, node in expected.items():
        placed = ledger.placed(uid)
        assert placed is not None, f"{uid} is bound to {node} or may be, and is not counted"
        assert placed.node == node, f"{uid} is bound to {node} or may be, and is counted on {placed.node}"


def check_held(cluster: Cluster, work: SchedulingTerm) -> None:
    """A stranded gang that waits has as much room held as can be held, on nodes that exist."""
    cache, queue, now_s = work.loop._cache, work.loop.queue, cluster.now_s
    if queue.next_due_s() == 0.0 or queue.stale(cache.ledger.room_version):
        return  # a round is about to begin
    for key in cache.gang_keys():
        state = cache.state(key)
        if not state.is_stranded or queue.state(key) not in (State.PARKED, State.WAITING):
            continue
        held = cache.ledger.held(key)
        expected = _holdable(work, state, now_s)
        assert len(held) == expected, f"{key}: {len(held)} places are held, {expected} can be"
        for uid in held:
            placed = cache.ledger.placed(uid)
            assert placed is not None
            assert cache.ledger.node(placed.node) is not None, f"{key}: room is held on a node that has gone"


def _holdable(work: SchedulingTerm, state: GangState, now_s: float) -> int:
    if work.holding.fate(state, now_s) is Fate.WAIT:
        kinds = waiting_members(state)
    else:
        kinds = missing_members(state, work.holding._lost.get(state.key, {}))
    ledger = work.loop._cache.ledger
    found = match(ledger.view().without(ledger.held(state.key)), stand_ins(state, kinds))
    return len(found) if kinds and isinstance(found, Placement) else 0


def check_end(cluster: Cluster, work: SchedulingTerm) -> None:
    """Once faults are over and there is room, nothing is assumed, half bound, lost or counted twice."""
    cache = work.loop._cache
    ledger, pods = cache.ledger, cluster.server.objects["pods"]
    assert not cache._assumed
    for pod in pods.values():
        placed, is_there = ledger.placed(pod["metadata"]["uid"]), _uses_node(pod)
        assert (placed is not None) == is_there, pod
        assert placed is None or (placed.node, placed.state) == (pod["spec"]["nodeName"], PlacedState.SEEN)
    counted = {uid for uid in ledger._placed if ledger._placed[uid].state is PlacedState.SEEN}
    assert counted == {pod["metadata"]["uid"] for pod in pods.values() if _uses_node(pod)}
    for owner in cluster.workloads.owners.values():
        own = [pod for pod in pods.values() if _is_of(pod, owner.uid)]
        bound = [pod for pod in own if pod["spec"].get("nodeName")]
        assert len(bound) == owner.size, f"{len(bound)} of {owner.size} members of {owner.name} are bound"
    for key in cache.gang_keys():
        state = cache.state(key)
        if state.is_stranded:
            assert work.holding.fate(state, cluster.now_s) is Fate.WAIT, key
            assert all(pod.metadata.controller is None for pod in state.settled), key
        else:
            assert not ledger.held(key)


def _is_of(pod: Object, owner: str) -> bool:
    failed = pod["status"]["phase"] == "Failed"
    return not failed and any(one["uid"] == owner for one in pod["metadata"]["ownerReferences"])


def _uses_node(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"]["phase"] not in ("Succeeded", "Failed")


def _pods_on(cluster: Cluster, node: str) -> list[Object]:
    pods = cluster.server.objects["pods"].values()
    return [pod for pod in pods if _uses_node(pod) and pod["spec"]["nodeName"] == node]
