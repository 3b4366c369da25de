"""/healthz, /readyz and /metrics of a process."""

import socket

import aiohttp
import pytest

from fluence.probes import Probes
from groups.errors import FluenceError


async def get(probes: Probes, path: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{probes.port}{path}") as answer,
    ):
        return answer.status, await answer.text()


async def test_a_process_is_alive_at_once_and_ready_when_nothing_is_missing() -> None:
    async with Probes("127.0.0.1", 0) as probes:
        assert await get(probes, "/healthz") == (200, "ok\n")
        assert await get(probes, "/readyz") == (503, "not ready: starting\n")
        probes.not_ready = lambda: ["pods are not listed yet", "nodes are not listed yet"]
        status, text = await get(probes, "/readyz")
        assert (status, text.splitlines()) == (
            503,
            ["not ready: pods are not listed yet", "not ready: nodes are not listed yet"],
        )
        probes.not_ready = list
        assert await get(probes, "/readyz") == (200, "ok\n")
        probes.stop_serving()
        assert (await get(probes, "/readyz"))[0] == 503


async def test_metrics_are_in_the_text_format_of_prometheus() -> None:
    async with Probes("127.0.0.1", 0) as probes:
        status, text = await get(probes, "/metrics")
    assert status == 200
    assert "# TYPE python_info gauge" in text


async def test_a_port_that_is_taken_is_named_with_its_flag() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(FluenceError, match=rf"port {port} on 127\.0\.0\.1 is taken.*--probe-port"):
            await Probes("127.0.0.1", port).__aenter__()


async def test_an_address_of_another_machine_is_named_with_its_flag() -> None:
    with pytest.raises(FluenceError, match=r'"192\.0\.2\.1".*--probe-host'):
        await Probes("192.0.2.1", 0).__aenter__()
