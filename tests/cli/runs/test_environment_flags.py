"""A person's shell goes with their commands: by itself, with ``--env`` and with ``--env-file``."""

from pathlib import Path

import pytest
from tests.cli.cli_home import Home, until

from subagents.cli.runs.environment_flags import environment
from subagents.config.paths import Paths
from subagents.errors import NotFound, UsageError

SECRET = "tok-0123456789abcdef"


@pytest.mark.requirement("environment:given")
def test_a_name_is_taken_from_the_shell_and_flags_are_stronger_than_files(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# words\nexport A='one two'\n\nB=2\nHERE\nC = 3 # why\n")
    found = environment(["B=flag", "D"], [str(file)], {"HERE": "h", "D": "d=d", "PATH": "/p"})

    assert found.shell == {"PATH": "/p"}
    assert found.given == {
        "A": "one two",
        "B": "flag",
        "HERE": "h",
        "C": "3",
        "D": "d=d",
    }


@pytest.mark.requirement("environment:given")
def test_what_is_wrong_is_named_with_its_line_and_without_its_value(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text(f"A=1\n{SECRET}\n")
    with pytest.raises(UsageError, match=r"--env-file .*:2: ") as refused:
        environment([], [str(file)], {})
    assert SECRET not in str(refused.value)
    with pytest.raises(UsageError, match="--env: NOT_SET is not set here"):
        environment(["NOT_SET"], [], {})
    for text in (SECRET, f"ghp_{'a1B2' * 9}", f" {SECRET}", f"{SECRET}\n"):
        with pytest.raises(UsageError, match="--env: ") as refused:
            environment([text], [], {})
        assert text.strip() not in f"{refused.value} {refused.value.hint}"
    with pytest.raises(UsageError, match="--env: '1A' is no name") as refused:
        environment([f"1A={SECRET}"], [], {})
    assert SECRET not in str(refused.value)
    with pytest.raises(NotFound, match="--env-file nowhere: there is no such file"):
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


@pytest.mark.requirement("environment:shell")
def test_what_the_shell_lacks_is_not_set_whatever_the_daemon_has(home: Home) -> None:
    home.ok("up", env={"NO_COLOR": "1", "LC_PAPER": "C"})
    show = 'echo "${NO_COLOR-unset} ${LC_PAPER-unset}"'

    lacking = {name: v for name, v in home.env().items() if name not in ("NO_COLOR", "LC_PAPER")}
    assert home.ok("run", show, env={**lacking, "LC_PAPER": ""}).out == "unset \n"


@pytest.mark.requirement("environment:secrets", "environment:redacted")
def test_a_secret_by_name_reaches_the_worker_and_no_file_also_over_a_kill(home: Home) -> None:
    place = home.root / "place"
    place.write_text(f"{SECRET}\n")
    config = Paths.resolve(home.env()).config_file
    config.parent.mkdir(parents=True)
    config.write_text(
        f"""
        [secrets.stripe]
        command = ["cat", "{place}"]
        [agents.payer]
        runtime = "command"
        command = ["sh", "-c", "{{task}}"]
        env = {{CONFIGURED = "secret:stripe"}}
        """
    )
    task = (
        f'test "$GIVEN" = {SECRET[:8]}"$REST" && echo "it is $GIVEN" >&2; until [ -e go ]; do :; '
        'done; echo "and $CONFIGURED"'
    )
    run = home.spawn(
        *(task, "--agent", "payer", "--env", "GIVEN=secret:stripe"),
        *("--env", f"REST={SECRET[8:]}", "--verify-cmd", 'test -n "$GIVEN"'),
    )
    until(lambda: "it is [redacted]" in home.ok("log", run).out, "it began")
    home.kill_daemon()
    place.unlink()  # asked again, it would not answer
    home.ok("up")
    place.write_text(f"{SECRET}\n")
    (home.work / "go").touch()
    assert home.cli("wait", run).code == 0

    for view in (("result",), ("log",), ("why",), ("show", "--json"), ("timeline",)):
        shown = home.cli(view[0], run, *view[1:])
        assert SECRET not in shown.out + shown.err
    assert home.ok("result", run).out == "and [redacted]\n"
    home.down()
    kept = [
        each
        for each in (home.root / "h").rglob("*")
        if each.is_file() and SECRET.encode() in each.read_bytes()
    ]
    assert {each.parent.parent.name for each in kept} <= {"attempts", run}  # the worker's own words


@pytest.mark.requirement("environment:secrets")
def test_a_secret_that_is_not_there_ends_the_run_with_its_name_and_the_way_out(
    shared: Home,
) -> None:
    done = shared.cli("run", "--env", "A=secret:nobody", "--retry", "3", "true")

    assert done.code == 5
    assert 'secret "nobody"' in done.err
    assert "secrets.nobody.command" in done.err
    bad = shared.cli("run", "--env", "A=secret:not a name", "true")
    assert (bad.code, bad.err.count("is no name of a secret")) == (2, 1)
