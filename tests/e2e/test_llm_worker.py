"""Runs of the runtime ``llm`` behind a real daemon, with a scripted model."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from tests.e2e.live_home import DEFAULTS, LiveHome, audit, live_home, until
from tests.e2e.scripted_model import (
    Conversation,
    Fail,
    Say,
    Script,
    ScriptedModel,
    Tokens,
    Use,
    Wait,
)

from subagents.domain.run.events import AttemptStarted, SignalReceived
from subagents.domain.run.signals import SessionSeen
from subagents.errors import Forbidden

RUN_S: Final = 90.0
KEY: Final = "sk-test-planted-0123456789abcdef"
WORKERS: Final = 3
LARGE: Final = Tokens(7_500, 600)
SMALL: Final = Tokens(1_000, 10)
SLEEP: Final = "echo $$ > pid; sleep 300"
AGENTS: Final = """
[agents.llm]
runtime = "llm"
model = "openai:scripted"
env = {{ OPENAI_API_KEY = "{key}" }}
pass_env = ["E2E_MARK"]
grace_seconds = 2
subagents.allow_agents = ["*"]
runtime_options = {{ base_url = "{url}/v1", context_window = 1000 }}
"""

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """A daemon and the model that its workers ask."""

    home: LiveHome
    model: ScriptedModel

    def spawn(self, script: str, **spec: object) -> str:
        return self.home.spawn(f"script:{script}", agent="llm", **spec)

    def finish(self, *run_ids: str) -> list[Document]:
        return self.home.finish(*run_ids, timeout_s=RUN_S)

    def path(self, name: str) -> Path:
        return self.home.work / name

    def until_sleeping(self) -> None:
        pid = self.path("pid")
        until(lambda: pid.exists() and pid.read_text().strip(), what="a command", within_s=RUN_S)


@contextlib.contextmanager
def place(root: Path, scripts: Mapping[str, Script], *, url: str | None = None) -> Iterator[Place]:
    with ScriptedModel(scripts) as model:
        config = DEFAULTS + AGENTS.format(url=url or model.url, key=KEY)
        with live_home(root, config=config) as home:
            yield Place(home, model)


def runs_in(seen: Conversation) -> list[str]:
    return seen.found(r"r-[a-z0-9]{6,}")


@pytest.mark.requirement("llm:task:edit")
def test_it_writes_the_file_that_its_contract_asks_for(tmp_path: Path) -> None:
    write = Use("write", {"path": "out.json", "content": '{"ok": true}'})
    report = Use("report_completion", {"summary": "wrote out.json", "confidence": "high"})
    with place(tmp_path, {"t": [write, report, Say("written")]}) as there:
        contract = {"artifacts": [{"path": "out.json", "json": True, "requiredKeys": ["ok"]}]}
        done = there.finish(there.spawn("t", verification=contract))[0]
        assert done["outcome"]["status"] == "ok", done
        assert done["verification"]["status"] == "passed"
        assert done["result"] == "written"
        shown = there.home.show(done["runId"])
        assert "wrote out.json" in json.dumps(shown)
        audit(there.home, [done["runId"]])


@pytest.mark.requirement("llm:task:command", "llm:usage")
def test_it_runs_a_command_and_what_it_used_is_counted_and_logged(tmp_path: Path) -> None:
    script: Script = [
        Use("shell", {"command": "echo made-it"}, text="Running", tokens=Tokens(600, 10)),
        lambda seen: Say(f"saw {seen.results[-1]}", tokens=Tokens(700, 20)),
    ]
    with place(tmp_path, {"t": script}) as there:
        run_id = there.spawn("t")
        done = there.finish(run_id)[0]
        assert done["result"] == "saw made-it"
        usage = done["usage"]
        assert (usage["tokensIn"], usage["tokensOut"]) == (1300, 30)
        assert usage.get("costUsd") is None
        log = json.dumps(there.home.get(f"/v1/runs/{run_id}/log"))
        assert "Running" in log
        assert "echo made-it" in log
        assert log.count("saw made-it") == 1


@pytest.mark.requirement("budget:hold:e2e")
def test_requests_as_fast_as_they_can_be_do_not_cross_a_budget(tmp_path: Path) -> None:
    fast: Script = [Use("list", text="half done", tokens=LARGE)] * 6 + [Say("all", tokens=LARGE)]
    with place(tmp_path, {"t": fast}) as there:
        run_id = there.spawn("t", budget={"maxTokens": 20_000})
        done = there.finish(run_id)[0]
        outcome = done["outcome"]
        assert (outcome["status"], outcome["reason"]) == ("partial", "budget"), outcome
        assert done["result"] == "half done"
        assert "and the next request may need" in outcome["error"]
        assert len(there.model.requests) == 2
        budget = there.home.show(run_id)["budget"]
        assert (budget["text"], budget["overshoot"]) == ("16.2k of 20k tokens", "none")
        limits = [each.raw["max_completion_tokens"] for each in there.model.conversations]
        assert limits[0] > limits[1], "the rest was smaller than what an answer may be"


@pytest.mark.requirement("budget:hold:e2e")
def test_an_endpoint_that_does_not_say_what_it_used_crosses_no_budget_either(
    tmp_path: Path,
) -> None:
    silent = Tokens(0, 0)
    fast: Script = [Use("list", text="half done", tokens=silent)] * 6 + [Say("all", tokens=silent)]
    with place(tmp_path, {"t": fast}) as there:
        done = there.finish(there.spawn("t", budget={"maxTokens": 20_000}))[0]
        assert done["outcome"]["reason"] == "budget"
        assert not done.get("usage"), "unknown is not 0"
        assert len(there.model.requests) < 6


@pytest.mark.requirement("budget:hold:e2e")
def test_several_workers_under_one_budget_do_not_cross_it_through_kill_9_of_the_daemon(
    tmp_path: Path,
) -> None:
    spawn = Use("sessions_spawn", {"task": "script:child", "agentId": "llm"}, tokens=SMALL)
    scripts: dict[str, Script] = {
        "child": [Use("list", tokens=LARGE), Wait("gate"), *[Use("list", tokens=LARGE)] * 9],
        "t": [
            (spawn, spawn, spawn),
            lambda seen: Use(
                "sessions_wait",
                {"runIds": runs_in(seen)[:3], "timeoutSeconds": 60, "until": "all"},
                tokens=SMALL,
            ),
            Say("put together", tokens=SMALL),
        ],
    }
    with place(tmp_path, scripts) as there:
        run_id = there.spawn("t", budget={"maxTokens": 90_000})
        there.model.until_waiting("gate")
        there.home.restart_after_kill()
        there.model.open("gate")
        there.finish(run_id)
        spent = there.home.show(run_id)["budget"]["spent"]
        used = spent["tokensIn"] + spent["tokensOut"]
        answered = [each for each in there.model.conversations if each.place()]
        large = sum((each.place() or ("", 0))[0] == "child" for each in answered)
        assert large * (LARGE.tokens_in + LARGE.tokens_out) <= used <= 90_000
        assert large >= 5, "what is there can be used"


@pytest.mark.requirement("budget:day:e2e")
def test_the_budget_of_a_day_stops_what_works_refuses_what_is_new_and_survives_kill_9(
    tmp_path: Path,
) -> None:
    script: Script = [Use("list", tokens=LARGE), Wait("gate"), *[Use("list", tokens=LARGE)] * 9]
    with ScriptedModel({"t": script}) as model:
        daily = "[budgets.daily]\nmax_tokens = 60_000\n"
        config = DEFAULTS + daily + AGENTS.format(url=model.url, key=KEY)
        with live_home(tmp_path, config=config) as home:
            there = Place(home, model)
            first, second = there.spawn("t"), there.spawn("t")
            model.until_waiting("gate")
            home.restart_after_kill()
            model.open("gate")
            for done in there.finish(first, second):
                assert done["outcome"]["reason"] == "budget", done["outcome"]
                assert "the budget of today ([budgets.daily])" in done["outcome"]["error"]
            (shown,) = home.get("/v1/diagnostics")["budgets"]
            assert 40_000 < shown["tokens"] <= 60_000
            # A command reports what it likes, and is stopped when that is too much.
            line = '{"subagents":"usage","tokensIn":60000}'
            over = home.finish(home.spawn(f"echo '{line}'; sleep 300"))[0]
            assert (over["outcome"]["status"], over["outcome"]["reason"]) == ("partial", "budget")
            with pytest.raises(Forbidden, match="of today") as refused:
                home.spawn("true")
            assert "spawn it again after" in (refused.value.hint or "")


@pytest.mark.requirement("llm:task:ask")
def test_it_asks_its_requester_and_works_with_the_answer(tmp_path: Path) -> None:
    ask = Use("request_orchestrator", {"question": "Which colour?", "timeoutSeconds": 60})
    with place(tmp_path, {"t": [ask, lambda seen: Say(seen.results[-1])]}) as there:
        run_id = there.spawn("t")

        def asked() -> str | None:
            requests = there.home.show(run_id).get("requests") or []
            return next((each["requestId"] for each in requests), None)

        request_id = until(asked, what="a question", within_s=RUN_S)
        there.home.post(f"/v1/requests/{request_id}/respond", {"response": "blue"})
        assert there.finish(run_id)[0]["result"] == "Answer: blue"


@pytest.mark.requirement("llm:task:spawn")
def test_it_spawns_a_child_and_waits_for_its_result(tmp_path: Path) -> None:
    scripts: dict[str, Script] = {
        "child": [Say("child-result-7")],
        "t": [
            Use("sessions_spawn", {"task": "script:child", "agentId": "llm"}),
            lambda seen: Use("sessions_wait", {"runIds": runs_in(seen)[:1], "timeoutSeconds": 60}),
            lambda seen: Say(f"handed on {seen.found('child-result-7')}"),
        ],
    }
    with place(tmp_path, scripts) as there:
        done = there.finish(there.spawn("t"))[0]
        assert done["result"] == "handed on ['child-result-7']"


@pytest.mark.requirement("llm:task:no-deliverable")
def test_saying_done_without_the_deliverable_is_not_done(tmp_path: Path) -> None:
    with place(tmp_path, {"t": [Say("All done, perfectly.")]}) as there:
        contract = {"artifacts": [{"path": "missing.json"}]}
        outcome = there.finish(there.spawn("t", verification=contract))[0]["outcome"]
        assert (outcome["status"], outcome["reason"]) == ("error", "verification_failed")


@pytest.mark.requirement("llm:followup")
def test_the_results_of_children_come_in_a_further_turn_of_the_same_conversation(
    tmp_path: Path,
) -> None:
    scripts: dict[str, Script] = {
        "child": [Wait("child"), Say("child-result-7")],
        "t": [
            Use("sessions_spawn", {"task": "script:child", "agentId": "llm"}),
            Say("the word is mirabelle; waiting"),
            lambda seen: Say(
                f"{'mirabelle' in str(seen.messages)} {'child-result-7' in seen.seen}"
            ),
        ],
    }
    with place(tmp_path, scripts) as there:
        run_id = there.spawn("t")
        there.home.until_phase(run_id, "ending", within_s=RUN_S)
        there.model.open("child")
        done = there.finish(run_id)[0]
        assert done["result"] == "True True"
        attempts = there.home.show(run_id)["attempts"]
        assert [each["turns"] for each in attempts] == [2]


@pytest.mark.requirement("llm:continue")
def test_an_ended_run_is_gone_on_with_in_a_copy_of_its_conversation(tmp_path: Path) -> None:
    scripts: dict[str, Script] = {
        "first": [Use("list"), Say("the word is mirabelle")],
        "second": [lambda seen: Say(f"{'mirabelle' in str(seen.messages)}", tokens=Tokens(5, 1))],
    }
    with place(tmp_path, scripts) as there:
        run_id = there.spawn("first")
        there.finish(run_id)
        more = {"message": "script:second"}
        again = there.home.post(f"/v1/runs/{run_id}/send", more)
        done = there.finish(again["runId"])[0]
        assert done["result"] == "True"
        assert done["usage"]["tokensIn"] == 5


@pytest.mark.requirement("llm:steer:daemon")
def test_a_message_is_heard_in_the_turn_that_is_under_way(tmp_path: Path) -> None:
    def until_heard(seen: Conversation) -> Say | Use:
        count = seen.seen.count("turn left")
        return Say(f"heard {count}") if count else Use("shell", {"command": "sleep 0.1"})

    # A message is on its way from the daemon to the worker for as long as the machine likes.
    with place(tmp_path, {"t": [Wait("gate"), Use("list"), *[until_heard] * 45]}) as there:
        run_id = there.spawn("t")
        there.model.until_waiting("gate")
        there.home.post(f"/v1/runs/{run_id}/steer", {"message": "turn left"})
        there.model.open("gate")
        done = there.finish(run_id)[0]
        assert done["result"] == "heard 1"
        assert [each["turns"] for each in there.home.show(run_id)["attempts"]] == [1]


@pytest.mark.requirement("llm:interrupt:daemon")
def test_an_interrupted_run_ends_with_its_last_words_and_no_process(tmp_path: Path) -> None:
    script: Script = [Use("shell", {"command": SLEEP}, text="half done")]
    with place(tmp_path, {"t": script}) as there:
        run_id = there.spawn("t")
        there.until_sleeping()
        there.home.post(f"/v1/runs/{run_id}/interrupt")
        done = there.finish(run_id)[0]
        outcome = done["outcome"]
        assert (outcome["status"], outcome["reason"]) == ("partial", "interrupted"), outcome
        assert done["result"] == "half done"
        until(lambda: not there.home.marked(), what="no process left")


@pytest.mark.requirement("llm:cancel")
def test_a_cancelled_run_leaves_no_child_of_its_shell(tmp_path: Path) -> None:
    script: Script = [Use("shell", {"command": f"setsid sleep 301 & {SLEEP}"})]
    with place(tmp_path, {"t": script}) as there:
        run_id = there.spawn("t")
        there.until_sleeping()
        there.home.post(f"/v1/runs/{run_id}/cancel", {})
        assert there.finish(run_id)[0]["outcome"]["status"] == "cancelled"
        until(lambda: not there.home.marked(), what="no process left")


@pytest.mark.requirement("llm:daemon-killed")
def test_a_killed_daemon_is_not_noticed_by_the_worker_and_nothing_is_asked_twice(
    tmp_path: Path,
) -> None:
    script: Script = [
        Use("shell", {"command": "echo $$ > pid; until [ -e go ]; do sleep 0.1; done"}),
        Use("report_progress", {"phase": "after the kill"}),
        Say("through", tokens=Tokens(10, 5)),
    ]
    with place(tmp_path, {"t": script}) as there:
        run_id = there.spawn("t")
        there.until_sleeping()
        there.home.kill()
        there.path("go").touch()
        there.home.start()
        done = there.finish(run_id)[0]
        assert (done["outcome"]["status"], done["result"]) == ("ok", "through")
        assert len(there.home.events(run_id, AttemptStarted)) == 1
        assert [each.place() for each in there.model.conversations] == [
            ("t", 0),
            ("t", 1),
            ("t", 2),
        ]
        audit(there.home, [run_id])


@pytest.mark.requirement("llm:scope")
def test_a_denied_shell_is_not_there_under_any_name_nor_for_a_child(tmp_path: Path) -> None:
    forced = Use("shell", {"command": "touch forbidden"}, is_declared=False)
    scripts: dict[str, Script] = {
        "child": [forced, lambda seen: Say(f"below: {seen.results[-1]}")],
        "t": [
            forced,
            Use("sessions_spawn", {"task": "script:child", "agentId": "llm"}),
            lambda seen: Use("sessions_wait", {"runIds": runs_in(seen)[:1], "timeoutSeconds": 60}),
            lambda seen: Say(seen.results[-1]),
        ],
    }
    with place(tmp_path, scripts) as there:
        # Denied under the name that another program has for it.
        done = there.finish(there.spawn("t", toolsDeny=["Bash"]))[0]
        assert "below: " in done["result"]
        assert "there is no tool shell" in done["result"]
        assert not there.path("forbidden").exists()
        told = {name for each in there.model.conversations for name in each.tools}
        assert "read" in told
        assert "shell" not in told


@pytest.mark.requirement("llm:session:named")
def test_its_session_is_on_record(tmp_path: Path) -> None:
    with place(tmp_path, {"t": [Say("done")]}) as there:
        run_id = there.spawn("t")
        there.finish(run_id)
        seen = [each.signal for each in there.home.events(run_id, SignalReceived)]
        named = [each.session_id for each in seen if isinstance(each, SessionSeen)]
        assert named == [f"{run_id}/1"]


@pytest.mark.requirement("llm:limits:daemon")
@pytest.mark.timeout(300)  # three programs start at once, on whatever machine this is
def test_three_runs_wait_out_a_provider_that_takes_no_more_and_all_end_well(
    tmp_path: Path,
) -> None:
    script: Script = [Fail(429, retry_after=1, times=None, for_s=3), Say("through")]
    with place(tmp_path, {"t": [Use("list"), *script]}) as there:
        run_ids = [there.spawn("t", label=f"n{n}") for n in range(WORKERS)]
        done = there.finish(*run_ids)
        assert [each["result"] for each in done] == ["through"] * WORKERS
        assert all(len(there.home.show(each)["attempts"]) == 1 for each in run_ids)
        refused = [each for each in there.model.requests if each.status == 429]
        assert len(refused) <= WORKERS + 4


def content(file: Path) -> bytes:
    """Empty for one that was deleted meanwhile: raw output goes once it is recorded."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


