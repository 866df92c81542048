"""The real Codex as a worker: its model follows a script, everything else is real."""

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from tests.e2e.live_home import until, variable_of
from tests.e2e.runtime_cells import CELLS, Place, place_of
from tests.e2e.scripted_model import Fail, Say, Use
from tests.real.codex_setup import CODEX, CODING, LOOSE, missing, patch, shell

from subagents.runtimes.process.processes import look

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]
"""An ended worker and all that it started are gone within this."""
LEFT_BEHIND: Final = "setsid tail -f /dev/null & echo $! > child.pid; tail -f /dev/null"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with place_of(CODEX, tmp_path) as found:
        yield found


@pytest.fixture
def loose(tmp_path: Path) -> Iterator[Place]:
    """Without a sandbox, whose own namespace would end what a command leaves behind."""
    with place_of(LOOSE, tmp_path) as found:
        yield found


@pytest.fixture
def coding(tmp_path: Path) -> Iterator[Place]:
    with place_of(CODING, tmp_path) as found:
        yield found


def tools_shown(place: Place, script: str, deny: list[str]) -> tuple[set[str], set[str]]:
    """The names of the tools that the model was given, and those in reach of its code."""
    is_coding = place.setup is CODING
    look = Use("exec", {"input": "text(Object.keys(tools).join(' '))"})
    place.model.scripts[script] = [look] if is_coding else []
    place.finished(script, toolsDeny=deny)
    asked = [each for each in place.model.conversations if each.place() == (script, 0)]
    provided = {each["type"] for each in asked[0].raw.get("tools", ())}
    shown = {name.rpartition("__")[2] for name in asked[0].tools} | provided
    told = place.model.conversations[-1].results
    return shown, set(told[-1].split()) if told else set()


def with_child(place: Place) -> str:
    """A run whose command holds the turn and has a child in a session of its own."""
    place.model.scripts["leaves"] = [shell(LEFT_BEHIND), Say("never said")]
    run_id = place.spawn("leaves")
    until(lambda: place.path("child.pid").exists() and child_of(place), what="the command")
    return run_id


def child_of(place: Place) -> str:
    """The process id that the command wrote down; empty while it is about to."""
    return place.path("child.pid").read_text().strip()


def config_of(place: Place) -> Path:
    found: Path = place.home.root.parent / "setup" / "codex" / "config.toml"
    return found


@pytest.mark.requirement("real:codex:tasks")
@pytest.mark.parametrize("cell", CELLS)
def test_codex_does_what_every_runtime_is_asked_to_do(place: Place, cell: str) -> None:
    assert CELLS[cell](place)


@pytest.mark.requirement("real:codex:tasks")
@pytest.mark.parametrize("cell", ["edit", "command", "ask", "spawn", "daemon killed"])
def test_so_does_a_model_that_writes_code_for_its_calls(coding: Place, cell: str) -> None:
    assert CELLS[cell](coding)


@pytest.mark.requirement("real:codex:scope")
@pytest.mark.parametrize(
    ("deny", "gone"),
    [
        (["Bash"], {"exec_command", "write_stdin"}),
        (["Task"], {"spawn_agent", "send_message"}),
        (["WebSearch"], {"web_search"}),
        (["view_image", "mcp__subagents__agents_list"], {"view_image", "agents_list"}),
    ],
)
def test_a_denied_tool_is_not_shown_to_the_model(
    place: Place, deny: list[str], gone: set[str]
) -> None:
    free, _ = tools_shown(place, "free", [])
    kept, _ = tools_shown(place, "kept", deny)

    assert not kept & gone
    assert kept < free or deny == ["Task"]  # this model has no such tools in any case


@pytest.mark.requirement("real:codex:scope")
def test_nor_is_it_there_for_a_model_that_writes_code(coding: Place) -> None:
    free, free_code = tools_shown(coding, "free", [])
    kept, kept_code = tools_shown(coding, "kept", ["Bash", "Task"])

    assert {"exec_command", "apply_patch"} <= free_code
    assert "exec_command" not in kept_code
    assert {"spawn_agent", "agents_list"} <= free
    assert "spawn_agent" not in kept
    assert "agents_list" in kept


@pytest.mark.requirement("real:codex:scope")
def test_nor_are_agents_of_its_own_where_the_user_has_the_second_kind_of_them(
    coding: Place,
) -> None:
    with config_of(coding).open("a") as config:
        config.write("[features]\nmulti_agent_v2 = true\n")

    free, _ = tools_shown(coding, "free", [])
    kept, _ = tools_shown(coding, "kept", ["Task"])

    own = {"spawn_agent", "list_agents", "interrupt_agent", "followup_task"}
    assert own <= free
    assert not own & kept


@pytest.mark.requirement("real:codex:scope")
def test_a_denied_edit_fails_in_a_patch_and_in_the_shell(place: Place) -> None:
    place.model.scripts["edits"] = [
        patch(str(place.path("a")), "x"),
        shell("touch b"),
        lambda seen: Say(" ".join(seen.results)),
    ]
    done = place.finished("edits", toolsDeny=["Edit"])

    assert not place.path("a").exists()
    assert not place.path("b").exists()
    assert "read-only" in done["result"].lower()


@pytest.mark.requirement("real:codex:gone")
def test_a_cancelled_worker_leaves_no_child_of_its_shell(loose: Place) -> None:
    run_id = with_child(loose)
    assert len(loose.home.of_run(run_id)) >= 4

    loose.home.post(f"/v1/runs/{run_id}/cancel")
    until(lambda: not loose.home.of_run(run_id), what="no process left")
    assert loose.finish(run_id)[0]["outcome"]["status"] == "cancelled"


