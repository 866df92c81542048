"""Commands whose standard streams are closed, full or broken: the exit code is the work's fate."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import pytest
from tests.cli.cli_home import TIMEOUT_S, Home, until

from subagents.cli import ending
from subagents.errors import EXIT_NOT_FOUND, NotFound

ALL: Final = (0, 1, 2)
PROGRAM: Final = ("sh", sys.executable, "-m", "subagents")
CONDITIONS: Final = [
    pytest.param((0,), "closed", id="0-closed"),
    pytest.param((1,), "closed", id="1-closed"),
    pytest.param((1,), "full", id="1-full"),
    pytest.param((1,), "broken", id="1-broken"),
    pytest.param((1,), "unwritable", id="1-unwritable"),
    pytest.param((2,), "closed", id="2-closed"),
    pytest.param((2,), "full", id="2-full"),
    pytest.param((2,), "broken", id="2-broken"),
    pytest.param((2,), "unwritable", id="2-unwritable"),
    pytest.param((1, 2), "broken", id="both-broken"),
    pytest.param(ALL, "closed", id="all-closed"),
    pytest.param((1, 2), "full", id="both-full"),
]
REDIRECTIONS: Final = {
    "closed": "{n}>&-",
    "full": "{n}>/dev/full",
    "unwritable": "{n}</dev/null",
}
Acts: TypeAlias = Mapping[str, tuple[int, Sequence[str]]]
ACTS: Final[Acts] = {
    "run": (0, ("run", "echo x >> run; echo out")),
    "json": (0, ("run", "echo x >> json; echo out", "--json")),
    "fails": (5, ("run", "echo x >> fails; exit 3")),
    "unverified": (6, ("run", "echo x >> unverified", "--verify", "nowhere.txt")),
    "spawn": (0, ("spawn", "echo x >> spawn")),
    "detach": (0, ("run", "--detach", "echo x >> detach")),
}
"""Name, which is also the file that its work writes a line into: exit code and command."""


def started(
    home: Home, words: Sequence[str], numbers: Sequence[int], kind: str
) -> "subprocess.Popen[bytes]":
    is_broken = kind == "broken"
    redirections = "" if is_broken else " ".join(REDIRECTIONS[kind].format(n=n) for n in numbers)
    unread = unread_pipe() if is_broken else subprocess.PIPE
    process = subprocess.Popen(
        ["sh", "-c", f'exec "$@" {redirections}', *PROGRAM, *words],
        stdin=subprocess.DEVNULL,
        stdout=unread if 1 in numbers else subprocess.PIPE,
        stderr=unread if 2 in numbers else subprocess.PIPE,
        cwd=home.work,
        env=home.env(),
    )
    if is_broken:
        os.close(unread)
    return process


def unread_pipe() -> int:
    """The end to write to of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def times_done(home: Home, name: str) -> int:
    file = home.work / name
    return len(file.read_text().splitlines()) if file.exists() else 0


def check_fates(home: Home, acts: Acts, numbers: Sequence[int], kind: str) -> None:
    """Do all of this at once, with these streams; each ends with its code and is done once."""
    own = f"{kind}{len(numbers)}{numbers[0]}."
    running = {
        name: started(home, [word.replace(">> ", f">> {own}") for word in words], numbers, kind)
        for name, (_, words) in acts.items()
    }
    said = {name: each.communicate(timeout=TIMEOUT_S) for name, each in running.items()}
    codes = {name: each.returncode for name, each in running.items()}
    for name in acts:
        told = f"work of {name}, maybe that nobody waited for: {codes}, {said}"
        until(lambda name=name: times_done(home, own + name), told)  # type: ignore[misc]

    found = {n: (each.returncode, times_done(home, own + n)) for n, each in running.items()}
    assert found == {name: (code, 1) for name, (code, _) in acts.items()}, said
    assert not [text for pair in said.values() for text in pair if b"Traceback" in (text or b"")], (
        said
    )


