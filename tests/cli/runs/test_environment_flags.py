"""A person's shell goes with their commands: by itself, with ``--env`` and with ``--env-file``."""

from pathlib import Path

import pytest
from tests.cli.cli_home import Home

from subagents.cli.runs.environment_flags import environment
from subagents.errors import UsageError

SECRET = "tok-0123456789abcdef"


@pytest.mark.requirement("environment:given")
def test_a_name_is_taken_from_the_shell_and_flags_are_stronger_than_files(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# words\nexport A='one two'\n\nB=2\nHERE\nC = 3 # not a comment\n")
    found = environment(["B=flag", "D"], [str(file)], {"HERE": "h", "D": "d=d", "PATH": "/p"})

    assert found.shell == {"PATH": "/p"}
    assert found.given == {
        "A": "one two",
        "B": "flag",
        "HERE": "h",
        "C": "3 # not a comment",
        "D": "d=d",
    }


@pytest.mark.requirement("environment:given")
def test_what_is_wrong_is_named_with_its_line_and_without_its_value(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("A=1\nNOT_SET\n")
    with pytest.raises(UsageError, match=r"--env-file .*:2: NOT_SET is not set here"):
        environment([], [str(file)], {})
    with pytest.raises(UsageError, match="--env: '1A' is no name") as refused:
        environment([f"1A={SECRET}"], [], {})
    assert SECRET not in str(refused.value)
    with pytest.raises(UsageError, match="--env-file nowhere: No such file"):
        environment([], ["nowhere"], {})


@pytest.mark.requirement("environment:shell")
def test_a_command_finds_the_programs_of_the_shell_that_called(shared: Home) -> None:
    programs = shared.work / "venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "mine").write_text("#!/bin/sh\necho $VIRTUAL_ENV $FOO\n")
    (programs / "mine").chmod(0o755)
    shell = {
        "PATH": f"{programs}:{shared.env()['PATH']}",
        "VIRTUAL_ENV": str(programs.parent),
        "FOO": "bar",
    }

    done = shared.cli("run", "mine", env=shell)
    assert (done.code, done.out) == (0, f"{programs.parent}\n")
    done = shared.cli("run", "--env", "FOO", "mine", env=shell)
    assert done.out == f"{programs.parent} bar\n"
    done = shared.cli("run", "true", "--verify-cmd", "mine", env=shell)
    assert done.code == 0, done


@pytest.mark.requirement("environment:kept", "environment:redacted")
def test_secrets_last_over_a_kill_and_a_retry_and_are_in_no_record(home: Home) -> None:
    (home.work / "env").write_text(f"API_TOKEN={SECRET}\n")
    task = 'test "$API_TOKEN" = tok-"$REST" && echo "it is $API_TOKEN"; exit 3'
    first = home.spawn("sleep 60", "--label", "first")
    last = home.spawn(
        *(task, "--after", "first", "--on-dependency-failure", "run", "--retry", "1"),
        *("--retry-delay", "1ms", "--env-file", "env", "--env", f"REST={SECRET[4:]}"),
    )
    home.kill_daemon()
    home.ok("up")
    home.ok("cancel", first)
    assert home.cli("wait", last).code == 5
    again = home.ok("retry", last).out.strip()
    home.cli("wait", again)

    for run in (last, again):
        for view in (("result",), ("log",), ("why",), ("show", "--json"), ("timeline",)):
            shown = home.cli(view[0], run, *view[1:])
            assert SECRET not in shown.out + shown.err
        assert "it is [redacted]" in home.ok("result", run).out
        assert "API_TOKEN" in home.ok("show", run, "--json").out
    home.down()
    state = home.root / "h"
    kept = [
        each
        for each in state.rglob("*")
        if each.is_file() and SECRET[4:].encode() in each.read_bytes()
    ]
    assert {each.parent.name for each in kept} == {"environments"}
    assert {each.stat().st_mode & 0o777 for each in kept} == {0o600}


@pytest.mark.requirement("environment:agents")
def test_a_worker_brings_no_variables_for_what_it_spawns(shared: Home) -> None:
    done = shared.cli("run", "subagents spawn --env FOO=1 true 2>&1; true")
    assert "are taken from the operator only" in done.out
