"""The worker program of the runtime ``llm``, a real process, against a scripted model."""

import json
import signal
import time
from pathlib import Path
from typing import get_args

import pytest
from tests.e2e.live_home import until
from tests.e2e.llm_process import LlmHarness, LlmProcess, llm_harness
from tests.e2e.scripted_model import Fail, Say, Script, ScriptedModel, Tokens, Use, Wait

from subagents.extensions.llm.llm_assignment import Provider
from subagents.runtimes.output.worker_events import LINE_BYTES_MAX

LIMITED_S = 3.0
WORKERS = 5
SLEEP = "echo $$ > pid; sleep 300"


def kinds(worker: LlmProcess) -> list[str]:
    return [str(each["subagents"]) for each in worker.events]


def until_sleeping(harness: LlmHarness) -> None:
    pid = harness.work / "pid"
    until(lambda: pid.exists() and pid.read_text().strip(), what="the command")


@pytest.mark.requirement("llm:wires")
@pytest.mark.parametrize("provider", get_args(Provider))
def test_it_works_with_its_tools_on_every_wire(tmp_path: Path, provider: Provider) -> None:
    script: Script = [
        Use("write", {"path": "a/b.txt", "content": "hello\nworld"}, text="On it", thinking="hm"),
        (
            Use("edit", {"path": "a/b.txt", "old": "world", "new": "all"}),
            Use("shell", {"command": "cat a/b.txt; exit 3"}),
        ),
        lambda seen: Say(f"it was: {seen.results[-1]}", tokens=Tokens(100, 20, 50)),
    ]
    with (
        ScriptedModel({"t": script}) as model,
        llm_harness(tmp_path, model.url, provider) as harness,
    ):
        worker = harness.start("script:t")
        result = worker.finish()
        assert result == {"subagents": "result", "text": "it was: [exit code 3]\nhello\nall"}
        assert [each.wire for each in model.requests] == [model.requests[0].wire] * 3
        assert "You are a test." in model.conversations[0].seen
        assert kinds(worker)[:5] == ["session", "thinking", "text", "usage", "context"]
        ended = [each for each in worker.of("tool") if each["status"] == "ended"]
        assert [(each["name"], each.get("exitCode")) for each in ended] == [
            ("write", None),
            ("edit", None),
            ("shell", 3),
        ]
        assert all(each["durationMs"] >= 0 for each in ended)
        before, last = [each["tokensIn"] for each in worker.of("usage")][-2:]
        assert last - before == 150
        assert worker.of("context")[-1]["tokens"] == 170


@pytest.mark.requirement("llm:scope:construction")
def test_a_tool_that_is_not_allowed_is_not_told_to_the_model_and_cannot_be_called(
    tmp_path: Path,
) -> None:
    script: Script = [
        Use("shell", {"command": "touch tried"}, is_declared=False),
        lambda seen: Say(seen.results[-1]),
    ]
    with ScriptedModel({"t": script}) as model, llm_harness(tmp_path, model.url) as harness:
        result = harness.start("script:t", tools=("read", "list")).finish()
        assert model.conversations[0].tools == ["read", "list"]
        assert "there is no tool shell; there are read, list" in result["text"]
        assert not (harness.work / "tried").exists()


@pytest.mark.requirement("llm:events:small")
def test_however_much_is_written_each_event_stays_one(tmp_path: Path) -> None:
    script: Script = [Use("write", {"path": "big", "content": "é" * 2**20}), Say("x" * 2**20)]
    with ScriptedModel({"t": script}) as model, llm_harness(tmp_path, model.url) as harness:
        worker = harness.start("script:t")
        assert len(worker.finish()["text"]) < 2**18
        assert (harness.work / "big").stat().st_size == 2**21
        lines = [json.dumps(each, ensure_ascii=False).encode() for each in worker.events]
        assert all(len(line) < LINE_BYTES_MAX for line in lines)


@pytest.mark.requirement("llm:tools:arguments")
def test_a_file_whose_name_is_no_utf_8_is_listed(tmp_path: Path) -> None:
    script: Script = [Use("list", {}), lambda seen: Say(seen.results[-1])]
    with ScriptedModel({"t": script}) as model, llm_harness(tmp_path, model.url) as harness:
        (harness.work / "caf\udce9").touch()
        assert "caf? (0 bytes)" in harness.start("script:t").finish()["text"]


