"""The controller's picture of the cluster is that of the last change of each object, and nothing more."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from controller.cache import REFRESH_S, GroupCache
from controller.lookup import OwnerLookup
from controller.objects import BuiltInWorkload
from controller.owners import Workload, read_workload
from controller.pods import Pod
from groups.objects import Key, ObjectMeta, OwnerReference
from groups.podgroup import PodGroup
from groups.workloads.rules import builtin_rules
from kube.reflector import Collection, Reflector
from tests.controller.builders import KEY, NOW, made, pod, reference


class Feed(Reflector[Any]):
    """A reflector that is told what to show."""

    def __init__(self, kind: type[Any]) -> None:
        super().__init__(None, Collection("/nowhere"), kind)  # type: ignore[arg-type] # it never asks

    def show(self, item: Any) -> None:
        self._put(item.metadata.key, item)

    def hide(self, key: Key) -> None:
        self._remove(key)


class Sight:
    """A cache, its feeds, and the keys that it named."""

    def __init__(self) -> None:
        self.pods, self.groups = Feed(Pod), Feed(PodGroup)
        self.looked_at: list[tuple[Key, float]] = []
        self.strays: list[Key] = []
        rules = builtin_rules()
        self.lookup = OwnerLookup(None, rules, self._owner_changed)  # type: ignore[arg-type] # never asks
        self.cache = GroupCache(
            "fluence",
            rules,
            pods=self.pods,
            groups=self.groups,
            lookup=self.lookup,
            on_group=lambda key, delay_s: self.looked_at.append((key, delay_s)),
            on_pod=self.strays.append,
            utc_now=lambda: NOW,
        )

    def _owner_changed(self, uid: str) -> None:
        self.cache.owner_changed(uid)

    def jobs(self) -> Reflector[Workload]:
        return next(one for one in self.lookup.reflectors if one.collection.path == "/apis/batch/v1/jobs")

    def fresh(self) -> list[tuple[Key, float]]:
        """What was named since the last call."""
        named, self.looked_at = self.looked_at, []
        return named


NAMES = st.sampled_from(["a", "b", "c"])
GROUPS = st.sampled_from(["g", "h", None])
OWNERS = st.sampled_from([reference("Workflow", "one"), reference("Workflow", "two"), None])


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("show"), NAMES, GROUPS, OWNERS, st.sampled_from(["Pending", "Running"])),
            st.tuples(st.just("hide"), NAMES),
        )
    )
)
def test_members_are_those_of_the_last_change_of_each_pod(events: list[tuple[Any, ...]]) -> None:
    """Case C46: whatever came before; and nothing is kept of what is gone (case C63)."""
    sight = Sight()
    there: dict[str, Pod] = {}
    for kind, name, *more in events:
        if kind == "show":
            group, owner, phase = more
            there[name] = pod(name, phase, group=group, owner=owner, size="2")
            sight.pods.show(there[name])
        else:
            there.pop(name, None)
            sight.pods.hide(Key(f"ns/{name}"))

    async def members_of(key: str) -> set[str]:
        state = await sight.cache.state(Key(key))
        return {f"{one.pod.metadata.name} {one.pod.phase}" for one in state.labelled}

    for group in ("g", "h"):
        expected = {
            f"{name} {one.phase}"
            for name, one in there.items()
            if (one.metadata.labels or {}).get("scheduling.x-k8s.io/pod-group") == group
        }
        assert asyncio.run(members_of(f"ns/{group}")) == expected
    for name in list(there):
        sight.pods.hide(Key(f"ns/{name}"))
    assert sight.cache.group_keys() == []
    assert not len(sight.cache._links)
    assert not sight.cache._joined


def test_a_new_group_is_looked_at_at_once_and_a_known_one_a_moment_later() -> None:
    """A gang waits for its PodGroup; counts may wait for more of their kind."""
    sight = Sight()
    sight.pods.show(pod("a"))
    assert sight.fresh() == [(KEY, 0.0)]
    sight.groups.show(made())
    sight.fresh()
    sight.pods.show(pod("a", "Running"))
    assert sight.fresh() == [(KEY, REFRESH_S)]


def test_changes_that_change_no_plan_wake_nobody() -> None:
    """A pod that gets a condition is still Pending; a pod that is bound may leave the run, or start it."""
    sight = Sight()
    sight.pods.show(pod("a"))
    sight.groups.show(made())
    sight.fresh()
    meta = msgspec.structs.replace(pod("a").metadata, resource_version="2")
    sight.pods.show(msgspec.structs.replace(pod("a"), metadata=meta))
    assert sight.fresh() == []
    sight.pods.show(pod("a", node="n"))
    assert sight.fresh() == [(KEY, REFRESH_S)]


def test_our_own_write_wakes_nobody_when_it_comes_back() -> None:
    """Else every write would be followed by one more look."""

    async def run() -> None:
        sight = Sight()
        sight.pods.show(pod("a"))
        sight.fresh()
        sight.cache.remember(made())
        assert sight.cache.group(KEY) == made()
        sight.groups.show(made())
        assert sight.fresh() == []

    asyncio.run(run())


def test_what_we_wrote_counts_until_the_watch_has_shown_it() -> None:
    """A watch may lag behind; to decide on an old copy would write everything twice."""

    async def run() -> None:
        sight = Sight()
        old = made()
        sight.groups.show(old)
        ours, middle, later = (_at_version(old, version) for version in ("9", "5", "12"))
        sight.cache.remember(ours)
        sight.groups.show(middle)
        assert sight.cache.group(KEY) is ours
        sight.groups.show(later)
        assert sight.cache.group(KEY) is later
        sight.groups.hide(KEY)
        assert sight.cache.group(KEY) is None

    asyncio.run(run())


def test_pods_of_other_schedulers_are_no_members() -> None:
    """Case C30: the server filters them already; this is the second lock."""
    sight = Sight()
    one = msgspec.structs.replace(pod("a"), scheduler_name="volcano")
    sight.pods.show(one)
    assert sight.fresh() == []
    assert sight.cache.group_keys() == []


def test_unlabelled_pods_are_named() -> None:
    """Rule A8."""
    sight = Sight()
    sight.pods.show(pod("a", group=None))
    assert sight.strays == ["ns/a"]
    assert sight.cache.unlabelled() == ["ns/a"]


def test_a_change_of_an_owner_wakes_the_groups_behind_it() -> None:
    """Rule A6: a Job that is complete makes no more pods."""
    sight = Sight()
    owner = OwnerReference("Job", "train", "uid-train", "batch/v1", controller=True)
    sight.pods.show(pod("a", owner=owner))
    sight.groups.show(made(owner_references=(owner,)))
    sight.fresh()
    jobs = sight.jobs()
    jobs._put(Key("ns/train"), _job("1"))
    assert sight.fresh() == [(KEY, REFRESH_S)]
    jobs._put(Key("ns/train"), _job("2"))
    assert sight.fresh() == []
    jobs._put(Key("ns/train"), _job("3", succeeded=3))
    assert sight.fresh() == [(KEY, REFRESH_S)]
    jobs._remove(Key("ns/train"))
    assert sight.fresh() == [(KEY, REFRESH_S)]


def _at_version(group: PodGroup, version: str) -> PodGroup:
    meta = msgspec.structs.replace(group.metadata, resource_version=version)
    return msgspec.structs.replace(group, metadata=meta)


def _job(version: str, **status: Any) -> Workload:
    meta = ObjectMeta("train", "ns", "uid-train", version)
    raw = {"metadata": msgspec.to_builtins(meta), "spec": {"completions": 3}, "status": status}
    rule = builtin_rules().of_kind("batch", "Job")
    assert rule is not None
    return read_workload(rule, msgspec.convert(raw, BuiltInWorkload))
