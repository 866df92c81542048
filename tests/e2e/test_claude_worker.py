"""The real Claude Code as a worker: its model follows a script, everything else is real.

What every runtime does alike is in ``runtime_cells``; here is what is told of it, and what Claude
Code alone could get wrong. One daemon serves all tests but those that kill it.
"""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.e2e import runtime_cells as cells
from tests.e2e.claude_place import program
from tests.e2e.live_home import DEFAULTS, LiveHome, live_home, until
from tests.e2e.program_setups import CLAUDE
from tests.e2e.scripted_model import Conversation, Fail, Say, Script, ScriptedModel, Tokens, Use

from subagents.domain.run.worker_output import LineType
from subagents.runtimes.process.processes import scan

pytestmark = [
    pytest.mark.skipif(program() is None, reason="claude-agent-sdk is not installed"),
    pytest.mark.timeout(120),
]
CHILD: Final = "tail -f /dev/null --pid=1 -s 51"
"""A shell child that continues for ever; a bare ``sleep`` is refused by the program."""
RUN_S: Final = 60.0
AGENTS: Final = """
[agents.claude]
runtime = "claude-code"
model = "scripted"
grace_seconds = 2
env = {env}
pass_env = ["E2E_MARK"]
subagents.allow_agents = ["*"]

[agents.priced]
runtime = "claude-code"
model = "claude-sonnet-4-5"
env = {env}
pass_env = ["E2E_MARK"]

[agents.brief]
runtime = "claude-code"
model = "scripted"
env = {env}
pass_env = ["E2E_MARK"]
runtime_options = {{ max_turns = 1 }}

[agents.asking]
runtime = "claude-code"
model = "scripted"
env = {env}
pass_env = ["E2E_MARK"]
runtime_options = {{ ask = true }}

[agents.blunt]
runtime = "claude-code"
model = "scripted"
env = {blunt}
pass_env = ["E2E_MARK"]
"""

Document = dict[str, Any]


@contextmanager
def place_in(root: Path) -> Iterator[cells.Place]:
    with ScriptedModel({}) as model:
        own = root / "setup"
        own.mkdir()
        CLAUDE.prepare(model.url, own)
        env = dict(CLAUDE.env(model.url, own))
        blunt = {**env, "CLAUDE_CODE_MAX_RETRIES": "0"}
        config = DEFAULTS + AGENTS.format(env=inline(env), blunt=inline(blunt))
        with live_home(root, config=config) as home:
            yield cells.Place(CLAUDE, home, model)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cells.Place]:
    with place_in(tmp_path_factory.mktemp("claude")) as found:
        yield found


def inline(table: dict[str, str]) -> str:
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items()) + " }"


def run(place: cells.Place, name: str, script: Script, **spec: object) -> str:
    """The id of a new run whose model follows ``script``."""
    place.model.scripts[name] = script
    task = str(spec.pop("task", f"script:{name}"))
    agent = str(spec.pop("agent", CLAUDE.name))
    return place.home.spawn(task, agent=agent, label=name, **spec)


def finished(place: cells.Place, run_id: str) -> Document:
    return place.home.finish(run_id, timeout_s=RUN_S)[0]


def conversations(place: cells.Place, name: str) -> list[Conversation]:
    return [each for each in place.model.conversations if (each.place() or ("",))[0] == name]


def told(place: cells.Place, run_id: str, kind: LineType) -> list[str]:
    rows = place.home.get(f"/v1/runs/{run_id}/log", type=kind.value, limit=200)["lines"]
    return [str(row["text"]) for row in rows]


def child_runs(run_id: str, home: LiveHome) -> list[int]:
    """Live processes of the run that are its shell's child; another ``tail`` feeds its input."""
    return [pid for pid in home.of_run(run_id) if words_of(pid)[:-1] == CHILD.split()]


def words_of(pid: int) -> list[str]:
    try:
        data = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return [word.decode(errors="replace") for word in data.split(b"\0")]


def busy(place: cells.Place, name: str) -> str:
    """A run in the middle of a shell command that does not end by itself."""
    steps: Script = [Use("Bash", {"command": CHILD}, text="It takes long."), Say("never")]
    run_id = run(place, name, steps)
    until(lambda: child_runs(run_id, place.home), what="the shell's child", within_s=RUN_S)
    return run_id


# -- what it does ---------------------------------------------------------------------------------