# -- the provider -------------------------------------------------------------------------------


@pytest.mark.requirement("llm:limits:waits")
@pytest.mark.parametrize(
    ("provider", "status"),
    [("anthropic", 429), ("anthropic", 503), ("anthropic", 529), ("openai", 429), ("google", 429)],
)
def test_a_provider_that_takes_no_more_is_waited_for_as_it_asks(
    tmp_path: Path, status: int, provider: Provider
) -> None:
    script: Script = [Use("list"), Fail(status, retry_after=1), Say("through")]
    with (
        ScriptedModel({"t": script}) as model,
        llm_harness(tmp_path, model.url, provider) as harness,
    ):
        worker = harness.start("script:t")
        assert worker.finish()["text"] == "through"
        error = worker.of("error")[0]
        assert (error["api"], error["status"]) == (True, status)
        assert 990 <= error["retryAfterMs"] <= 1200  # the loop counts from when it heard
        assert "waiting" in worker.of("system")[0]["text"]
        assert [each.status for each in model.requests] == [200, status, 200]
        assert not list(harness.limits.glob("*.json"))


@pytest.mark.requirement("llm:limits:date")
@pytest.mark.parametrize("form", ["date", "fraction"])
def test_a_date_and_a_fraction_in_retry_after_are_understood(tmp_path: Path, form: str) -> None:
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 300))
    at = date if form == "date" else "250.5"
    script: Script = [Fail(429, retry_after=at, times=None, for_s=100)]
    with ScriptedModel({"t": script}) as model, llm_harness(tmp_path, model.url) as harness:
        worker = harness.start("script:t")
        # Where it was not understood, the first wait is a second.
        assert 50_000 < worker.until("error")["retryAfterMs"] <= 301_000
        worker.send(type="interrupt", key="i1")
        worker.finish()


@pytest.mark.requirement("llm:limits:patience")
def test_a_wait_beyond_its_patience_ends_the_turn_as_a_limit(tmp_path: Path) -> None:
    script: Script = [Use("list", text="begun"), Fail(429, retry_after=900, times=None, for_s=60)]
    with ScriptedModel({"t": script}) as model, llm_harness(tmp_path, model.url) as harness:
        result = harness.start("script:t", limit_patience_s=30.0).finish()
        assert (result["isError"], result["isLimit"], result["text"]) == (True, True, "begun")
        assert 900_000 <= result["retryAfterMs"] < 902_000
        assert "takes no more" in result["error"]


@pytest.mark.requirement("llm:faults")
@pytest.mark.parametrize("status", [500, 0])
def test_faults_of_the_provider_and_the_network_are_tried_again_three_times(
    tmp_path: Path, status: int
) -> None:
    script: Script = [Fail(status, times=2), Say("through")]
    with ScriptedModel({"t": script}) as model, llm_harness(tmp_path, model.url) as harness:
        worker = harness.start("script:t")
        assert worker.finish()["text"] == "through"
        assert [each["retry"] for each in worker.of("error")] == ["1/3", "2/3"]


@pytest.mark.requirement("llm:faults:cut")
@pytest.mark.parametrize("half", ["torn", "short", "garbage"])
@pytest.mark.parametrize("provider", get_args(Provider))
def test_half_an_answer_is_no_answer_and_is_asked_for_again(
    tmp_path: Path, provider: Provider, half: str
) -> None:
    script: Script = [Fail(200, half=half, times=1), Say("through")]
    with (
        ScriptedModel({"t": script}) as model,
        llm_harness(tmp_path, model.url, provider) as harness,
    ):
        worker = harness.start("script:t")
        assert worker.finish() == {"subagents": "result", "text": "through"}
        assert [each["retry"] for each in worker.of("error")] == ["1/3"]
        assert len(model.requests) == 2


@pytest.mark.requirement("llm:faults:refused")
@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_request_that_is_refused_is_not_repeated_and_ends_the_turn(
    tmp_path: Path, status: int
) -> None:
    script: Script = [Fail(status, message="no such thing"), Say("never")]
    with ScriptedModel({"t": script}) as model, llm_harness(tmp_path, model.url) as harness:
        result = harness.start("script:t").finish()
        assert result["isError"] is True
        assert result["error"] == f"openai: {status}: no such thing"
        assert len(model.requests) == 1


