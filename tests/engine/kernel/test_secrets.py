"""Secrets of workers and programs end where events are taken in, whoever brings them."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.engine.world import ME, World, settings_of
from tests.planted import SECRETS, SHOWN, found_in

from subagents.config.settings import Agent, Settings
from subagents.domain.run.run import SETTLED, Phase, Progress

EVERY = "\n".join(SHOWN.values())


def everything(directory: Path) -> str:
    """The database as it is, its log, and every other file."""
    files = [each for each in directory.rglob("*") if each.is_file()]
    return "".join(each.read_bytes().decode("utf-8", "replace") for each in files).replace(
        "\\n", "\n"
    )


def with_agent(**agent: Any) -> Settings:
    settings = settings_of()
    return Settings(defaults=settings.defaults, agents={"x": Agent(runtime="scripted", **agent)})


@pytest.mark.requirement("redact:at-the-ledger")
async def test_why_a_worker_could_not_start_is_told_without_the_secret(world: World) -> None:
    settings = with_agent(script=({"fail_start": "no login with " + SHOWN["github"]},))
    run_id = await world.spawn("x", settings=settings)
    run = await world.until(run_id, *SETTLED)

    assert run.outcome is not None
    assert run.outcome.error is not None
    assert "no login with remote: [redacted]" in run.outcome.error
    rows = await world.engine.mailbox.offer_inbox(ME, reader="me")
    assert "[redacted]" in rows[0].message.text
    with closing(sqlite3.connect(world.path)) as database:
        (events,) = database.execute(
            "SELECT group_concat(CAST(data AS TEXT)) FROM journal WHERE seq > 1"
        ).fetchone()
    # Its own configuration is in the first event, with which it is started again.
    assert "AttemptStartFailed" in events
    assert SECRETS["github"] not in events


@pytest.mark.requirement("redact:at-the-ledger")
async def test_progress_in_its_own_file_is_clean_before_the_event_is(
    world: World, tmp_path: Path
) -> None:
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    said = Progress(phase=EVERY, metrics={"key": SHOWN["aws"]})
    taken = await world.clock.result(world.engine.reports.progress(run_id, said))

    assert taken.stored
    (line,) = await world.clock.result(world.engine.reports.progress_of(run_id))
    assert found_in(line.phase) == []
    assert line.metrics == {"key": "[redacted]"}
    assert found_in(everything(tmp_path)) == []


@pytest.mark.requirement("redact:at-the-ledger")
async def test_a_question_with_a_secret_asked_again_is_the_question_that_stands(
    world: World, tmp_path: Path
) -> None:
    run_id = await world.spawn("hang")
    await world.until(run_id, Phase.RUNNING)
    first = await world.clock.result(
        world.engine.questions.ask(run_id, EVERY, options=(EVERY, "b"))
    )
    again = await world.clock.result(
        world.engine.questions.ask(run_id, EVERY, options=(EVERY, "b"))
    )

    assert again.id == first.id
    assert found_in(first.question) == []
    assert found_in(everything(tmp_path)) == []
