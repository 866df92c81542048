"""Who was turned away is written down, within bounds, and nobody waits for it."""

import asyncio
import json
import stat
from pathlib import Path

import pytest
from tests.api.calls.refused_calls import events, lines, working
from tests.api.home_daemon import Home, UnixConnection, play, until

from subagents.api.calls import refusals
from subagents.api.calls.refusals import is_refusal
from subagents.domain.run.values import RunId
from subagents.engine.runs.control import REFUSALS_MAX
from subagents.errors import Forbidden, SubagentsError, Unauthorized, UsageError


@pytest.mark.requirement("refusals:bounded")
async def test_a_run_keeps_at_most_fifty_refusals_and_the_file_all(home: Home) -> None:
    run_id = await working(home)
    me = home.worker(run_id)

    def call_many() -> None:
        calling = UnixConnection(home.services.paths.socket)
        for _ in range(60):
            calling.request("POST", "/v1/sweep", b"{}", me)
            assert calling.getresponse().read()
        calling.close()

    await asyncio.to_thread(call_many)
    assert len(await lines(home)) == 60
    assert len(await events(home, run_id)) == REFUSALS_MAX
    assert (await home.services.engine.queries.run(RunId(run_id))).refusals == REFUSALS_MAX


@pytest.mark.requirement("refusals:no-secrets")
async def test_the_file_of_refusals_is_private_and_holds_no_token(home: Home) -> None:
    run_id = (await home.spawn("quick"))["runId"]
    await home.until_phase(run_id, "completed")
    me = home.worker(run_id)
    forged = {"Authorization": f"Bearer sa_r-9_1_{'x' * 43}"}
    for headers in (me, forged):
        assert (await home.call("GET", "/v1/runs?label=secret", None, headers))[0] == 401
    found = await lines(home)
    assert [line["runId"] for line in found] == [run_id, "r-9"]
    text = json.dumps(found)
    # sa_RUN_ATTEMPT_SECRET: the secret itself may have a "_".
    assert me["Authorization"].split("_", 3)[3] not in text
    assert "x" * 43 not in text
    assert "label" not in text
    mode = (await asyncio.to_thread(home.services.refusals.file.stat)).st_mode
    assert stat.S_IMODE(mode) == 0o600


@pytest.mark.requirement("refusals:bounded")
def test_a_large_file_of_refusals_is_moved_aside_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "FILE_BYTES_MAX", 500)

    async def scenario(home: Home) -> None:
        for _ in range(12):
            await home.call("GET", "/v1/runs", None, {"Authorization": "Basic x"})
            await home.services.refusals.flush()
        file = home.services.refusals.file
        old = file.with_name(f"{file.name}.1")
        sizes = [each.stat().st_size for each in (file, old)]
        assert all(0 < size <= 800 for size in sizes), sizes
        assert sorted(each.name for each in file.parent.glob("refusals*")) == [file.name, old.name]

    play(tmp_path, scenario)


@pytest.mark.requirement("refusals:never-in-the-way")
async def test_a_file_that_cannot_be_written_stops_nothing(home: Home) -> None:
    await asyncio.to_thread(home.services.refusals.file.mkdir)
    run_id = await working(home)
    status, _ = await home.call("POST", "/v1/sweep", {}, home.worker(run_id))
    assert status == 403
    assert len(await events(home, run_id)) == 1


@pytest.mark.requirement("refusals:shown")
async def test_diagnostics_show_who_was_turned_away_in_the_last_day(home: Home) -> None:
    assert (await home.ok("GET", "/v1/diagnostics"))["refusals"]["lastDay"] == 0
    for number in range(7):
        await home.call("GET", f"/v1/runs/x{number}", None, {"Authorization": "Basic x"})
    found = (await home.ok("GET", "/v1/diagnostics"))["refusals"]
    assert found["lastDay"] == 7
    assert [each["call"] for each in found["newest"]] == [
        f"GET /v1/runs/x{number}" for number in range(2, 7)
    ]
    assert found["file"] == str(home.services.refusals.file)


@pytest.mark.requirement("refusals:which")
def test_only_who_somebody_is_makes_a_refusal(tmp_path: Path) -> None:
    cases: list[tuple[SubagentsError, bool]] = [
        (Unauthorized("x"), True),
        (Forbidden("x", guardrail="ownership"), True),
        (Forbidden("x", guardrail="role"), True),
        (Forbidden("x", guardrail="depth"), False),
        (UsageError("x"), False),
    ]
    assert [is_refusal(error) for error, _ in cases] == [expected for _, expected in cases]

    async def scenario(home: Home) -> None:
        spec = {"task": "x", "agentId": "shell"}
        agent = {"X-Subagents-Caller": "agent"}
        body = {"spec": spec, "cwd": home.cwd}
        assert (await home.call("POST", "/v1/runs", body, agent))[0] == 403
        await home.services.refusals.flush()
        assert not await asyncio.to_thread(home.services.refusals.file.exists)
        await until(lambda: home.services.refusals._writing is None)

    play(tmp_path, scenario)