@pytest.mark.requirement("llm:window")
def test_a_full_window_is_made_room_in_by_shortening_old_outputs(tmp_path: Path) -> None:
    many = "y" * 20_000
    script: Script = [
        Use("write", {"path": "big.txt", "content": many}),
        Use("read", {"path": "big.txt"}),
        Use("list"),
        Use("list"),
        Fail(400, message="This model's maximum context length is 8192 tokens."),
        lambda seen: Say(f"{len(seen.results[1])}"),
    ]
    with (
        ScriptedModel({"t": script}) as model,
        llm_harness(tmp_path, model.url, "openai") as harness,
    ):
        worker = harness.start("script:t")
        assert int(worker.finish()["text"]) < 1_000
        assert "the window is full" in worker.of("system")[0]["text"]


@pytest.mark.requirement("llm:limits:shared")
@pytest.mark.timeout(300)  # five programs start at once, on whatever machine this is
def test_five_workers_wait_together_for_a_provider_and_ask_it_little(tmp_path: Path) -> None:
    script: Script = [
        Use("list"),
        Fail(429, retry_after=1, times=None, for_s=LIMITED_S),
        Say("through"),
    ]
    with ScriptedModel({"t": script}) as model, llm_harness(tmp_path, model.url) as harness:
        workers = [harness.start("script:t", session=f"s{n}") for n in range(WORKERS)]
        assert [each.finish()["text"] for each in workers] == ["through"] * WORKERS
        refused = [each for each in model.requests if each.status == 429]
        # Each may have been on its way when the first was refused, on a slow machine for long, and
        # from then on one asks. Without a word between them each would, every second.
        assert len(refused) <= WORKERS + 2 * LIMITED_S + 1 < WORKERS * LIMITED_S
        told = [each["text"] for worker in workers for each in worker.of("system")]
        assert any("waiting" in text for text in told)


# -- messages -----------------------------------------------------------------------------------


@pytest.mark.requirement("llm:steer")
def test_a_message_goes_into_the_next_request_and_is_acknowledged_once(tmp_path: Path) -> None:
    script: Script = [
        Wait("gate"),
        Use("list"),
        lambda seen: Say(f"heard {seen.seen.count('turn left')}"),
    ]
    with ScriptedModel({"t": script}) as model, llm_harness(tmp_path, model.url) as harness:
        worker = harness.start("script:t")
        model.until_waiting("gate")
        worker.send(type="message", key="k1", text="turn left")
        worker.send(type="message", key="k1", text="turn left")
        worker.send(type="nonsense")
        model.open("gate")
        assert worker.finish()["text"] == "heard 1"
        assert worker.of("taken") == [{"subagents": "taken", "key": "k1"}]


@pytest.mark.requirement("llm:steer:last")
def test_a_message_that_comes_during_the_last_answer_is_answered_before_the_end(
    tmp_path: Path,
) -> None:
    script: Script = [Wait("gate"), Say("first answer"), lambda seen: Say(seen.seen[-9:])]
    with ScriptedModel({"t": script}) as model, llm_harness(tmp_path, model.url) as harness:
        worker = harness.start("script:t")
        model.until_waiting("gate")
        worker.send(type="message", key="k1", text="turn left")
        model.open("gate")
        assert worker.finish()["text"] == "turn left"
        assert [each["text"] for each in worker.of("text")] == ["first answer", "turn left"]


@pytest.mark.requirement("llm:interrupt")
def test_an_interrupt_ends_the_turn_and_its_command_and_the_session_goes_on(
    tmp_path: Path,
) -> None:
    script: Script = [
        (Use("shell", {"command": SLEEP}, text="running it"), Use("list")),
        lambda seen: Say(f"{seen.results[0]} {seen.seen.count('go on')}"),
    ]
    with ScriptedModel({"t": script}) as model, llm_harness(tmp_path, model.url) as harness:
        worker = harness.start("script:t")
        until_sleeping(harness)
        worker.send(type="interrupt", key="i1")
        result = worker.finish()
        assert (result["isError"], result["error"]) == (True, "interrupted")
        assert result["text"] == "running it"
        assert worker.processes() == []
        again = harness.start("go on", after="s1")
        assert "Interrupted: this call was stopped." in again.finish()["text"]


