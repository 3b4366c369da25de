"""The promise, as a state machine: a gang starts whole or not at all, whatever fails in between.

The queue, the cache, the loop, the binder, the reflectors and the terms are the real ones. The API server is
a model that loses, doubles, delays and reorders answers; the process is killed between any two calls. Time is
virtual. FLUENCE_TEST_MODEL_EXAMPLES sets how many histories are tried.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import Any

import looptime
import pytest
import structlog
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kube import heap
from tests.model import promises
from tests.model.cluster import Cluster
from tests.model.server import KINDS, Fate
from tests.model.workloads import ACTORS, NODE_CPUS

#: Shorter than a request, than a pause, than a deadline, and longer than each of them.
TIMES_S = st.sampled_from((0.0, 0.002, 0.02, 0.3, 2.0, 7.0, 31.0, 130.0))
JOBS = st.sampled_from(("g", "h", "i"))
FATES = st.lists(st.sampled_from(Fate), max_size=6)
NODES = st.sampled_from(tuple(NODE_CPUS))
#: Time for every deadline, pause and back-off of the scheduler to pass.
_LONG_S = 400.0


class NeverHalfAGang(RuleBasedStateMachine):
    """Users, nodes, faults and time, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = looptime.new_event_loop(start=1000.0)
        self.cluster = Cluster(self._loop)
        self.broken = promises.watch_bindings(self.cluster)

    @initialize(taken=st.integers(0, 3))
    def begin(self, taken: int) -> None:
        if taken:
            self.cluster.workloads.add_foreign_pod("foreign", "a4", taken)
        self.cluster.pass_time(1)

    # Users

    @rule(
        name=JOBS,
        size=st.integers(1, 6),
        cpus=st.sampled_from(((1,), (2, 1), (1, 1, 2))),
        timeout_s=st.sampled_from((5, 60)),
        priority=st.sampled_from((0, 0, 10)),
        on_stranded=st.sampled_from(("", "release")),
        stable=st.booleans(),
        fates=FATES,
        wait_s=TIMES_S,
    )
    def create_a_job(self, name: str, fates: list[Fate], wait_s: float, **wanted: Any) -> None:
        """Or make it anew. `fates` are those of the next calls."""
        self.cluster.server.fates.extend(fates)
        self.cluster.workloads.create(name, **wanted)
        self.cluster.act()
        self.cluster.pass_time(wait_s)

    @rule(size=st.integers(1, 4), timeout_s=st.sampled_from((5, 60)), wait_s=TIMES_S)
    def create_bare_pods(self, size: int, timeout_s: int, wait_s: float) -> None:
        self.cluster.workloads.create("bare", size=size, cpus=(1,), timeout_s=timeout_s, is_bare=True)
        self.cluster.pass_time(wait_s)

    @rule(name=st.one_of(JOBS, st.just("bare")), wait_s=TIMES_S)
    def delete_a_workload(self, name: str, wait_s: float) -> None:
        self.cluster.workloads.delete(name)
        self.cluster.pass_time(wait_s)

    @rule(which=st.integers(0, 99), wait_s=TIMES_S)
    def delete_a_pod(self, which: int, wait_s: float) -> None:
        if keys := sorted(self.cluster.server.objects["pods"]):
            self.cluster.server.delete_pod(keys[which % len(keys)])
        self.cluster.pass_time(wait_s)

    # Nodes

    @rule(which=st.integers(0, 99), phase=st.sampled_from(("Succeeded", "Failed")), wait_s=TIMES_S)
    def end_a_pod(self, which: int, phase: str, wait_s: float) -> None:
        running = [one for _, one in sorted(self.cluster.server.objects["pods"].items()) if _runs(one)]
        if running:
            pod = running[which % len(running)]
            pod["status"]["phase"] = phase
            self.cluster.server.put("pods", pod)
        self.cluster.pass_time(wait_s)

    @rule(name=NODES, wait_s=TIMES_S)
    def take_a_node_away(self, name: str, wait_s: float) -> None:
        if name in self.cluster.server.objects["nodes"]:
            self.cluster.server.remove("nodes", name)
        self.cluster.pass_time(wait_s)

    @rule(name=NODES, wait_s=TIMES_S)
    def make_a_node_anew(self, name: str, wait_s: float) -> None:
        """With another uid, under the same name."""
        if name in self.cluster.server.objects["nodes"]:
            self.cluster.server.remove("nodes", name)
        self.cluster.workloads.add_node(name)
        self.cluster.pass_time(wait_s)

    # Faults

    @rule(fates=FATES, wait_s=TIMES_S)
    def let_calls_go_wrong(self, fates: list[Fate], wait_s: float) -> None:
        self.cluster.server.fates.extend(fates)
        self.cluster.pass_time(wait_s)

    @rule(actor=st.sampled_from(ACTORS), for_s=TIMES_S, wait_s=TIMES_S)
    def pause_an_actor(self, actor: str, for_s: float, wait_s: float) -> None:
        self.cluster.workloads.paused_until_s[actor] = self.cluster.now_s + for_s
        self.cluster.pass_time(wait_s)

    @rule(kind=st.sampled_from(KINDS[:3]), for_s=TIMES_S, wait_s=TIMES_S)
    def silence_a_watch(self, kind: str, for_s: float, wait_s: float) -> None:
        self.cluster.silence(kind, for_s)
        self.cluster.pass_time(wait_s)

    @rule(gone=st.booleans(), wait_s=TIMES_S)
    def cut_the_watches(self, gone: bool, wait_s: float) -> None:
        """`gone`: the changes of the past are forgotten too."""
        self.cluster.server.compact() if gone else self.cluster.server.cut_watches()
        self.cluster.pass_time(wait_s)

    @rule(away_s=TIMES_S, wait_s=TIMES_S)
    def restart_the_api_server(self, away_s: float, wait_s: float) -> None:
        self.cluster.server.up = False
        self.cluster.server.cut_watches()
        self.cluster.pass_time(away_s)
        self.cluster.server.up = True
        self.cluster.pass_time(wait_s)

    @rule(wait_s=TIMES_S)
    def end_the_term(self, wait_s: float) -> None:
        if self.cluster.process is not None:
            self.cluster.process.lose_lease()
        self.cluster.pass_time(wait_s)

    @rule(wait_s=TIMES_S)
    def kill_the_process(self, wait_s: float) -> None:
        if self.cluster.process is not None:
            self.cluster.process.kill()
        self.cluster.pass_time(wait_s)

    # What holds

    @invariant()
    def no_promise_is_broken(self) -> None:
        assert not self.broken, self.broken
        process = self.cluster.process
        if process is not None and process.working is not None:
            promises.check_queue(self.cluster, process.working)
            promises.check_counted(self.cluster, process.working)
            promises.check_held(self.cluster, process.working)

    def teardown(self) -> None:
        try:
            if self.cluster.process is not None:
                self._heal()
                self.cluster.pass_time(_LONG_S)
                self.no_promise_is_broken()
                work = self.cluster.process.working
                assert work is not None
                promises.check_end(self.cluster, work)
        finally:
            self.cluster.end()
            self._loop.close()

    def _heal(self) -> None:
        server, workloads = self.cluster.server, self.cluster.workloads
        server.fates.clear()
        server.silent.clear()
        server.wake()
        workloads.paused_until_s.clear()
        for name in ("big-1", "big-2"):
            workloads.add_node(name, cpus=64)


def _runs(pod: dict[str, Any]) -> bool:
    return pod["status"]["phase"] == "Running"


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """No log lines: there are thousands of histories."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heap, "exempt_new", lambda: None)
        yield
    structlog.configure(**before)


TestNeverHalfAGang = pytest.mark.timeout(600)(NeverHalfAGang.TestCase)
NeverHalfAGang.TestCase.settings = settings(
    max_examples=int(os.environ.get("FLUENCE_TEST_MODEL_EXAMPLES", "100")),
    stateful_step_count=30,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
