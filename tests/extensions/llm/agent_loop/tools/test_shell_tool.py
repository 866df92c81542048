"""Running command lines: their environment, their end and their output."""

import asyncio
from pathlib import Path

import pytest
from tests.extensions.llm.agent_loop.tool_calls import BOUND_S
from tests.live_processes import carrying

from subagents.extensions.llm.agent_loop.tools.shell_tool import (
    HEAD_BYTES,
    MARK,
    TAIL_BYTES,
    Ran,
    Shell,
)


def ran(work: Path, command: str, *, timeout_s: float = BOUND_S) -> Ran:
    """One command, with all that it left behind ended."""

    async def run() -> Ran:
        shell = Shell(str(work), ["PLANTED_KEY"])
        try:
            return await shell.run(command, timeout_s=timeout_s)
        finally:
            await shell.end_leftovers()

    return asyncio.run(run())


@pytest.mark.requirement("llm:tools:shell")
def test_a_command_runs_in_the_working_directory_with_its_exit_code(work: Path) -> None:
    found = ran(work, "pwd; cat; echo bad >&2; exit 3")
    assert found == Ran(f"{work}\nbad\n", 3)


@pytest.mark.requirement("llm:tools:shell:key")
def test_a_command_does_not_get_the_key_of_the_provider(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_KEY", "sk-planted")
    assert "sk-planted" not in ran(work, "env").output


@pytest.mark.requirement("llm:tools:shell:cut")
def test_of_a_long_output_the_beginning_and_the_end_are_kept(work: Path) -> None:
    found = ran(work, "echo first; yes | head -c 3000000; echo last")
    assert found.output.startswith("first\n")
    assert found.output.endswith("last\n")
    assert "bytes left out" in found.output
    assert len(found.output) < HEAD_BYTES + TAIL_BYTES + 100


@pytest.mark.requirement("llm:tools:shell:killed")
def test_a_command_over_its_time_is_killed_with_children_in_sessions_of_their_own(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_TEST", str(work))
    for timeout_s in (0.5, 5, 50):  # a busy machine takes its time to begin
        command = "setsid sleep 300 & echo on; trap '' TERM; sleep 300"
        found = ran(work, command, timeout_s=timeout_s)
        if found.output:
            break
    assert "killed: it ran longer" in (found.note or "")
    assert found.output == "on\n"
    assert carrying("LLM_TEST", str(work)) == []


@pytest.mark.requirement("llm:tools:shell:background")
def test_what_a_command_leaves_in_the_background_does_not_hold_it_up_and_ends_with_the_turn(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_TEST", str(work))
    found = ran(work, "nohup sleep 300 & echo on")
    assert (found.exit_code, found.output) == (0, "on\n")
    assert "background" in (found.note or "")
    assert carrying("LLM_TEST", str(work)) == []


@pytest.mark.requirement("llm:tools:shell:killed")
def test_cancelling_a_command_kills_it(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_TEST", str(work))

    async def run() -> None:
        task = asyncio.create_task(
            Shell(str(work), ()).run("touch up; sleep 300 & sleep 300", timeout_s=BOUND_S)
        )
        async with asyncio.timeout(BOUND_S):
            while not (work / "up").exists():  # noqa: ASYNC110  another process makes it
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task], timeout=BOUND_S)
        assert task.cancelled()

    asyncio.run(run())
    assert carrying("LLM_TEST", str(work)) == []
    assert MARK == "SUBAGENTS_SHELL"
