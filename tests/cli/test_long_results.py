"""What is longer than an answer carries is printed whole, or the exit code says that it is not."""

import shutil
from pathlib import Path

import pytest
from tests.cli.cli_home import Home

NUMBERS = "".join(f"{number}\n" for number in range(1, 100_001))


@pytest.mark.requirement("results:whole", "cli:exit-codes")
def test_run_wait_and_result_print_a_long_result_whole(shared: Home) -> None:
    ran = shared.ok("run", "seq 100000", "--label", "numbers")
    assert ran.out == NUMBERS
    assert shared.ok("wait", "numbers").out == NUMBERS
    assert shared.ok("result", "numbers").out == NUMBERS


@pytest.mark.requirement("results:whole")
def test_json_has_the_whole_result_and_its_size(shared: Home) -> None:
    (item,) = shared.ok("run", "seq 100000", "--json").rows("completed")
    assert item["result"] == NUMBERS.rstrip("\n")
    assert (item["truncated"], item["resultBytes"]) == (False, len(NUMBERS) - 1)
    shown = shared.ok("result", str(item["runId"]), "--json").json
    assert (shown["result"], shown["truncated"]) == (item["result"], False)


@pytest.mark.requirement("results:whole", "cli:exit-codes")
def test_a_result_above_the_bound_is_no_silent_success(home: Home) -> None:
    home.environ["SUBAGENTS_RETENTION__MAX_RESULT_MB"] = "0.2"

    ran = home.cli("run", "seq 100000")

    assert ran.code == 10
    assert NUMBERS.endswith(ran.out)
    assert len(ran.out) > 200_000
    assert "the result is cut: the last" in ran.err
    (item,) = home.cli("wait", "last", "--json").rows("completed")
    assert (item["truncated"], item["resultBytes"]) == (True, len(NUMBERS))


@pytest.mark.requirement("results:file", "cli:exit-codes")
def test_a_result_whose_file_is_gone_is_said_with_what_is_left(home: Home) -> None:
    run = home.spawn("seq 100000")
    home.ok("wait", run)
    shutil.rmtree(Path(home.env()["SUBAGENTS_HOME"]) / "state" / "results")

    shown = home.cli("result", run)

    assert shown.code == 10
    assert NUMBERS.endswith(shown.out)
    assert "cannot be read" in shown.err
