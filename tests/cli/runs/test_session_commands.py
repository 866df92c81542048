"""``subagents continue``, ``interrupt`` and ``attach``: from a shell, a pipe and a terminal."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from tests.cli.cli_home import Home, temporary_home, until
from tests.cli.terminal import terminal

CONFIG: Final = """
[agents.talker]
runtime = "scripted"
script = [{ print = "at work" }, { result = "first answer" }]

[agents.stays]
runtime = "scripted"
script = [{ print = "at work" }, { result = "so far" }, { hang = true }]

[agents.fails]
runtime = "scripted"
script = [{ result = "x" }, { continued = true }, { result = "y" }, { exit = 3 }]
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with temporary_home(tmp_path_factory.mktemp("sessions")) as found:
        (found.work / "subagents.toml").write_text(CONFIG)
        found.ok("up")
        yield found


def ended(home: Home, label: str, agent: str = "talker") -> str:
    """The id of a run that ended."""
    run_id = home.spawn("work", "--agent", agent, "--label", label)
    home.ok("wait", run_id)
    return run_id


def at_work(home: Home, label: str) -> str:
    run_id = home.spawn("work", "--agent", "stays", "--label", label)
    until(lambda: home.field(run_id, "phase") == "running", "it works")
    return run_id


@pytest.mark.requirement("cli:continue")
def test_an_ended_run_is_gone_on_with_and_the_result_printed(shared: Home) -> None:
    first = ended(shared, "c1")
    done = shared.ok("continue", "c1", "and now?")

    assert done.out == "and now?\n"
    assert f"c1 continues the session of {first}" in done.err
    assert "c1: ok" in done.err


@pytest.mark.requirement("budget:raised", "cli:continue", "cli:steer")
def test_a_budget_is_raised_with_a_message_to_a_live_run_and_to_one_that_ended(
    shared: Home,
) -> None:
    limits = ("--max-tokens", "1000", "--max-cost", "1")
    run_id = shared.spawn("work", "--agent", "stays", "--label", "b1", *limits)
    until(lambda: shared.field(run_id, "phase") == "running", "it works")
    shared.ok("steer", run_id, "go on", "--add-tokens", "500", "--add-cost", "0.5")
    budget: Any = shared.field(run_id, "budget")
    alone = shared.cli("continue", run_id, "--add-tokens", "5")
    shared.ok("cancel", "--turn", run_id)
    shared.cli("wait", run_id)
    later = shared.ok("continue", run_id, "more", "-d", "--add-cost", "2").out.strip()
    more: Any = shared.field(later, "budget")

    assert (budget["maxTokens"], budget["maxCostUsd"]) == (1_500, 1.5)
    assert "--add-tokens needs a message" in alone.err
    assert (more["maxTokens"], more["maxCostUsd"]) == (1_500, 3.5)
    assert "raised by 500 tokens and $0.50" in shared.ok("why", run_id, "--verbose").out


@pytest.mark.requirement("cli:continue")
def test_detached_it_prints_the_id_and_a_failed_end_has_its_exit_code(shared: Home) -> None:
    first = ended(shared, "c2", "fails")
    run_id = shared.ok("continue", first, "go", "on", "-d").out.strip()
    document = shared.cli("continue", "c2", "-", "--detach", "--json", stdin="from stdin").json
    failed = shared.cli("continue", "c2", "again")

    assert run_id.startswith("r-")
    assert (document["status"], document["continues"]) == ("accepted", run_id)
    assert (failed.code, failed.out) == (5, "y\n")
    task = shared.ok("show", run_id, "--json").json["spec"]
    assert isinstance(task, dict)
    assert task["task"] == "go on"


@pytest.mark.requirement("cli:continue")
@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("continue", "nobody", "x"), "no run"),
        (("continue", "c3", ""), "task"),
        (("cancel", "--turn", "c3"), "there is no turn to interrupt"),
        (("attach", "nobody"), "no run"),
    ],
)
def test_what_cannot_be_gone_on_with_is_refused_with_the_reason(
    shared: Home, argv: tuple[str, ...], says: str
) -> None:
    if shared.cli("show", "c3").code:
        ended(shared, "c3")
    done = shared.cli(*argv)

    assert done.code != 0
    assert says in done.err


