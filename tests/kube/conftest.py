from collections.abc import AsyncIterator

import pytest

from kube.session import Kube
from tests.support.fake_api import FakeApi, fake_api


@pytest.fixture
async def scripted() -> AsyncIterator[tuple[FakeApi, Kube]]:
    """A scripted API server for one test."""
    async with fake_api() as both:
        yield both
