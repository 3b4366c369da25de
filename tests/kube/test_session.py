"""Every failure of a request is one kind of error, within its deadline."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from kube import errors
from kube.backoff import Backoff, persist
from kube.credentials import Credentials
from kube.session import Kube
from tests.support.fake_api import FakeApi

Both = tuple[FakeApi, Kube]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.Invalid),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (410, errors.Gone),
        (422, errors.Invalid),
        (429, errors.Busy),
        (500, errors.Busy),
        (503, errors.Busy),
    ],
)
async def test_a_status_becomes_the_error_that_says_what_to_do(
    scripted: Both, status: int, kind: type[errors.ApiError]
) -> None:
    api, kube = scripted
    api.script("GET", "/x", lambda _: web.json_response({"code": status, "message": "told"}, status=status))
    with pytest.raises(kind, match="told"):
        await kube.get("/x")


async def test_an_answer_that_is_no_json_is_told_with_the_request(scripted: Both) -> None:
    """A proxy or a dying server answers with plain text, or with nothing."""
    api, kube = scripted
    api.script("GET", "/x", lambda _: web.Response(status=502))
    with pytest.raises(errors.Busy, match="GET /x was answered with HTTP status 502"):
        await kube.get("/x")


async def test_a_refused_token_is_read_again_and_the_request_repeated_once(scripted: Both) -> None:
    """Case C74: at most one 401 for each rotation, retried with the fresh token."""
    api, kube = scripted
    answers = iter([web.json_response({"code": 401}, status=401), web.json_response({"ok": True})])
    api.script("GET", "/x", lambda _: next(answers))
    assert await kube.get("/x") == b'{"ok": true}'
    assert api.count("GET /x") == 2


async def test_a_server_that_never_answers_is_given_up(scripted: Both) -> None:
    api, kube = scripted
    api.script("GET", "/x", lambda _: asyncio.sleep(3600))
    with pytest.raises(errors.Unreachable, match="GET /x: no answer"):
        await kube.get("/x", timeout_s=0.05)


async def test_a_missing_kubeconfig_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match=r"nowhere does not exist: give the path of one with --kube"):
        await Credentials.find(tmp_path / "nowhere")


async def test_a_broken_kubeconfig_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "config"
    broken.write_text("{ not yaml")
    with pytest.raises(errors.ConfigError, match=f"kubeconfig {broken} cannot be used"):
        await Credentials.find(broken)


async def test_persisting_ends_with_the_last_error_at_the_deadline() -> None:
    clock = 0.0
    tries = 0

    async def sleep(seconds: float) -> None:
        nonlocal clock
        clock += seconds

    async def attempt() -> None:
        nonlocal tries
        tries += 1
        raise errors.Unreachable(f"try {tries}")

    with pytest.raises(errors.Unreachable):
        await persist(
            attempt,
            deadline_s=10,
            backoff=Backoff(1, 4, jitter=lambda: 1.0),
            now_s=lambda: clock,
            sleep=sleep,
        )
    assert (tries, clock) == (4, 7.0)  # after 1, 2 and 4 s; four more would pass the deadline


async def test_what_stays_wrong_is_not_repeated() -> None:
    tries = 0

    async def attempt() -> None:
        nonlocal tries
        tries += 1
        raise errors.Invalid(422, "wrong")

    with pytest.raises(errors.Invalid):
        await persist(attempt, deadline_s=10)
    assert tries == 1
