"""Fixtures for every test: the shared cluster, and a namespace of it.

Tests that need no cluster start none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from devcluster.cluster import RunningCluster
from devcluster.spec import ClusterSpec
from tests.support import cluster as clusters
from tests.support.world import World, world_in


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    if not _is_worker(config):
        clusters.this_is_the_main_process()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not _is_worker(config):
        clusters.end()


@pytest.fixture(scope="session")
def cluster() -> RunningCluster:
    """A cluster with Fluence, shared by all tests: do not stop its processes."""
    return clusters.shared()


@pytest.fixture
async def world(cluster: RunningCluster) -> AsyncIterator[World]:
    """A fresh namespace of the shared cluster, and nodes for this test alone."""
    async with world_in(cluster) as world:
        yield world


@pytest.fixture
def namespace(world: World) -> str:
    """The name of the test's fresh namespace."""
    return world.namespace


@pytest.fixture(scope="module")
def own_cluster(request: pytest.FixtureRequest) -> Iterator[RunningCluster]:
    """A cluster with Fluence for the tests of one module, which may stop and kill its processes.

    Mark such a module `pytestmark = pytest.mark.xdist_group("a name")`; otherwise every worker starts one.
    """
    name = request.module.__name__.rpartition(".")[2].removeprefix("test_").replace("_", "-")[:12].strip("-")
    with clusters.start(ClusterSpec(name=clusters.own_name(name), nodes=1)) as cluster:
        yield cluster


@pytest.fixture
async def own_world(own_cluster: RunningCluster) -> AsyncIterator[World]:
    """A fresh namespace of the module's own cluster."""
    async with world_in(own_cluster) as world:
        yield world
