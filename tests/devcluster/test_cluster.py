"""A real control plane that starts quickly and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psutil
import pytest

from devcluster import ports
from devcluster.api import Api
from devcluster.cluster import RunningCluster
from tests.devcluster.conftest import CommandLine
from tests.support.world import World, world_in

# One worker for all of them: they share a cluster, which is not the one of the other tests.
pytestmark = pytest.mark.xdist_group("devcluster")


def until(condition: Callable[[], bool], deadline_s: float = 30.0) -> bool:
    end_s = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.02)
    return True


def pids_of(cluster: RunningCluster) -> list[int]:
    return [row["pid"] for row in cluster.status()]


def gone(pids: list[int]) -> bool:
    return not any(psutil.pid_exists(pid) for pid in pids)


def ports_of(cluster: RunningCluster) -> list[int]:
    return [int(row["ready_url"].split(":")[2].split("/")[0]) for row in cluster.status()]


async def test_a_job_runs_to_its_end_on_fake_nodes(one: RunningCluster) -> None:
    """The default scheduler binds its pods, and the pod of a Job succeeds after a second."""
    async with world_in(one) as world:
        await world.node("a")
        await world.create(world.job("ordinary", 3, 3, scheduler=None))

        async def complete() -> bool:
            status = (await world.get("Job", "ordinary"))["status"]
            return bool(status.get("succeeded") == 3)

        await world.wait_for(complete, what="the Job completes")
        pods = await world.pods()
        assert {pod["spec"]["nodeName"] for pod in pods} == {world.node_name("a")}
        assert {pod["status"]["phase"] for pod in pods} == {"Succeeded"}


async def phases(world: World) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in await world.pods()}


async def test_annotations_say_how_long_a_pod_runs_and_how_it_ends(one: RunningCluster) -> None:
    """A bare pod runs for ever; with `devcluster-run` it succeeds; with both it ends as told."""
    async with world_in(one) as world:
        await world.node("a")
        await world.create(
            world.pod("plain", scheduler=None),
            world.pod("short", scheduler=None, run="100ms"),
            world.pod("bad", scheduler=None, run="100ms", outcome="fail"),
            world.job("endless", scheduler=None, run="100ms", outcome="never"),
        )
        wanted = {"plain": "Running", "short": "Succeeded", "bad": "Failed"}

        async def as_told() -> bool:
            found = await phases(world)
            endless = [phase for name, phase in found.items() if name.startswith("endless")]
            return endless == ["Running"] and wanted.items() <= found.items()

        await world.wait_for(as_told, what=f"the pods are {wanted}")
        bad = await world.get("Pod", "bad")
        assert bad["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 1

        await world.finish("plain")

        async def finished() -> bool:
            return (await phases(world))["plain"] == "Succeeded"

        await world.wait_for(finished, what="the pod ends when its annotation is added")


async def test_status_writes_of_the_kubelet_keep_the_condition_of_the_scheduler(one: RunningCluster) -> None:
    async with world_in(one) as world:
        await world.node("a")
        await world.create(world.pod("p", scheduler=None, run="0s"))

        async def over() -> bool:
            return (await phases(world))["p"] == "Succeeded"

        await world.wait_for(over)
        condition = await world.condition("p", "PodScheduled")
        assert condition is not None
        assert condition["status"] == "True"


async def test_a_node_is_ready_when_the_test_says_so(one: RunningCluster) -> None:
    async with world_in(one) as world:
        await world.node("a", ready=False)
        await world.create(world.pod("p", scheduler=None))
        await world.wait_for(lambda: world.condition("p"), what="the scheduler has tried it")
        assert (await world.get("Pod", "p"))["spec"].get("nodeName") is None

        await world.set_ready("a", True)

        async def running() -> bool:
            return (await phases(world))["p"] == "Running"

        await world.wait_for(running, what="the pod runs once the node is ready")


async def test_a_pod_that_is_bound_while_its_node_is_created_runs(one: RunningCluster) -> None:
    """A fake kubelet also finds pods that were bound before it started (options in stages.yaml)."""
    async with world_in(one) as world:

        async def born_with_pods(number: int) -> None:
            node = await world.add_node(f"n{number}")
            for pod in range(4):
                await world.create(world.pod(f"p{number}-{pod}", scheduler=None, nodeName=node))

        for first in range(0, 160, 8):
            await asyncio.gather(*map(born_with_pods, range(first, first + 8)))

        async def all_run() -> bool:
            found = await phases(world)
            return len(found) == 640 and set(found.values()) == {"Running"}

        await world.wait_for(all_run, what="every pod runs")


async def test_a_deleted_pod_disappears(one: RunningCluster) -> None:
    """The fake kubelet confirms the end, as a real one does."""
    async with world_in(one) as world:
        await world.node("a")
        await world.create(world.pod("p", scheduler=None, terminationGracePeriodSeconds=30))

        async def running() -> bool:
            return (await phases(world))["p"] == "Running"

        await world.wait_for(running)
        await world.delete("Pod", "p")
        await world.until_gone("Pod", "p")


async def test_a_history_records_bindings_in_order(one: RunningCluster) -> None:
    async with world_in(one) as world:
        await world.node("a")
        async with world.history() as history:
            await world.create(world.pod("p", group="g", scheduler=None))
            await world.until_bound("g", 1)

            async def told() -> bool:
                return history.bound_of("g") == ["p"]

            await world.wait_for(told)
        assert history.groups_in_order() == ["g"]


async def test_a_wait_that_fails_shows_the_state_of_the_namespace(one: RunningCluster) -> None:
    async with world_in(one) as world:
        await world.create(world.pod("lonely", group="g", scheduler="nobody"))
        with pytest.raises(AssertionError, match="1 members of g are bound") as failure:
            await world.until_bound("g", 1, deadline_s=0)
        assert "pod lonely node=None Pending scheduler=nobody group=g" in str(failure.value)


async def test_the_api_server_can_be_stopped_and_started_again(one: RunningCluster) -> None:
    """For tests of outages: the same address, the same data."""
    server = one.process("kube-apiserver")
    before = server.pid
    server.stop()
    assert server.state == "stopped"
    server.start()
    assert server.pid != before
    async with Api(one.kubeconfig) as api:
        assert len(await api.items("/api/v1/nodes", labelSelector="!devcluster/test")) == 2


def test_a_killed_process_stays_down_until_it_is_started(
    devcluster: CommandLine, one: RunningCluster
) -> None:
    scheduler = one.process("kube-scheduler")
    before = scheduler.pid
    assert devcluster("kill", "kube-scheduler", "--name", "one").returncode == 0
    assert scheduler.state == "stopped"
    assert devcluster("start", "kube-scheduler", "--name", "one").returncode == 0
    assert scheduler.pid not in (None, before)
    # With other arguments for this run only, as benchmarks need it.
    scheduler.stop()
    scheduler.start("--v=3", environment={"SOME": "thing"})
    assert "--v=3" in psutil.Process(scheduler.pid).cmdline()
    scheduler.restart()
    assert "--v=3" not in psutil.Process(scheduler.pid).cmdline()


def test_status_and_logs_show_what_runs(devcluster: CommandLine, one: RunningCluster) -> None:
    status = devcluster("status").stdout
    assert status.startswith("one: Kubernetes 1.37, https://127.0.0.1:")
    for row in one.status():
        assert f"{row['name']} " in status
        assert str(row["pid"]) in status
    assert "kube-apiserver" in devcluster("logs", "--name", "one").stdout
    assert "Starting" in devcluster("logs", "kube-scheduler", "--name", "one").stdout


def test_every_process_listens_on_loopback_only(one: RunningCluster) -> None:
    for row in one.status():
        listening = [
            connection.laddr.ip
            for connection in psutil.Process(row["pid"]).net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        assert set(listening) == {"127.0.0.1"}, row["name"]


def test_two_clusters_run_side_by_side_and_one_ends_with_its_owner(
    devcluster: CommandLine, one: RunningCluster
) -> None:
    """Killing the owner (kill -9: it cannot clean up) ends its cluster and no other."""
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        two = devcluster.up("two", "--owner-pid", str(owner.pid))
        pids, listening = pids_of(two), ports_of(two)
        assert not set(listening) & set(ports_of(one))
        assert len(two.kubectl("get", "nodes", "-o", "name").split()) == 2
    finally:
        owner.kill()
        owner.communicate()
    assert until(lambda: gone(pids))
    assert until(lambda: not two.folder.path.exists())
    assert all(map(ports.is_free, listening))
    assert one.kubectl("get", "--raw", "/readyz") == "ok"


def test_all_processes_end_with_the_supervisor_and_down_removes_everything(devcluster: CommandLine) -> None:
    """Even kill -9 of the supervisor ends every process, and its folder is recognised as left behind."""
    three = devcluster.up("three")
    pids = pids_of(three)
    supervisor = psutil.Process(pids[0]).ppid()
    os.kill(supervisor, signal.SIGKILL)
    assert until(lambda: gone([supervisor, *pids]))
    assert "three" not in devcluster("status").stdout
    assert "is up" in devcluster("restart", "etcd", "--name", "three").stderr

    again = devcluster("up", "--no-fluence", "--nodes", "0", "--name", "three")
    assert again.returncode == 0
    assert 'a dead cluster called "three"' in again.stderr
    pids, listening = pids_of(three), ports_of(three)
    down = devcluster("down", "--name", "three")
    assert down.returncode == 0
    assert gone(pids)
    assert all(map(ports.is_free, listening))
    assert not three.folder.path.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["up", "--kubernetes", "1.20"], 'Kubernetes "1.20" is not known', id="unknown version"),
        pytest.param(["up", "--name", "Big_One"], '"Big_One" is not a cluster name', id="bad name"),
        pytest.param(["up", "--cpu", "many"], '--cpu "many" is not a quantity', id="bad quantity"),
        pytest.param(["up", "--nodes", "-1"], "--nodes -1", id="negative count"),
        pytest.param(["up", "--owner-pid", "99999999"], "--owner-pid 99999999: there is no", id="no owner"),
        pytest.param(["up", "--name", "one"], 'a cluster called "one" is up already', id="name taken"),
        pytest.param(["down", "--name", "none"], 'no cluster called "none" is up', id="no such cluster"),
        pytest.param(["logs", "--name", "none"], 'no cluster called "none" is up', id="no logs"),
        pytest.param(["logs", "etc", "--name", "one"], 'no log of "etc": there are those of etcd', id="log"),
        pytest.param(["stop", "etc", "--name", "one"], '"etc" is no process of this', id="no such process"),
        pytest.param(["kill", "etcd", "--name", "one", "-s", "X"], '"X" is not a signal', id="bad signal"),
    ],
)
def test_a_mistake_is_answered_with_one_sentence(
    devcluster: CommandLine, one: RunningCluster, arguments: list[str], sentence: str
) -> None:
    done = devcluster(*arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("devcluster: ")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_help_names_every_option(devcluster: CommandLine) -> None:
    said = devcluster("up", "--help").stdout
    for option in ("--nodes", "--cpu", "--memory", "--kubernetes", "--native-gangs", "--no-fluence"):
        assert option in said