@pytest.mark.requirement("cli:interrupt")
def test_an_interrupted_run_is_partial_and_can_be_gone_on_with(shared: Home) -> None:
    run_id = at_work(shared, "i1")
    said = shared.ok("cancel", "i1", "--turn", "--reason", "wrong branch")
    waited = shared.cli("wait", "i1")
    why = shared.ok("why", "i1").out
    more = shared.ok("continue", "i1", "the right one")

    assert said.out == f"{run_id}: interrupting\n"
    assert said.err == f"  to continue: subagents continue {run_id} MESSAGE\n"
    assert (waited.code, waited.out) == (5, "so far\n")
    assert "interrupted by main: wrong branch" in why
    assert more.out == "the right one\n"


@pytest.mark.requirement("cli:attach:pipe")
def test_lines_from_a_pipe_are_messages_and_its_end_waits_for_the_work(shared: Home) -> None:
    first = ended(shared, "a1")
    done = shared.ok("continue", "a1", stdin="and now?\n\n")
    quiet = shared.ok("continue", "a1", "--tail", "0", stdin="")
    failed = shared.cli("continue", ended(shared, "a2", "fails"), stdin="again\n")

    lines = done.out.splitlines()
    assert any(line.endswith("  at work") for line in lines)
    assert any(line.endswith("> task from main: and now?") for line in lines)
    assert lines[-1].endswith("run ended: ok")
    assert f"continues the session of {first}" in done.err
    assert quiet.out == ""
    assert failed.code == 5


@pytest.mark.requirement("cli:attach:pipe")
def test_a_message_from_a_pipe_that_is_refused_ends_it_with_the_reason(shared: Home) -> None:
    shared.ok("run", "true", "--agent", "command", "--label", "deaf")
    done = shared.cli("continue", "deaf", stdin="more\n")
    only_watched = shared.cli("continue", "deaf", stdin="")

    assert done.code == 1
    assert 'runtime "command" cannot continue a session' in done.err
    assert "hint: start again: subagents retry" in done.err
    assert only_watched.code == 0


@pytest.mark.requirement("cli:attach:pipe")
def test_a_message_from_a_pipe_that_is_no_utf_8_is_refused_in_words(shared: Home) -> None:
    done = shared.cli("continue", ended(shared, "a4"), stdin="\udcff\n")

    assert (done.code, "must be valid UTF-8" in done.err) == (2, True)


@pytest.mark.requirement("cli:attach:pipe")
def test_a_reader_of_json_sees_pages_and_answers(shared: Home) -> None:
    ended(shared, "a3")
    done = shared.ok("continue", "a3", "--json", stdin="more\n")

    assert '"status":"accepted"' in done.out
    assert done.out.count('"nextSeq"') >= 2


@pytest.mark.requirement("cli:attach:terminal")
def test_on_a_terminal_messages_go_into_the_turn_and_over_to_the_next_run(shared: Home) -> None:
    first = at_work(shared, "t1")
    with terminal(shared, "continue", "t1") as screen:
        screen.until("› ", "at work")
        screen.type("use the other branch\r")
        screen.until("t1 is at work and has the message (steered)", "message from main")
        screen.type("/interrupt\r")
        screen.until(f"{first}: interrupting", "run ended: failed (interrupted)")
        screen.type("go on please\r")
        screen.until(f"t1 continues the session of {first}", "> task from", "run ended: ok")
        screen.type("\x04")
        assert screen.code() == 0

    assert "Detached; the session is kept. Come back: subagents continue r-" in screen.shown


@pytest.mark.requirement("cli:attach:terminal")
@pytest.mark.parametrize("keys", ["\x04", "\x03", "/detach\r"])
def test_whoever_leaves_leaves_the_work_going_on(shared: Home, keys: str) -> None:
    run_id = at_work(shared, f"t2{len(keys)}{ord(keys[0])}")
    with terminal(shared, "continue", run_id) as screen:
        screen.until("› ", "at work")
        if keys == "\x03":
            screen.interrupt("Detached")
        else:
            screen.type(keys)
        assert screen.code() == 0

    assert f"Detached; the work continues. Come back: subagents continue {run_id}" in screen.shown
    assert shared.field(run_id, "phase") == "running"
    shared.ok("cancel", run_id)


@pytest.mark.requirement("cli:attach:follows")
def test_who_is_attached_follows_a_run_that_somebody_else_started(shared: Home) -> None:
    ended(shared, "t3")
    with terminal(shared, "continue", "t3") as screen:
        screen.until("run ended: ok")
        shared.ok("continue", "t3", "said elsewhere")
        screen.until("task from main: said elsewhere", "  said elsewhere")
        screen.type("\x04")
        assert screen.code() == 0
