"""The real Claude Code as a caller: its model follows a script, everything else is real.

Workers are shell commands, the daemon is a process of its own, and the tools come over the stdio
bridge that Claude Code starts.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.bubblewrap import NO_SANDBOX
from tests.e2e.claude_place import BOUND_S, PLUGIN_TOOLS, TOOLS, ClaudePlace, program
from tests.e2e.live_home import LiveHome, live_home, until
from tests.e2e.scripted_model import Conversation, Say, Script, ScriptedModel, Turn, Use

from subagents.client.client import Client
from subagents.domain.run.events import AnnouncementConsumed
from subagents.extensions.install.mcp_install import plugin_dir

pytestmark = [
    pytest.mark.skipif(program() is None, reason="claude-agent-sdk is not installed"),
    pytest.mark.timeout(90),
]
RUN: Final = r'"runId":"(r-[a-z0-9]+)"'


@contextmanager
def place(root: Path, scripts: dict[str, Script], *, started: bool = True) -> Iterator[ClaudePlace]:
    with live_home(root, started=started) as home, ScriptedModel(scripts) as model:
        yield ClaudePlace(home, model, waits_for_servers=started)


def spawn(task: str, label: str) -> Use:
    if NO_SANDBOX is not None:
        pytest.skip(
            f"Claude Code that may only read spawns nobody who is not kept to it: {NO_SANDBOX}"
        )
    return Use("sessions_spawn", {"task": task, "agentId": "sh", "label": label})


def wait_for_all(conversation: Conversation) -> Turn:
    runs = conversation.found(RUN)
    return Use("sessions_wait", {"runIds": runs, "until": "all", "timeoutSeconds": 20})


def says_what_it_read(place: Sequence[ClaudePlace]) -> Callable[[Conversation], Turn]:
    """A model thinks for a second at least before it speaks; an answer counts as read then."""

    def turn(seen: Conversation) -> Turn:
        until(lambda: not unread(place[0]), what="the answer is read")
        return Say(f"got {seen.results[-1]}")

    return turn


def spawned(place: ClaudePlace) -> list[str]:
    """The ids of all runs, oldest first."""
    rows = place.home.get("/v1/runs", requester=place.session_key)["runs"]
    return [str(row["runId"]) for row in reversed(rows)]


def consumed(home: LiveHome, run_id: str) -> int:
    return len(home.events(run_id, AnnouncementConsumed))


def unread(place: ClaudePlace) -> list[str]:
    with Client(place.home.paths.socket, session=place.session_key) as client:
        rows = client.get("/v1/inbox")["messages"]
    assert isinstance(rows, list)
    return [str(row["id"]) for row in rows]


# -- spawn and wait -------------------------------------------------------------------------------


@pytest.mark.requirement("claude:two-workers-one-answer", "claude:plugin-tools")
@pytest.mark.parametrize("plugin", [False, True], ids=["server", "plugin"])
def test_two_workers_results_come_in_one_answer(tmp_path: Path, *, plugin: bool) -> None:
    places: list[ClaudePlace] = []
    script: Script = [
        (spawn("echo the first", "one"), spawn("echo the second", "two")),
        wait_for_all,
        says_what_it_read(places),
    ]
    with place(tmp_path, {"delegate": script}) as claude:
        places.append(claude)
        ended = claude.run("script:delegate", plugin=plugin)

        assert ended.code == 0, ended.err
        answer = json.loads(ended.result.removeprefix("got "))
        assert [each["result"] for each in answer["completed"]] == ["the first", "the second"]
        assert answer["pending"] == answer["errors"] == []
        assert [consumed(claude.home, run) for run in spawned(claude)] == [1, 1]
        prefix = PLUGIN_TOOLS if plugin else TOOLS
        names = {name for name in claude.model.conversations[0].tools if "subagents" in name}
        assert {f"{prefix}__sessions_spawn", f"{prefix}__sessions_wait"} <= names
        assert all(name.startswith(prefix) for name in names)


# -- the end of a turn ----------------------------------------------------------------------------


def ends_its_turn_after(place: Sequence[ClaudePlace]) -> Callable[[Conversation], Turn]:
    """The model's last words come when the worker has ended, and nobody waited for it."""

    def turn(seen: Conversation) -> Turn:
        (run,) = seen.found(RUN)
        until(lambda: place[0].home.row(run)["outcome"], what=f"{run} has ended")
        return Say("that is all")

    return turn