@pytest.mark.requirement("claude-worker:e2e:edits-a-file", "claude-worker:e2e:usage-in-status")
def test_it_edits_a_file_that_passes_its_contract_and_says_what_it_used(
    place: cells.Place,
) -> None:
    target = place.path("report.json")
    script: Script = [
        Use("Write", {"file_path": str(target), "content": '[{"n": 1}]'}, tokens=Tokens(900, 20)),
        Say("written", tokens=Tokens(1000, 30)),
    ]
    contract = {"artifacts": [{"path": "report.json", "json": True, "minItems": 1}]}
    run_id = run(place, "report", script, agent="priced", verification=contract)
    done = finished(place, run_id)
    assert (done["outcome"]["status"], done["verification"]["status"]) == ("ok", "passed")
    assert json.loads(target.read_text()) == [{"n": 1}]
    used = place.home.row(run_id)["usage"]
    assert (used["tokensIn"], used["tokensOut"]) == (1900, 50)
    assert used["costUsd"] > 0
    lines = told(place, run_id, LineType.TOOL)
    assert any("Write" in line and "report.json" in line for line in lines), lines
    assert "written" in told(place, run_id, LineType.TEXT)


@pytest.mark.requirement("claude-worker:e2e:runs-a-command")
def test_it_runs_a_command_and_its_model_sees_what_came_out(place: cells.Place) -> None:
    assert cells.command(place) == cells.OK


@pytest.mark.requirement("claude-worker:e2e:asks-and-is-answered")
def test_it_asks_its_requester_and_works_with_the_answer(place: cells.Place) -> None:
    assert cells.ask(place) == cells.OK
    names = conversations(place, "ask")[0].tools
    # In the first request already: nothing has to be searched for.
    assert "mcp__subagents__request_orchestrator" in names


@pytest.mark.requirement("claude-worker:e2e:spawns-a-child")
def test_it_spawns_a_child_and_hands_its_result_on(place: cells.Place) -> None:
    assert cells.spawn(place) == cells.OK


@pytest.mark.requirement("claude-worker:e2e:nothing-delivered")
def test_a_turn_without_the_deliverable_is_not_done(place: cells.Place) -> None:
    assert cells.no_deliverable(place) == cells.OK


@pytest.mark.requirement("claude-worker:e2e:own-agents")
def test_an_agent_of_its_own_works_in_its_turn(place: cells.Place) -> None:
    asked = {"description": "look", "prompt": "script:inner", "subagent_type": "general-purpose"}
    place.model.scripts["inner"] = [Say("inner-words")]
    script: Script = [
        Use("Agent", asked),
        lambda seen: Say(f"it said {'inner-words' in seen.results[-1]}"),
    ]
    run_id = run(place, "outer", script)
    assert "it said True" in finished(place, run_id)["result"]
    assert "inner-words" not in told(place, run_id, LineType.TEXT)


@pytest.mark.requirement("claude-worker:e2e:follow-up-turn")
def test_a_parent_that_ended_its_turn_is_told_of_its_child_in_the_same_session(
    place: cells.Place,
) -> None:
    gate = place.path("late-gate")
    wait = f"until [ -e {gate} ]; do sleep 0.1; done; echo pear-5521"
    place.model.scripts["late-child"] = [
        Use("Bash", {"command": wait}),
        lambda seen: Say(seen.results[-1]),
    ]
    kid = {"task": "script:late-child", "agentId": CLAUDE.name, "label": "kid"}
    script: Script = [
        Use("sessions_spawn", kid, tokens=Tokens(1000, 10)),
        Say("I wait for it.", tokens=Tokens(1100, 11)),
        lambda seen: Say(
            f"told {'pear-5521' in seen.seen}, knows {'I wait' in str(seen.messages)}",
            tokens=Tokens(1200, 12),
        ),
    ]
    run_id = run(place, "patient", script)
    until(lambda: "I wait for it." in told(place, run_id, LineType.TEXT), what="its first turn")
    gate.touch()
    done = finished(place, run_id)
    assert "told True, knows True" in done["result"], done["result"]
    (attempt,) = place.home.show(run_id)["attempts"]
    assert attempt["turns"] == 2
    used = place.home.row(run_id)["usage"]
    assert (used["tokensIn"], used["tokensOut"]) == (3300, 33)


# -- what it must not do --------------------------------------------------------------------------


@pytest.mark.requirement("claude-worker:e2e:denied-shell")
def test_a_denied_shell_fails_for_it_for_its_own_agents_and_for_its_children(
    place: cells.Place,
) -> None:
    assert cells.scope(place) == cells.OK
    tried = place.path("tried-by-agent")
    touch = Use("Bash", {"command": f"touch {tried}"}, is_declared=False)
    asked = {"description": "look", "prompt": "script:sly", "subagent_type": "general-purpose"}
    place.model.scripts["sly"] = [touch, Say("tried")]
    run_id = run(place, "sly-parent", [touch, Use("Agent", asked), Say("over")],
                 toolsDeny=["exec_command"])  # fmt: skip
    assert finished(place, run_id)["outcome"]["status"] == "ok"
    assert not tried.exists()
    assert any("❌ Bash" in line for line in told(place, run_id, LineType.TOOL))


