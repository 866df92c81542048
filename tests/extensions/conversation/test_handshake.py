"""A program that never begins its turn is ended, and the error says what it owed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.runtimes.attempt_harness import BOUND_S, Ended, Harness, off_loop

from subagents.domain.run.run import Exit
from subagents.domain.run.values import replace
from subagents.engine.kernel.system_clock import SystemClock
from subagents.extensions.acp.acp import AcpDialect
from subagents.extensions.claude.claude_code import ClaudeDialect
from subagents.extensions.codex.codex import CodexDialect
from subagents.extensions.conversation.conversation import ConversationRuntime
from subagents.extensions.conversation.dialect import Dialect
from subagents.runtimes.process.shim import ProcessAttempts

MUTE = """#!/bin/sh
[ "$1" = --version ] && echo '9.9.9 (Claude Code)' && exit
exec tail -f /dev/null
"""
STALLS = """#!/bin/sh
read -r asked
echo '{"jsonrpc": "2.0", "id": "initialize", "result": {"protocolVersion": 1}}'
exec tail -f /dev/null
"""
DIES = """#!/bin/sh
[ "$1" = --version ] && echo '9.9.9 (Claude Code)' && exit
kill -9 $$
"""
DIALECTS: list[tuple[Dialect[Any], str]] = [
    (AcpDialect(), "command"),
    (CodexDialect(), "command"),
    (ClaudeDialect(), "program"),
]


def watched_to_its_end(
    tmp_path: Path,
    dialect: Dialect[Any],
    option: str,
    script: str,
    *,
    restarted: bool = False,
    setup: str = "",
) -> Ended:
    program = tmp_path / "program"
    program.write_text(script)
    program.chmod(0o755)
    named = str(program) if option == "program" else [str(program)]
    options: dict[str, object] = {option: named, "handshake_seconds": 0.3}
    with Harness(tmp_path) as harness:

        def new_runtime() -> ConversationRuntime[Any]:
            clock = SystemClock()
            attempts = ProcessAttempts(harness.root, clock, off_loop)
            return ConversationRuntime(dialect, attempts, clock, off_loop, bridge=())

        async def go() -> Ended:
            launch = replace(harness.launch(), prompt="do it", options=options, setup=setup)
            await new_runtime().start(launch)
            if restarted:
                (harness.directory().path / "overdue").write_text("it owed too much")
                await new_runtime().stop(harness.ref(), grace_s=1)
            watching = new_runtime().watch(
                replace(harness.ref(), options=options), cursor=0, positions={}
            )
            async with asyncio.timeout(BOUND_S):
                return Ended([each async for each in watching])

        return asyncio.run(go())


@pytest.mark.requirement("conversation:handshake:bounded")
@pytest.mark.parametrize(
    ("dialect", "option"), DIALECTS, ids=lambda each: getattr(each, "name", "")
)
def test_a_program_that_never_answers_is_ended_and_the_error_names_what_it_owed(
    tmp_path: Path, dialect: Dialect[Any], option: str
) -> None:
    ended = watched_to_its_end(tmp_path, dialect, option, MUTE)

    assert ended.exited.exit == Exit(code=0)
    assert ended.result.is_error
    error = ended.result.error or ""
    assert ("its first event" if option == "program" else "`initialize`") in error
    assert "0.3 s (runtime_options.handshake_seconds)" in error


@pytest.mark.requirement("conversation:handshake:bounded")
def test_each_step_of_a_handshake_has_its_own_time(tmp_path: Path) -> None:
    ended = watched_to_its_end(tmp_path, AcpDialect(), "command", STALLS)

    assert "the answer to `session/new`" in (ended.result.error or "")


@pytest.mark.requirement("conversation:handshake:setup")
def test_a_handshake_is_not_waited_for_before_the_setup_is_over(tmp_path: Path) -> None:
    ended = watched_to_its_end(tmp_path, AcpDialect(), "command", MUTE, setup="sleep 1; exit 7")

    assert ended.exited.exit == Exit(code=7)
    assert "owed" not in (ended.result.error or "")


@pytest.mark.requirement("conversation:handshake:restart")
def test_why_it_was_ended_is_known_to_the_next_daemon(tmp_path: Path) -> None:
    ended = watched_to_its_end(tmp_path, AcpDialect(), "command", MUTE, restarted=True)

    assert (ended.exited.exit, ended.result.error) == (Exit(code=0), "it owed too much")


@pytest.mark.requirement("conversation:end:middle-of-a-turn")
@pytest.mark.parametrize(
    ("dialect", "option"), DIALECTS, ids=lambda each: getattr(each, "name", "")
)
def test_a_program_that_was_killed_before_its_turn_is_not_said_to_have_ended_well(
    tmp_path: Path, dialect: Dialect[Any], option: str
) -> None:
    ended = watched_to_its_end(tmp_path, dialect, option, DIES)

    assert ended.exited.exit == Exit(signal=9)
    assert ended.result.is_error