@pytest.mark.requirement("claude:stop-hook-delivers")
def test_a_result_that_came_meanwhile_is_told_at_the_end_of_a_print_session(
    tmp_path: Path,
) -> None:
    places: list[ClaudePlace] = []
    script: Script = [
        spawn("echo 42 files", "count"),
        ends_its_turn_after(places),
        lambda seen: Say("told " * seen.seen.count("42 files\n")),
    ]
    with place(tmp_path, {"delegate": script}) as claude:
        places.append(claude)
        ended = claude.run("script:delegate", plugin=True)

        assert ended.code == 0, ended.err
        assert ended.result == "told "
        (run,) = spawned(claude)
        assert consumed(claude.home, run) == 1
        assert unread(claude) == []


@pytest.mark.requirement("claude:stop-hook-delivers")
def test_a_result_that_came_meanwhile_is_told_at_the_end_of_a_turn_of_the_sdk(
    tmp_path: Path,
) -> None:
    places: list[ClaudePlace] = []
    script: Script = [
        spawn("echo 42 files", "count"),
        ends_its_turn_after(places),
        lambda seen: Say("told " * seen.seen.count("42 files\n")),
    ]
    with place(tmp_path, {"delegate": script}) as claude:
        places.append(claude)
        results = asyncio.run(ask_by_sdk(claude, "script:delegate"))

        assert results == ["told "]
        (run,) = spawned(claude)
        assert consumed(claude.home, run) == 1