@pytest.mark.requirement("claude-worker:e2e:only-these-tools")
def test_a_scope_leaves_it_only_those_tools_and_ours(place: cells.Place) -> None:
    run_id = run(place, "scoped", [Say("looked")], toolsAllow=["Read"])
    finished(place, run_id)
    own = [name for name in conversations(place, "scoped")[0].tools if "__" not in name]
    assert set(own) - {"DeferredToolPlaceholder"} == {"Read", "NotebookRead"} & set(own)
    assert "Read" in own


@pytest.mark.requirement("claude-worker:e2e:task-pulls-in-no-file")
def test_a_task_that_names_a_file_does_not_pull_it_in_nor_run_a_command(
    place: cells.Place,
) -> None:
    secret = place.path("secret.txt")
    secret.write_text("PLUM-9931")
    run_id = run(place, "quoted", [Say("read the task")],
                 task=f"/clear script:quoted see @{secret} and @secret.txt")  # fmt: skip
    assert "read the task" in finished(place, run_id)["result"]
    (asked,) = conversations(place, "quoted")
    assert f"/clear script:quoted see @{secret}" in asked.seen
    assert "PLUM-9931" not in json.dumps(asked.raw)


@pytest.mark.requirement("claude-worker:e2e:no-token-in-sight")
def test_its_token_is_in_no_file_and_no_argument(place: cells.Place) -> None:
    run_id = busy(place, "secretive")
    try:
        token = place.home.token_of(run_id)
        shown = [word for pid in place.home.of_run(run_id) for word in words_of(pid)]
        assert any("--mcp-config" in word for word in shown)
        assert not [word for word in shown if token in word]
        directory = place.home.attempt_file(run_id, "out").parent
        files = [path for path in directory.rglob("*") if path.is_file()]
        assert {"mcp.json", "instructions", "out", "in"} <= {path.name for path in files}
        assert not [path for path in files if token.encode() in path.read_bytes()]
    finally:
        place.home.post(f"/v1/runs/{run_id}/cancel")
    finished(place, run_id)


# -- messages, interruptions, ends ----------------------------------------------------------------


@pytest.mark.requirement("claude-worker:e2e:steer-same-turn")
def test_a_message_in_mid_turn_lands_in_the_same_turn(place: cells.Place) -> None:
    assert cells.steer(place) == "same turn"


@pytest.mark.requirement("claude:continue")
def test_a_run_that_goes_on_in_a_session_has_its_own_instructions(place: cells.Place) -> None:
    """The program sends the prompt of the first launch for ever, unless it is told not to."""
    first = run(place, "opening", [Say("1")], budget={"maxTokens": 111_000})
    assert finished(place, first)["outcome"]["status"] == "ok"
    second = run(place, "sequel", [Say("2")], budget={"maxTokens": 222_000}, continues=first)
    assert finished(place, second)["outcome"]["status"] == "ok"

    system = [str(each.body["system"]) for each in conversations(place, "sequel")]
    assert system
    for each in system:
        assert f"Label: sequel; run: {second}" in each
        assert "222000 tokens" in each
        assert first not in each


@pytest.mark.requirement("claude-worker:e2e:interrupt")
def test_an_interrupted_turn_ends_politely_with_what_it_said(place: cells.Place) -> None:
    run_id = busy(place, "interrupted")
    place.home.post(f"/v1/runs/{run_id}/interrupt")
    done = finished(place, run_id)
    assert (done["outcome"]["status"], done["outcome"]["reason"]) == ("partial", "interrupted")
    assert "It takes long." in done["result"]
    assert not place.home.of_run(run_id)


@pytest.mark.requirement("claude-worker:e2e:cancel-leaves-no-child")
def test_a_cancelled_run_leaves_no_process_behind(place: cells.Place) -> None:
    run_id = busy(place, "cancelled")
    (child, *_) = child_runs(run_id, place.home)
    # The program makes its shells leaders of sessions of their own: the group is not enough.
    assert os.getsid(child) != os.getsid(place.home.worker_pid(run_id))
    place.home.post(f"/v1/runs/{run_id}/cancel")
    assert finished(place, run_id)["outcome"]["status"] == "cancelled"
    until(lambda: not place.home.of_run(run_id), what="no process left")


@pytest.mark.requirement("claude-worker:e2e:killed-worker")
def test_a_killed_worker_is_an_error_and_its_child_goes_too(place: cells.Place) -> None:
    run_id = busy(place, "shot")
    os.kill(place.home.worker_pid(run_id), signal.SIGKILL)
    done = finished(place, run_id)
    assert done["outcome"]["status"] == "error"
    until(lambda: not place.home.of_run(run_id), what="no process left")


