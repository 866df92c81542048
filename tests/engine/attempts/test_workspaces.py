"""What attempts leave besides a result, and worktrees of runs that are no more."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.engine.world import World, in_world

from subagents.domain.run.outcome import (
    OK,
    Outcome,
    Reason,
    Status,
)
from subagents.domain.run.run import Attempt, AttemptSession, AttemptTimes, Phase, RetryCause, Run
from subagents.domain.run.signals import Signal
from subagents.domain.run.spec import Artifact, Contract, Isolation
from subagents.domain.run.values import RunId, SessionKey
from subagents.domain.run.worker_output import LineType
from subagents.domain.run.workspace import Remains
from subagents.domain.text.announcement import announcement_text
from subagents.domain.transcript.transcript_query import LogQuery
from subagents.engine.attempts.workspaces import begins_afresh
from subagents.errors import RuntimeUnavailable, UsageError

TALK: Mapping[str, object] = {"print": "first I look\nthen I write"}


async def spawn(world: World, *script: Mapping[str, object], **spec: object) -> RunId:
    return await world.spawn("talker", settings=world.with_script("talker", *script), **spec)


@pytest.mark.requirement("salvage:last-words:deadline")
async def test_a_run_that_met_its_deadline_keeps_its_last_words_and_the_files_of_its_contract(
    world: World,
) -> None:
    write: Mapping[str, object] = {"write": {"path": "out.txt", "text": "half"}}
    contract = Contract(artifacts=(Artifact(path="out.txt"), Artifact(path="other.txt")))
    run_id = await spawn(
        world, TALK, write, {"hang": True}, run_timeout_seconds=60, verification=contract
    )
    run = await world.until(run_id)

    assert run.outcome is not None
    assert run.outcome.status is Status.TIMEOUT
    assert run.remains.words == "first I look\nthen I write"
    assert run.remains.files == ("out.txt",)
    text = announcement_text(run)
    assert "Last words (it gave no result):\n```\nfirst I look\nthen I write\n```" in text
    assert "Files left: out.txt" in text
    assert await world.folded(run_id) == run


@pytest.mark.requirement("salvage:last-words:every-end")
async def test_an_end_is_what_it_was_where_nobody_can_look_at_what_is_left(world: World) -> None:
    async def gone(_run: Run, _paths: Sequence[str]) -> tuple[str, ...]:
        raise RuntimeUnavailable("its node is over")

    world.engine.workplace.existing = gone  # type: ignore[method-assign, assignment]
    contract = Contract(artifacts=(Artifact(path="out.txt"),))
    run = await world.until(await spawn(world, TALK, {"exit": 1}, verification=contract))

    assert run.outcome is not None
    assert (run.outcome.status, run.outcome.reason) == (Status.ERROR, Reason.EXIT_CODE)


@pytest.mark.requirement("salvage:last-words:every-end")
@pytest.mark.parametrize("how", ["cancel", "error", "signal", "lost", "api"])
async def test_last_words_are_kept_whatever_ended_the_run(world: World, how: str) -> None:
    ends: Mapping[str, tuple[Mapping[str, object], ...]] = {
        "error": ({"exit": 1},),
        "signal": ({"signal": 9},),
        "api": ({"error": "500"}, {"exit": 0}),
    }
    run_id = await spawn(world, TALK, *ends.get(how, ({"hang": True},)))
    if how == "cancel":
        await world.until(run_id, Phase.RUNNING)
        await world.clock.advance(1)
        await world.clock.result(world.engine.control.cancel(run_id, by="me"))
    elif how == "lost":
        await world.until(run_id, Phase.RUNNING)
        await world.clock.advance(1)
        await world.restart(reboot=True)
    run = await world.until(run_id)
    assert run.outcome is not None
    assert run.outcome.status is not Status.OK
    assert run.remains.words == "first I look\nthen I write"


@pytest.mark.requirement("salvage:last-words:only-without-result")
async def test_a_run_with_a_result_has_no_last_words_besides(world: World) -> None:
    run_id = await spawn(world, TALK, {"result": "half of it"}, {"exit": 1})
    run = await world.until(run_id)
    assert (run.result, run.remains.words) == ("half of it", None)
    assert "Last words" not in announcement_text(run)


@pytest.mark.requirement("salvage:last-words:silent")
async def test_of_a_worker_that_said_nothing_nothing_is_written_and_its_log_still_reads(
    world: World, tmp_path: Path
) -> None:
    run = await world.until(await spawn(world, {"exit": 1}))
    assert run.remains.words is None
    assert not (tmp_path / "transcripts").exists()
    page = await world.engine.recorder.read(run, LogQuery(limit=10))
    assert [line.type for line in page.lines][:1] == [LineType.USER]


@pytest.mark.requirement("salvage:last-words:bounded", "salvage:last-words:redacted")
async def test_last_words_are_the_end_of_what_was_said_and_hold_no_secret(world: World) -> None:
    secret = "sk-ant-api03-" + "a1B2" * 20
    lines: Mapping[str, object] = {
        "print": "\n".join(f"line {number} {'x' * 200}" for number in range(100))
    }
    run_id = await spawn(world, lines, {"print": f"key {secret}"}, {"exit": 1})
    run = await world.until(run_id)
    words = run.remains.words or ""
    assert len(words) <= 4_001
    assert "line 99" in words
    assert "line 10 " not in words
    assert "[redacted]" in words
    assert secret not in words


def an_attempt(
    number: int, outcome: Outcome | None = None, *, verifies: bool = False, resumes: str = ""
) -> Attempt:
    key = SessionKey("agent:x:subagent:y")
    return Attempt(
        number=number,
        session=AttemptSession(key=key, resumes=resumes or None),
        times=AttemptTimes(requested_at_ms=0),
        retry=RetryCause(verifies=verifies),
        outcome=outcome,
    )


@pytest.mark.requirement("worktree:retry:which-begin-afresh")
def test_only_a_retry_of_a_failed_attempt_begins_afresh() -> None:
    failed = Outcome(status=Status.ERROR, reason=Reason.EXIT_CODE, error="x")
    limited = Outcome(status=Status.ERROR, reason=Reason.PROVIDER_LIMIT, error="429")
    first = an_attempt(1, failed)
    assert not begins_afresh((first,))
    assert begins_afresh((first, an_attempt(2)))
    assert not begins_afresh((first, an_attempt(2, verifies=True)))
    assert not begins_afresh((an_attempt(1, limited), an_attempt(2)))
    assert not begins_afresh((an_attempt(1, limited), an_attempt(2, resumes="s")))


@pytest.mark.requirement("isolation:unavailable")
async def test_an_engine_without_worktrees_refuses_them(world: World) -> None:
    with pytest.raises(UsageError, match="not available here"):
        await world.try_spawn(isolation=Isolation.WORKTREE)


@pytest.mark.requirement("salvage:crash-while-looking")
def test_a_crash_while_it_is_looked_what_an_attempt_left_does_not_lose_its_end(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        is_looking = asyncio.Event()

        async def slow(run: Run, seen: Signal) -> Remains | None:
            is_looking.set()
            await asyncio.get_running_loop().create_future()
            return None

        world.engine.supervisor._remains = slow
        run_id = await world.spawn("quick")
        await world.clock.until(is_looking.is_set)
        await world.clock.advance(world.settings.daemon.lease_seconds)
        assert (await world.run(run_id)).phase is Phase.RUNNING
        await world.restart()
        run = await world.until(run_id)
        assert (run.outcome, run.result) == (OK, "done")

    in_world(tmp_path, scenario)
