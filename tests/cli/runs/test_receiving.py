"""``wait`` and ``inbox``: what came in is printed, once."""

import subprocess

import pytest
from tests.cli.cli_home import Home, until


@pytest.mark.requirement("cli:wait", "cli:exit-codes")
def test_wait_ends_with_8_at_its_timeout_and_with_5_after_a_cancel(shared: Home) -> None:
    run = shared.spawn("sleep 60", "--label", "slow")
    done = shared.cli("wait", "slow", "--timeout", "200ms", "--json")
    assert done.code == 8
    assert [each["runId"] for each in done.rows("pending")] == [run]
    assert shared.ok("cancel", "slow").out == f"{run}: cancelling\n"
    done = shared.cli("wait", run, "--json")
    assert done.code == 5
    assert done.rows("completed")[0]["outcome"]["status"] == "cancelled"


@pytest.mark.requirement("cli:wait")
def test_wait_any_is_content_with_the_first(shared: Home) -> None:
    slow = shared.spawn("sleep 60")
    quick = shared.spawn("echo quick")
    done = shared.cli("wait", slow, quick, "--any", "--json")
    assert done.code == 0
    assert [each["runId"] for each in done.rows("completed")] == [quick]
    shared.ok("cancel", slow)


@pytest.mark.requirement("cli:wait", "cli:exit-codes")
def test_waiting_for_an_unknown_run_names_it_and_ends_with_3(shared: Home) -> None:
    done = shared.cli("wait", "no-such-run")
    assert done.code == 3
    assert "no-such-run" in done.err


@pytest.mark.requirement("cli:inbox")
def test_a_message_is_shown_once_and_what_was_waited_for_not_again(home: Home) -> None:
    home.ok("up")
    waited = home.spawn("echo one")
    home.ok("wait", waited)
    assert home.ok("inbox", "--json").rows("messages") == []
    run = home.spawn("echo two")
    until(lambda: home.field(run, "outcome"), "the run has ended")
    first = home.ok("inbox", "--json").rows("messages")
    assert [each["runId"] for each in first] == [run]
    assert home.ok("inbox", "--json").rows("messages") == []
    everything = home.ok("inbox", "--all", "--json").rows("messages")
    assert {each["runId"] for each in everything} == {waited, run}


@pytest.mark.requirement("cli:inbox:lines")
def test_a_person_reads_a_line_for_each_message_and_a_worker_the_whole_texts(home: Home) -> None:
    home.ok("up")
    run = home.spawn("echo the first line; echo the second", "--label", "talks")
    bad = home.spawn("exit 3", "--label", "fails")
    question = home.spawn("subagents ask 'Which one?' --option a --option b", "--label", "asks")
    until(lambda: len(home.ok("inbox", "--all", "--json").rows("messages")) == 3, "all are there")
    shown = home.ok("inbox", "--all")
    lines = {line.split()[2]: line.split() for line in shown.out.splitlines()[1:]}
    assert lines[run][1] == "ok"
    assert " ".join(lines[run][6:]) == "the first line"
    assert lines[bad][1] == "failed"
    assert " ".join(lines[bad][6:]) == "exit code 3"
    assert " ".join(lines[question][6:]) == "Which one? (a / b)"
    assert f"subagents answer {question}:q1 TEXT" in shown.err
    assert "the second" in home.ok("inbox", "--all", "--full").out
    assert "the second" in home.ok("inbox", "--all", env={"SUBAGENTS_RUN_ID": run}).out
    home.ok("cancel", question)


@pytest.mark.requirement("cli:inbox:broken-pipe")
@pytest.mark.parametrize("how", [[], ["--full"]])
def test_what_a_reader_that_went_away_did_not_take_stays_unread(home: Home, how: list[str]) -> None:
    home.ok("up")
    for number in range(3):
        home.spawn(f"echo {number}")
    until(lambda: len(home.ok("inbox", "--all", "--json").rows("messages")) == 3, "all are there")
    with home.start("inbox", *how) as reading:
        done = subprocess.run(
            ["head", "-2"], stdin=reading.stdout, capture_output=True, text=True, check=True
        )
        assert reading.stdout is not None
        reading.stdout.close()
        assert reading.wait(60) == 141
    messages = home.ok("inbox", "--all", "--json").rows("messages")
    assert str(messages[0]["runId"]) in done.stdout
    assert [each["consumedAt"] is not None for each in messages] == [True, False, False]
    assert [each["runId"] for each in home.ok("inbox", "--json").rows("messages")] == [
        each["runId"] for each in messages[1:]
    ]
