"""On a terminal ``run`` shows what the worker says, and takes the answer to what it asks."""

import pytest
from tests.cli.cli_home import Home, gate, until
from tests.cli.terminal import terminal

from subagents.cli.runs.live_output import LiveOutput
from subagents.client.client import Client, Document, Query


@pytest.mark.requirement("cli:live-output")
def test_what_the_worker_says_is_shown_before_it_ends_and_its_result_once(shared: Home) -> None:
    task = f"echo first of two; {gate('seen')}; echo second of two"
    with terminal(shared, "run", task, "--label", "talks") as screen:
        screen.until("first of two\r\n")
        assert shared.field("talks", "outcome") is None
        (shared.work / "seen").touch()
        assert screen.code() == 0
    shown = screen.lines
    assert (shown.count("first of two"), shown.count("second of two")) == (1, 1)


@pytest.mark.requirement("cli:live-output")
def test_a_result_with_a_line_of_stderr_behind_it_is_not_printed_again(shared: Home) -> None:
    task = f"echo said; {gate('after')}; echo noise >&2"
    with terminal(shared, "run", task, "--label", "mixed") as screen:
        screen.until("said\r\n")
        (shared.work / "after").touch()
        assert screen.code() == 0
    assert (screen.lines.count("said"), screen.lines.count("noise")) == (1, 1)


@pytest.mark.requirement("cli:live-output")
def test_listening_holds_the_line_and_ends_with_all_that_was_said(
    shared: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in shared.env().items():
        monkeypatch.setenv(name, value)
    run = shared.spawn(f"echo early; {gate('go-on')}; echo late")
    asked: list[Query] = []
    get = Client.get

    def counted(
        self: Client, path: str, query: Query | None = None, *, timeout_s: float | None = None
    ) -> Document:
        asked.append(query or {})
        return get(self, path, query, timeout_s=timeout_s)

    monkeypatch.setattr(Client, "get", counted)
    spoken = LiveOutput(run)
    with spoken.listening():
        heard: list[str] = []

        def has_spoken() -> bool:
            heard.extend(line.text for line in spoken.new())
            return bool(heard)

        until(has_spoken, "it speaks")
        before = len(asked)
        shared.ok("list")  # meanwhile nothing is said, and nothing asked
        assert len(asked) <= before + 1
        (shared.work / "go-on").touch()
        shared.ok("wait", run)
    heard += [line.text for line in spoken.new()]
    assert heard == ["early", "late"]
    assert all(query["waitSeconds"] for query in asked[:-1])
    assert spoken.ended_with("early\nlate\n")


class Said(LiveOutput):
    def __init__(self, *lines: str) -> None:
        super().__init__("r-1")
        self._kept = "".join(f"{line}\n" for line in lines)


@pytest.mark.requirement("cli:live-output")
@pytest.mark.parametrize(
    ("said", "result", "stands"),
    [
        (("a", "b"), "a\nb\n", True),
        (("x", "a", "b"), "a\nb", True),
        (("a", "err", "b", "err"), "a\nb", True),
        (("a", *["err"] * 10), "a", True),
        (("a", *["err"] * 11), "a", False),
        (("a", *["err"] * 6, "b", *["err"] * 6), "a\nb", False),
        (("b", "a"), "a\nb", False),
        (("a",), "a\nb", False),
        (("a",), " ", False),
        ((), "a", False),
    ],
)
def test_a_result_stands_there_when_few_other_lines_are_among_and_behind_it(
    said: tuple[str, ...], result: str, *, stands: bool
) -> None:
    assert Said(*said).ended_with(result) is stands


@pytest.mark.requirement("cli:answer-in-place")
@pytest.mark.parametrize(("typed", "told"), [("2\n", "lite"), ("my own\n", "my own")])
def test_a_question_is_answered_where_it_is_shown(shared: Home, typed: str, told: str) -> None:
    task = 'a=$(subagents ask "which?" --option postgres --option lite); echo got "$a"'
    with terminal(shared, "run", task, "--label", "asks") as screen:
        screen.until("1  postgres", "2  lite", "answer (Enter = later): ")
        screen.type(typed)
        assert screen.code() == 0
    assert f"got {told}" in screen.shown


@pytest.mark.requirement("cli:answer-in-place")
def test_a_wait_for_all_runs_of_a_session_draws_them_and_passes_questions_on(shared: Home) -> None:
    alone = {"SUBAGENTS_SESSION_KEY": "agent:main:alone", "NO_COLOR": "1"}
    task = 'subagents ask "which?" --option postgres'
    shared.ok("spawn", task, "--label", "unnamed", env=alone)
    with terminal(shared, "wait", env=alone) as screen:
        screen.until("unnamed asks: which?", "answer (Enter = later): ")
        screen.type("1\n")
        assert screen.code() == 0
    assert "unnamed: ok" in screen.shown


@pytest.mark.requirement("cli:answer-in-place")
def test_a_question_that_somebody_else_answers_is_let_go_of(shared: Home) -> None:
    task = 'a=$(subagents ask "which?"); echo got "$a"'
    with terminal(shared, "run", task, "--label", "elsewhere") as screen:
        screen.until("answer (Enter = later): ")
        shared.ok("answer", "elsewhere", "by another")
        assert screen.code() == 0
    assert "it is not open any more" in screen.shown
    assert "got by another" in screen.shown
    refused = shared.cli("answer", "elsewhere", "twice").err
    assert ("subagents retry" in refused, "subagents continue" in refused) == (True, False)


@pytest.mark.requirement("cli:answer-in-place")
def test_an_empty_line_leaves_a_question_for_later(shared: Home) -> None:
    task = 'a=$(subagents ask "which?"); echo got "$a"'
    with terminal(shared, "run", task, "--label", "later") as screen:
        screen.until("answer (Enter = later): ")
        screen.type("\n")
        screen.until("left open; to answer it: subagents answer")
        shared.ok("answer", "later", "afterwards")
        assert screen.code() == 0
    assert "got afterwards" in screen.shown