@pytest.mark.requirement("claude:stop-hook-never-holds")
def test_a_session_that_has_answered_is_not_held_by_workers_that_go_on(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script: Script = [
        spawn(f"until [ -e {gate} ]; do sleep 0.05; done; echo late", "late"),
        Say("that is all"),
    ]
    with place(tmp_path, {"delegate": script, "later": [Say("later")]}) as claude:
        assert claude.run("script:delegate", plugin=True).result == "that is all"
        assert asyncio.run(ask_by_sdk(claude, "script:later")) == ["later"]
        (run,) = spawned(claude)
        assert claude.home.row(run)["phase"] == "running"
        gate.touch()


# -- a cold start ---------------------------------------------------------------------------------


@pytest.mark.requirement("claude:cold-start")
def test_the_first_turn_of_a_print_session_has_the_tools_though_no_daemon_runs(
    tmp_path: Path,
) -> None:
    script: Script = [spawn("echo 42 files", "count"), wait_for_all, Say("done")]
    with place(tmp_path, {"delegate": script}, started=False) as claude:
        ended = claude.run("script:delegate")
        assert ended.code == 0, ended.err
        assert ended.servers == {"subagents": "connected"}
        assert len(spawned(claude)) == 1
        assert "42 files" in claude.model.conversations[-1].seen


@pytest.mark.requirement("claude:cold-start", "claude:task-wakes-idle")
def test_an_idle_session_that_started_before_any_daemon_is_woken(tmp_path: Path) -> None:
    """Without the plugin: an older protocol has no tasks, and nothing else would wake it."""
    gate = tmp_path / "gate"
    script: Script = [
        spawn(f"until [ -e {gate} ]; do sleep 0.05; done; echo 42 files", "count"),
        Say("that is all"),
        Say("woken"),
    ]
    with (
        place(tmp_path, {"delegate": script}, started=False) as claude,
        claude.interactive(plugin=False) as terminal,
    ):
        terminal.enter("script:delegate")
        claude.model.until(lambda seen: bool(seen.results))
        gate.touch()
        woken = claude.model.until(lambda seen: "42 files" in seen.seen)
        assert woken.seen.count("42 files") == 1


# -- an idle session ------------------------------------------------------------------------------


@pytest.mark.requirement("claude:hook-wakes-idle", "claude:task-wakes-idle")
@pytest.mark.parametrize("by", ["hook", "task"])
def test_the_end_of_a_worker_wakes_an_idle_session_once(tmp_path: Path, by: str) -> None:
    """Claude Code polls a run as an MCP task; where that is off, the hook in the background waits.

    Both are there in the second case, and one of them brings the result.
    """
    gate = tmp_path / "gate"
    script: Script = [
        spawn(f"until [ -e {gate} ]; do sleep 0.05; done; echo 42 files", "count"),
        Say("that is all"),
        Say("woken"),
    ]
    env = {"CLAUDE_CODE_DISABLE_MCP_TASKS": "1"} if by == "hook" else {}
    with place(tmp_path, {"delegate": script}) as claude, claude.interactive(env) as terminal:
        terminal.enter("script:delegate")
        until(lambda: waits_in_background(claude), what="the hook waits", within_s=BOUND_S)
        gate.touch()
        woken = claude.model.until(lambda seen: "42 files" in seen.seen)

        (run,) = spawned(claude)
        assert woken.seen.count("42 files") == 1
        assert ("Stop hook feedback" if by == "hook" else f"MCP task {run}") in woken.seen
        until(lambda: not unread(claude), what="the result is read")
        assert consumed(claude.home, run) == 1
        until(lambda: not any(b"hook" in each for each in commands(claude)), what="no hook waits")
        assert claude.model.conversations[-1].seen.count("42 files") == 1


def waits_in_background(claude: ClaudePlace) -> bool:
    """Whether the hook of an idle session waits, and the one that never waits is through."""
    waiting = list((claude.home.paths.state_dir / "hooks").glob("*.wait"))
    hooks = [words for words in commands(claude) if b"hook" in words]
    return bool(waiting and hooks) and all(b"--wait" in words for words in hooks)


def commands(claude: ClaudePlace) -> list[list[bytes]]:
    """The command lines of all programs in this place."""
    found = []
    for pid in claude.home.marked():
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"))
    return found


# -- killed and resumed ---------------------------------------------------------------------------


@pytest.mark.requirement("mcp:bridge:acknowledges", "inbox:after-hand-over")
def test_what_counts_as_read_is_in_the_transcript_of_a_session_that_is_killed_then(
    tmp_path: Path,
) -> None:
    """It is asked for nothing more: the bridge saw it live on, and the model still thinks."""
    places: list[ClaudePlace] = []
    is_read, is_gone = threading.Event(), threading.Event()

    def thinks(_: Conversation) -> Turn:
        until(lambda: not unread(places[0]), what="the answer is read")
        is_read.set()
        is_gone.wait(BOUND_S)
        return Say("too late")

    script: Script = [spawn("echo 6 7 | tr ' ' x", "one"), wait_for_all, thinks]
    with place(tmp_path, {"delegate": script}) as claude:
        places.append(claude)
        process = claude.start("script:delegate")
        assert is_read.wait(BOUND_S)
        process.kill()
        process.communicate(timeout=BOUND_S)
        is_gone.set()
        kept = Path(claude.env["CLAUDE_CONFIG_DIR"], "projects").rglob("*.jsonl")
        lines = [line for file in kept for line in file.read_text().splitlines()]
        assert any("tool_result" in line and "6x7" in line for line in lines), lines


@pytest.mark.requirement("claude:resumed-finds-inbox")
def test_a_killed_session_of_the_sdk_finds_its_inbox_when_it_is_resumed(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    held = f"until [ -e {gate} ]; do sleep 0.05; done; echo"
    script: Script = [(spawn(f"{held} first", "one"), spawn(f"{held} second", "two")), wait_for_all]
    places: list[ClaudePlace] = []
    resumed: Script = [Use("subagents", {"action": "inbox"}), says_what_it_read(places)]
    with place(tmp_path, {"delegate": script, "resumed": resumed}) as claude:
        places.append(claude)
        session_id = asyncio.run(killed_while_it_waits(claude))
        gate.touch()
        runs = spawned(claude)
        for run in runs:
            claude.home.until_phase(run, "announcing", "completed")
        until(lambda: len(unread(claude)) == 2, what="both results are unread")

        ended = claude.run("script:resumed", plugin=True, more=["--resume", session_id])

        assert ended.code == 0, ended.err
        assert ended.session_id == session_id
        assert [consumed(claude.home, run) for run in runs] == [1, 1]
        assert unread(claude) == []
        last = claude.model.conversations[-1].seen
        assert "Unread (2)" in last
        told = [text for text in claude.model.conversations[-1].results if "first" in text]
        assert len([text for text in told if "second" in text]) == 1
        assert "Stop hook feedback" not in last


async def killed_while_it_waits(claude: ClaudePlace) -> str:
    """A session of the SDK whose program is killed in the middle of a wait; returns its id."""
    from claude_agent_sdk import (  # noqa: PLC0415
        AssistantMessage,
        ClaudeSDKClient,
        ToolUseBlock,
    )

    async with asyncio.timeout(BOUND_S):
        client = ClaudeSDKClient(options_of(claude))
        await client.connect()
        try:
            await client.query("script:delegate")
            async for message in client.receive_messages():
                if not isinstance(message, AssistantMessage):
                    continue
                used = [block.name for block in message.content if isinstance(block, ToolUseBlock)]
                if any(name.endswith("sessions_wait") for name in used):
                    session_id = message.session_id
                    break
            (killed,) = programs(claude)
            os.kill(killed, signal.SIGKILL)
        finally:
            await client.disconnect()
    until(lambda: not programs(claude), what="the program is gone")
    assert session_id is not None
    return str(session_id)


def programs(claude: ClaudePlace) -> list[int]:
    """Processes of Claude Code in this place."""
    found = []
    for pid in claude.home.marked():
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/exe").readlink() == program():
                found.append(pid)
    return found


def options_of(claude: ClaudePlace):  # type: ignore[no-untyped-def]  # noqa: ANN201  the SDK is optional
    from claude_agent_sdk import ClaudeAgentOptions  # noqa: PLC0415

    return ClaudeAgentOptions(
        env=claude.env,
        cwd=str(claude.project),
        plugins=[{"type": "local", "path": str(plugin_dir())}],
        allowed_tools=[PLUGIN_TOOLS],
        permission_mode="dontAsk",
        setting_sources=[],
    )


async def ask_by_sdk(claude: ClaudePlace, prompt: str) -> list[str]:
    """The results of one query of the SDK."""
    from claude_agent_sdk import ResultMessage, query  # noqa: PLC0415

    async with asyncio.timeout(BOUND_S):
        messages = query(prompt=prompt, options=options_of(claude))
        return [str(each.result) async for each in messages if isinstance(each, ResultMessage)]


# -- the plugin's folder --------------------------------------------------------------------------


@pytest.mark.requirement("claude:plugin-validates")
@pytest.mark.parametrize("part", ["", ".claude-plugin/plugin.json"])
def test_claude_code_finds_nothing_wrong_with_the_plugin(tmp_path: Path, part: str) -> None:
    done = subprocess.run(
        [str(program()), "plugin", "validate", str(plugin_dir() / part)],
        capture_output=True,
        text=True,
        check=False,
        timeout=BOUND_S,
        env={**os.environ, "CLAUDE_CONFIG_DIR": str(tmp_path), "HOME": str(tmp_path)},
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Validation passed" in done.stdout