@pytest.mark.requirement("real:codex:gone")
def test_so_it_is_where_codex_hands_no_variables_to_its_commands(tmp_path: Path) -> None:
    bare = {"shell_environment_policy": {"inherit": "core"}}
    setup = replace(LOOSE, options={**LOOSE.options, "config": bare})
    with place_of(setup, tmp_path) as place:
        run_id = with_child(place)
        child = int(child_of(place))
        assert variable_of(child, "SUBAGENTS_TOKEN") is None

        place.home.post(f"/v1/runs/{run_id}/cancel")
        until(lambda: look(child) is None, what="the child is gone")


@pytest.mark.requirement("real:codex:gone")
def test_an_interrupted_worker_leaves_no_child_of_its_shell(loose: Place) -> None:
    run_id = with_child(loose)

    loose.home.post(f"/v1/runs/{run_id}/interrupt")
    until(lambda: not loose.home.of_run(run_id), what="no process left")
    assert loose.finish(run_id)[0]["outcome"]["reason"] == "interrupted"


@pytest.mark.requirement("real:codex:gone")
def test_codex_that_is_killed_is_an_error_and_leaves_no_child_of_its_shell(loose: Place) -> None:
    run_id = with_child(loose)

    os.kill(loose.home.worker_pid(run_id), signal.SIGKILL)
    done = loose.finish(run_id)[0]

    assert done["outcome"]["status"] == "error"
    until(lambda: not loose.home.of_run(run_id), what="no process left")


@pytest.mark.requirement("real:codex:follow-up")
def test_the_end_of_a_child_is_a_further_turn_in_the_same_session(place: Place) -> None:
    place.model.scripts["slow-child"] = [shell("until [ -e go ]; do sleep 0.05; done"), Say("kid")]
    place.model.scripts["parent"] = [
        Use("sessions_spawn", {"task": "script:slow-child", "agentId": "codex", "label": "kid"}),
        Say("waiting"),
        lambda seen: Say(f"after all {'waiting' in str(seen.messages)} {'kid' in seen.seen}"),
    ]
    run_id = place.spawn("parent")
    place.model.until(lambda each: each.place() == ("slow-child", 0))
    place.home.until_phase(run_id, "ending", "waiting_children", "running", "descendants")
    first = until(lambda: place.home.stored()[run_id].attempt.session.native, what="a session")
    until(lambda: not place.home.of_run(run_id), what="the end of its first turn")
    place.path("go").touch()
    done = place.finish(run_id)[0]

    attempt = place.home.stored()[run_id].attempt
    assert "after all True True" in done["result"]
    assert (attempt.turn.number, attempt.session.native) == (2, first)


@pytest.mark.requirement("real:codex:no-token-on-disk")
def test_the_bridge_finds_its_token_though_no_file_and_no_argument_holds_it(place: Place) -> None:
    login_shell = Use("exec_command", {"cmd": "echo ${#SUBAGENTS_TOKEN}", "yield_time_ms": 30_000})
    stays = shell("tail -f /dev/null")
    place.model.scripts["asks"] = [Use("agents_list"), login_shell, stays, Say("never")]
    run_id = place.spawn("asks")
    seen = place.model.until(lambda each: each.place() == ("asks", 2))
    token = place.home.token_of(run_id)

    assert "codex" in seen.results[0]
    assert f"\n{len(token)}\n" in seen.results[-1]
    directory = place.home.attempt_file(run_id, "out").parent
    ours = {path.name: path for path in directory.iterdir() if path.is_file()}
    theirs = [path for path in config_of(place).parent.rglob("*") if path.is_file()]
    assert {"in", "out", "opening"} <= set(ours)
    assert any(path.suffix == ".jsonl" for path in theirs)
    for path in (*ours.values(), *theirs):
        assert token.encode() not in path.read_bytes(), path
    for pid in place.home.of_run(run_id):
        assert token.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.requirement("real:codex:leaves-config")
def test_the_users_configuration_is_as_it_was(place: Place) -> None:
    subprocess.run(["git", "init", "-q"], cwd=place.home.work, check=True)
    before = config_of(place).read_text()

    assert place.finished("nothing")["outcome"]["status"] == "ok"

    assert config_of(place).read_text() == before


@pytest.mark.requirement("real:codex:sandbox")
def test_commands_write_where_they_work_and_nowhere_else(place: Place) -> None:
    elsewhere = place.home.root / "elsewhere"
    place.model.scripts["writes"] = [
        shell(f"touch here; touch {elsewhere}; curl -sS -m 2 {place.model.url}/ || echo no-net"),
        lambda seen: Say(seen.results[-1]),
    ]
    done = place.finished("writes")

    assert place.path("here").exists()
    # What pytest calls temporary is below /tmp, which commands may write to.
    assert elsewhere.exists() == elsewhere.is_relative_to("/tmp")
    assert "no-net" in done["result"]


@pytest.mark.requirement("real:codex:limit")
def test_a_provider_that_takes_no_more_makes_the_run_wait_and_not_fail(place: Place) -> None:
    place.model.scripts["limited"] = [Fail(429, times=None, for_s=60), Say("through")]
    run_id = place.spawn("limited")

    limited = until(lambda: place.home.stored()[run_id].retry.limited, what="it waits")

    assert "429" in limited.text
    assert place.home.stored()[run_id].outcome is None
    place.home.post(f"/v1/runs/{run_id}/cancel")


@pytest.mark.requirement("real:codex:not-logged-in")
def test_nobody_logged_in_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    def nothing(_url: str, root: Path) -> None:
        (root / "codex").mkdir()

    with place_of(replace(CODEX, prepare=nothing), tmp_path) as place:
        done = place.finished("nothing")

    assert done["outcome"]["status"] == "error"
    assert "codex login" in done["outcome"]["error"]