@pytest.mark.requirement("claude-worker:e2e:limit-of-turns")
def test_a_limit_of_turns_ends_it_and_says_which_option_it_is(place: cells.Place) -> None:
    script: Script = [Use("Bash", {"command": "echo 1"}, text="First."), Say("never")]
    run_id = run(place, "brief", script, agent="brief")
    outcome = finished(place, run_id)["outcome"]
    assert outcome["status"] == "error"
    assert "runtime_options.max_turns" in json.dumps(outcome)


@pytest.mark.requirement("claude-worker:e2e:provider-retry")
def test_a_provider_that_is_overloaded_for_now_is_asked_again(place: cells.Place) -> None:
    run_id = run(place, "overloaded", [Fail(529), Say("at last")])
    done = finished(place, run_id)
    assert (done["outcome"]["status"], "at last" in done["result"]) == ("ok", True)
    errors = told(place, run_id, LineType.ERROR)
    assert any("529" in line and "try 1/10" in line for line in errors), errors


@pytest.mark.requirement("claude-worker:e2e:provider-limit")
def test_a_rate_limit_that_its_program_gives_up_on_is_waited_out(place: cells.Place) -> None:
    run_id = run(place, "limited", [Fail(429), Say("after the wait")], agent="blunt")
    done = finished(place, run_id)
    assert (done["outcome"]["status"], "after the wait" in done["result"]) == ("ok", True)
    errors = told(place, run_id, LineType.ERROR)
    assert any("429" in line for line in errors), errors


# -- the daemon dies ------------------------------------------------------------------------------


@pytest.mark.requirement("claude-worker:e2e:daemon-killed")
def test_a_new_daemon_goes_on_with_a_turn_under_way(place: cells.Place) -> None:
    assert cells.survives(place) == cells.OK


@pytest.mark.requirement("claude-worker:e2e:daemon-killed-then-steered")
def test_a_turn_that_was_adopted_is_still_heard_spoken_to_and_ended(place: cells.Place) -> None:
    gate = place.path("adopted-gate")
    waits = Use("Bash", {"command": f"touch {gate}.up; until [ -e {gate} ]; do sleep 0.1; done"})
    script: Script = [waits, lambda seen: Say(f"heard {'quince' in seen.seen}")]
    run_id = run(place, "adopted", script)
    until(lambda: Path(f"{gate}.up").exists(), what="the command", within_s=RUN_S)
    worker = place.home.worker_pid(run_id)
    place.home.restart_after_kill()
    assert worker in [each.pid for each in scan()]
    place.home.post(f"/v1/runs/{run_id}/steer", {"message": "say quince"})
    until(
        lambda: any(type(each).__name__ == "SteerSettled" for each in place.home.journal(run_id)),
        what="it settled",
    )
    gate.touch()
    done = finished(place, run_id)
    assert "heard True" in done["result"]
    begun = [each for each in conversations(place, "adopted") if each.place() == ("adopted", 0)]
    assert len(begun) == 1
    lines = told(place, run_id, LineType.TOOL)
    assert len([line for line in lines if line.startswith("▶ Bash")]) == 1
    assert not place.home.of_run(run_id)


# -- what it asks permission for ------------------------------------------------------------------


@pytest.mark.requirement("claude-worker:e2e:permission")
def test_what_it_must_ask_for_waits_for_an_answer_over_a_kill_of_the_daemon(
    tmp_path: Path,
) -> None:
    with place_in(tmp_path) as place:
        made = [place.path(f"made-{number}") for number in range(3)]
        place.model.scripts["asking"] = [
            *(Use("Bash", {"command": f"touch {each}"}) for each in (made[0], made[0], made[1])),
            Use("Bash", {"command": f"touch {made[2]}"}),
            lambda seen: Say(f"denied {'it was denied' in seen.results[-1]}"),
        ]
        run_id = place.home.spawn("script:asking", agent="asking", label="asking")

        def asked(number: int) -> Document | None:
            found = place.home.show(run_id)["requests"][number - 1 :]
            return found[0] if found else None

        first = until(lambda: asked(1), what="the question", within_s=RUN_S)
        assert first["question"] == f"May it use Bash? touch {made[0]}"
        assert first["options"] == ["once", "for this run", "for this agent", "deny"]
        assert f"touch {made[0]}" in first["context"]
        assert not made[0].exists()
        place.home.kill()
        place.home.start()
        for number, answer in enumerate(("once", "for this run", "once", "deny"), start=1):
            until(partial(asked, number), what=f"question {number}", within_s=RUN_S)
            place.home.post(f"/v1/requests/{run_id}:q{number}/respond", {"response": answer})
            if number == 3:
                until(made[1].exists, what="the second file", within_s=RUN_S)
        assert "denied True" in finished(place, run_id)["result"]
        assert [each.exists() for each in made] == [True, True, False]
