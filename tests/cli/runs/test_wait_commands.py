"""``wait`` and ``inbox``: what came in is printed, once."""

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
