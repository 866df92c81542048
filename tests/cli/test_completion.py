"""What a shell is offered, and that a shell can use it."""

import subprocess
from pathlib import Path

import pytest
from tests.cli.cli_home import Home

from subagents.cli.completion import SCRIPTS, complete


def words(*typed: str) -> list[str]:
    return [line.partition("\t")[0] for line in complete(typed)]


@pytest.mark.requirement("cli:completion")
def test_commands_and_those_below_them_are_offered() -> None:
    assert words("spa") == ["spawn"]
    assert {"run", "config", "help", "completion"} <= set(words(""))
    assert words("help", "exit") == ["exit-codes"]
    assert words("bogus", "") == []


@pytest.mark.requirement("cli:completion")
def test_flags_and_the_words_they_take_are_offered() -> None:
    assert words("run", "--dep") == ["--dependency-timeout"]
    assert "--color" in words("list", "--")
    assert words("run", "--isolation", "") == ["none", "worktree", "sandbox"]
    assert words("run", "--color", "a") == ["auto", "always"]
    assert words("completion", "") == ["bash", "zsh", "fish"]
    assert words("run", "--cwd", "") == []


@pytest.mark.requirement("cli:completion")
def test_a_tasks_own_words_are_not_completed() -> None:
    assert words("run", "--", "spa") == []


@pytest.mark.requirement("cli:completion")
def test_without_a_daemon_no_run_is_offered_and_none_is_started(home: Home) -> None:
    assert home.ok("__complete", "show", "").out == ""
    assert home.ok("__complete", "run", "--agent", "").out == ""
    assert not (home.root / "h" / "state").exists()


@pytest.mark.requirement("cli:completion")
def test_runs_agents_and_tags_of_the_running_daemon_are_offered(shared: Home) -> None:
    run = shared.spawn("true", "--label", "nightly", "--tag", "db")
    shared.spawn("echo 'two words'")

    offered = shared.ok("__complete", "show", "").out
    assert [line.partition("\t")[0] for line in offered.splitlines()][:1] == ["last"]
    assert {"nightly", run} <= {line.partition("\t")[0] for line in offered.splitlines()}
    assert "two words\t" not in offered
    assert shared.ok("__complete", "run", "x", "--after", "nig").out.startswith("nightly\t")
    assert shared.ok("__complete", "run", "--tag", "").out.split() == ["db"]
    assert "command" in shared.ok("__complete", "run", "--agent", "").out.split()


@pytest.mark.requirement("cli:completion")
def test_bash_completes_with_the_printed_script(shared: Home) -> None:
    script = shared.ok("completion", "bash").out
    shared.spawn("true", "--label", "tabbed")
    asked = """
        COMP_WORDS=(subagents show tab); COMP_CWORD=2; _subagents; echo "${COMPREPLY[@]}"
        COMP_WORDS=(subagents show ""); COMP_CWORD=2; _subagents; echo "${COMPREPLY[0]}"
        """
    done = subprocess.run(
        ["bash", "--norc", "-c", script + asked],
        capture_output=True,
        text=True,
        env=shared.env(),
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["tabbed", "last"]


@pytest.mark.requirement("cli:completion")
def test_each_script_asks_for_every_tab_and_is_all_that_is_written(
    home: Home, tmp_path: Path
) -> None:
    before = {file for file in tmp_path.rglob("*") if file.is_file()}
    for shell, script in SCRIPTS.items():
        assert home.ok("completion", shell, env={"HOME": str(tmp_path)}).out == script
        assert " __complete " in script
    assert {file for file in tmp_path.rglob("*") if file.is_file()} == before