@pytest.mark.requirement("llm:interrupt")
def test_an_interrupt_hangs_up_on_a_model_that_is_still_thinking(tmp_path: Path) -> None:
    script: Script = [Wait("never"), Say("late")]
    with ScriptedModel({"t": script}) as model, llm_harness(tmp_path, model.url) as harness:
        worker = harness.start("script:t")
        model.until_waiting("never")
        worker.send(type="interrupt", key="i1")
        assert worker.finish()["error"] == "interrupted"


@pytest.mark.requirement("llm:interrupt")
def test_an_interrupt_ends_the_wait_for_a_provider(tmp_path: Path) -> None:
    script: Script = [Fail(429, retry_after=600, times=None, for_s=600)]
    with ScriptedModel({"t": script}) as model, llm_harness(tmp_path, model.url) as harness:
        worker = harness.start("script:t")
        worker.until("error")
        worker.send(type="interrupt", key="i1")
        assert worker.finish()["error"] == "interrupted"


# -- the session --------------------------------------------------------------------------------


@pytest.mark.requirement("llm:session:history")
@pytest.mark.parametrize("provider", get_args(Provider))
def test_a_further_turn_has_the_whole_conversation_and_goes_on_counting(
    tmp_path: Path, provider: Provider
) -> None:
    scripts: dict[str, Script] = {
        "first": [
            Use("list", tokens=Tokens(10, 1)),
            Say("the word is mirabelle", thinking="secretly", tokens=Tokens(10, 1)),
        ],
        "second": [lambda seen: Say(f"{'mirabelle' in str(seen.messages)}", tokens=Tokens(5, 1))],
    }
    with ScriptedModel(scripts) as model, llm_harness(tmp_path, model.url, provider) as harness:
        first = harness.start("script:first")
        first.finish()
        again = harness.start("script:second", after="s1")
        assert again.finish()["text"] == "True"
        assert again.of("usage")[-1]["tokensIn"] == 25
        assert again.of("session") == first.of("session")


@pytest.mark.requirement("llm:session:killed")
def test_a_killed_worker_is_gone_on_with_and_its_open_call_is_an_unknown_one(
    tmp_path: Path,
) -> None:
    script: Script = [
        Use("write", {"path": "done.txt", "content": "1"}),
        (Use("shell", {"command": SLEEP}), Use("list")),
        lambda seen: Say(" | ".join(seen.results[1:])),
    ]
    with ScriptedModel({"t": script}) as model, llm_harness(tmp_path, model.url) as harness:
        worker = harness.start("script:t")
        until_sleeping(harness)
        worker.process.send_signal(signal.SIGKILL)
        worker.process.wait(90)
        again = harness.start("go on, please", session="s2", after="s1")
        said = again.finish()["text"].split(" | ")
        assert len(said) == 2
        assert all("Outcome unknown" in each for each in said)
        assert "go on, please" in model.conversations[-1].seen
        # A conversation that was copied leaves the one it came from as it was.
        assert (harness.root / "s1.json").stat().st_size < (harness.root / "s2.json").stat().st_size


@pytest.mark.requirement("llm:session:unreadable")
def test_a_conversation_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    with ScriptedModel({}) as model, llm_harness(tmp_path, model.url) as harness:
        (harness.root / "s1.json").write_text("{")
        result = harness.start("go on", session="s2", after="s1").finish()
        assert result["isError"] is True
        assert str(harness.root / "s1.json") in result["error"]


@pytest.mark.requirement("llm:max-turns")
def test_too_many_requests_end_the_turn_with_what_was_said(tmp_path: Path) -> None:
    script: Script = [Use("list", text=f"step {n}") for n in range(9)]
    with ScriptedModel({"t": script}) as model, llm_harness(tmp_path, model.url) as harness:
        result = harness.start("script:t", max_turns=3).finish()
        assert (result["isError"], result["text"]) == (True, "step 2")
        assert "max_turns" in result["error"]
        assert len(model.requests) == 3


@pytest.mark.requirement("llm:terminated")
def test_a_terminated_worker_takes_its_commands_with_it(tmp_path: Path) -> None:
    script: Script = [Use("shell", {"command": f"setsid {SLEEP.split('; ')[1]} & {SLEEP}"})]
    with ScriptedModel({"t": script}) as model, llm_harness(tmp_path, model.url) as harness:
        worker = harness.start("script:t")
        until_sleeping(harness)
        worker.process.send_signal(signal.SIGTERM)
        assert worker.process.wait(90) == 128 + signal.SIGTERM
        assert worker.processes() == []