@pytest.mark.requirement("llm:key")
def test_the_key_is_in_no_file_of_the_daemons(tmp_path: Path) -> None:
    script: Script = [Use("shell", {"command": "env"}), lambda seen: Say(seen.results[-1][-500:])]
    config = AGENTS.replace('env = {{ OPENAI_API_KEY = "{key}" }}\n', "")
    with ScriptedModel({"t": script}) as model:
        agents = DEFAULTS + config.format(url=model.url)
        env = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": f"{KEY}-other"}
        with live_home(tmp_path, config=agents, env=env) as home:
            there = Place(home, model)
            done = there.finish(there.spawn("t"))[0]
            assert KEY not in done["result"]
            assert KEY not in model.conversations[-1].results[-1]
            files = [each for each in home.root.rglob("*") if each.is_file()]
            assert len(files) > 5
            assert [each for each in files if KEY.encode() in content(each)] == []


@pytest.mark.requirement("llm:unset-key")
def test_a_missing_key_or_provider_is_said_with_the_way_out(tmp_path: Path) -> None:
    config = """
[agents.keyless]
runtime = "llm"
model = "anthropic:scripted"

[agents.whose]
runtime = "llm"
model = "antropic:scripted"
"""
    with live_home(tmp_path, config=DEFAULTS + config) as home:
        for agent, said in (
            ("keyless", "ANTHROPIC_API_KEY is not set"),
            ("whose", "did you mean `anthropic:`?"),
        ):
            outcome = home.finish(home.spawn("anything", agent=agent))[0]["outcome"]
            assert outcome["status"] == "error"
            assert said in outcome["error"]