@pytest.mark.requirement("cli:standard-streams")
@pytest.mark.parametrize(("numbers", "kind"), CONDITIONS)
def test_what_becomes_of_the_work_is_the_exit_code_whatever_can_be_written(
    shared: Home, numbers: Sequence[int], kind: str
) -> None:
    check_fates(shared, ACTS, numbers, kind)


@pytest.mark.requirement("cli:standard-streams")
@pytest.mark.parametrize(("numbers", "kind"), CONDITIONS[1::2])
def test_an_error_has_its_own_exit_code_whatever_can_be_written(
    shared: Home, numbers: Sequence[int], kind: str
) -> None:
    wrong = {
        "unknown run": (3, ("show", "nosuch")),
        "unknown run, told to programs": (3, ("show", "nosuch", "--json")),
        "unknown flag": (2, ("run", "true", "--nosuch")),
        "unknown command": (2, ("nosuch",)),
        "wrong value": (2, ("run", "true", "--timeout", "soon")),
    }
    running = {name: started(shared, words, numbers, kind) for name, (_, words) in wrong.items()}
    said = {name: each.communicate(timeout=TIMEOUT_S) for name, each in running.items()}
    codes = {name: each.returncode for name, each in running.items()}
    assert codes == {name: code for name, (code, _) in wrong.items()}, said


@pytest.mark.requirement("cli:standard-streams")
@pytest.mark.parametrize("kind", ["closed", "full", "broken", "unwritable"])
def test_a_result_that_could_not_be_printed_stays_unread(shared: Home, kind: str) -> None:
    run = started(shared, ("run", "echo out", "--label", f"of-{kind}"), (1,), kind)
    run.communicate(timeout=TIMEOUT_S)
    assert run.returncode == 0
    started(shared, ("inbox",), (1,), kind).communicate(timeout=TIMEOUT_S)
    unread = shared.ok("inbox", "--json").rows("messages")
    assert [each["label"] for each in unread if each["label"] == f"of-{kind}"] == [f"of-{kind}"]


@pytest.mark.requirement("cli:standard-streams")
@pytest.mark.parametrize("kind", ["closed", "full", "unwritable"])
def test_who_asks_gets_a_no_as_a_no_although_it_cannot_be_printed(shared: Home, kind: str) -> None:
    redirection = REDIRECTIONS[kind].format(n=1)
    ask = f"subagents ask 'sure?' --decision --timeout 60s {redirection}"
    run = shared.spawn(f"{ask}; test $? = 9")
    until(lambda: shared.field(run, "pendingRequestCount"), "the question")
    shared.ok("answer", run, "--decision", "deny")
    shared.ok("wait", run)


@pytest.mark.requirement("cli:standard-streams")
def test_what_only_looks_says_that_its_output_is_lost(shared: Home) -> None:
    shared.spawn("true")
    codes = {}
    for kind in ("closed", "full", "broken"):
        listing = started(shared, ("list",), (1,), kind)
        listing.communicate(timeout=TIMEOUT_S)
        codes[kind] = listing.returncode
    assert codes == {"closed": 0, "full": 1, "broken": 141}


@pytest.mark.requirement("cli:standard-streams")
@pytest.mark.parametrize(
    ("fate", "error", "code"),
    [
        (None, BrokenPipeError(), 141),
        (None, OSError(28, "No space left on device"), 1),
        (0, BrokenPipeError(), 0),
        (0, OSError(28, "No space left on device"), 0),
        (5, OSError(9, "Bad file descriptor"), 5),
        (6, OSError(5, "Input/output error"), 6),
    ],
)
def test_telling_fails_and_the_fate_stays(
    fate: int | None, error: OSError, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "_abandon_stdout", lambda: None)

    def work() -> int:
        if fate is not None:
            ending.settled(fate)
        raise error

    assert ending.reporting(work, as_json=False) == code


@pytest.mark.requirement("cli:standard-streams")
def test_an_error_behind_an_act_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> int:
        ending.settled(0)
        raise NotFound("it is gone")

    assert ending.reporting(work, as_json=False) == EXIT_NOT_FOUND
    assert "it is gone" in capsys.readouterr().err
