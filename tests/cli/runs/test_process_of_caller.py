"""A person's run has its shell's umask, nice, limits, processors, whoever started the daemon."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

import pytest
from tests.cli.cli_home import Home, temporary_home

DAEMONS_NICE: Final = 5
SHOWS: Final = "umask; nice; ulimit -S -n; touch made; stat -c %a made; rm -f made"
CPU: Final = max(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home whose daemon was started by somebody with habits of their own."""
    with temporary_home(tmp_path_factory.mktemp("odd")) as home:
        deep = "export SUBAGENTS_AGENTS__DEFAULTS__SUBAGENTS__MAX_SPAWN_DEPTH=2"
        said(home, f"{deep}; umask 077; ulimit -S -n 500", f"nice -n {DAEMONS_NICE}", "up")
        yield home


def said(home: Home, shell: str, before: str, *words: str) -> str:
    """What the command says when it is called so."""
    done = subprocess.run(
        [
            "sh",
            "-c",
            f'{shell}; exec {before} "$@"',
            "sh",
            sys.executable,
            "-m",
            "subagents",
            *words,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=home.work,
        env=home.env(),
        check=False,
    )
    assert done.returncode == 0, done
    return " ".join(done.stdout.split())


@pytest.mark.requirement("environment:process")
@pytest.mark.parametrize(
    ("shell", "before", "expected"),
    [
        ("umask 022; ulimit -S -n 500", "", "0022 {nice} 500 644"),
        ("umask 002; ulimit -S -n 400", "", "0002 {nice} 400 664"),
        ("umask 077; ulimit -S -n 300", "", "0077 {nice} 300 600"),
        ("umask 000; ulimit -S -n 200", "", "0000 {nice} 200 666"),
        ("umask 0777; ulimit -S -n 200", "", "0777 {nice} 200 0"),
        ("umask 027; ulimit -S -n 100", "nice -n 39", "0027 19 100 640"),
    ],
)
def test_a_run_is_as_its_caller_is(odd: Home, shell: str, before: str, expected: str) -> None:
    # Only root can raise a priority again.
    nice = os.nice(0) if os.getuid() == 0 else min(os.nice(0) + DAEMONS_NICE, 19)
    assert said(odd, shell, before, "run", SHOWS) == expected.format(nice=nice)


@pytest.mark.requirement("environment:process")
def test_a_run_may_use_the_processors_that_its_caller_may(odd: Home) -> None:
    shows = "grep Cpus_allowed_list /proc/self/status"
    assert said(odd, ":", f"taskset -c {CPU}", "run", shows).split()[1] == str(CPU)


@pytest.mark.requirement("environment:process")
def test_a_file_that_is_too_large_ends_the_worker_and_its_end_is_recorded(odd: Home) -> None:
    task = "head -c 100000 /dev/zero > large; stat -c %s large"
    assert said(odd, "ulimit -f 8", "", "run", task) == "4096"


@pytest.mark.requirement("environment:process")
def test_a_flag_that_the_parser_reads_changes_nothing_of_it(odd: Home) -> None:
    assert said(odd, "umask 057", "", "run", "--env", "A=1", "umask") == "0057"


@pytest.mark.requirement("environment:process")
def test_a_retry_is_as_its_first_attempt(odd: Home) -> None:
    task = "umask; test -e again || { touch again; exit 1; }"
    assert said(odd, "umask 036", "", "run", "--retry", "1", task) == "0036"


@pytest.mark.requirement("environment:process")
def test_what_an_agent_spawns_runs_as_the_documentation_says(odd: Home) -> None:
    task = "subagents run umask --agent command"
    assert said(odd, "umask 051", "", "run", task) == "0022"
