"""A contract's command reaches neither the network, nor other files, nor the daemon."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.verification.checking import verify

from subagents.domain.run.outcome import Check, Verdict
from subagents.domain.run.spec import Contract
from subagents.engine.verification import command_sandbox
from subagents.engine.verification.command_sandbox import SANDBOXED, CommandSandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> CommandSandbox:
    state = tmp_path / "state"
    state.mkdir()
    (state / "subagents.sock").touch()
    found = CommandSandbox((state,))
    if not found.around(tmp_path).argv:
        pytest.skip("bubblewrap does not work here")
    return found


@pytest.fixture
def outside() -> Iterator[Path]:
    """A file that is neither in the work directory nor in a place that is empty in there."""
    place = Path(__file__).parent / f".written-by-a-command-{os.getpid()}"
    yield place
    place.unlink(missing_ok=True)


def run(command: str, work: Path, sandbox: CommandSandbox) -> Check:
    work.mkdir(exist_ok=True)
    contract = Contract(commands=(command,))
    found = verify(contract, work, commands_allowed=False, commands_trusted=True, sandbox=sandbox)
    return found.checks[0]


@pytest.mark.requirement("contract:commands:sandboxed")
def test_a_command_writes_in_its_directory_alone(
    tmp_path: Path, sandbox: CommandSandbox, outside: Path
) -> None:
    check = run(f"echo x > here && ! echo x > {outside}", tmp_path / "work", sandbox)
    assert check.passed, check
    assert str(check.evidence).startswith(f"exit 0, {SANDBOXED}")
    assert (tmp_path / "work/here").exists()
    assert not outside.exists()


@pytest.mark.requirement("contract:commands:sandboxed")
def test_a_command_reaches_no_network(tmp_path: Path, sandbox: CommandSandbox) -> None:
    check = run("cat /proc/net/dev | grep -v lo: | grep :", tmp_path / "work", sandbox)
    assert not check.passed, "there is an interface besides loopback"


@pytest.mark.requirement("contract:commands:sandboxed")
@pytest.mark.parametrize("work", ["work", ".", "state/worktrees"])
def test_a_command_never_sees_the_daemons_directory(
    tmp_path: Path, sandbox: CommandSandbox, work: str
) -> None:
    place = tmp_path / work
    place.mkdir(exist_ok=True)
    (place / "mine").touch()
    check = run(f"test -e mine && ! test -e {tmp_path}/state/subagents.sock", place, sandbox)
    assert check.passed, check


@pytest.mark.requirement("contract:commands:sandboxed")
def test_a_command_leaves_no_process_and_no_temporary_file(
    tmp_path: Path, sandbox: CommandSandbox
) -> None:
    check = run("touch /tmp/left-by-a-command; setsid sleep 6543 & echo ok", tmp_path, sandbox)
    assert check.passed, check
    assert not Path("/tmp/left-by-a-command").exists()
    listed = subprocess.run(
        ["ps", "-eo", "args"], capture_output=True, text=True, check=True, timeout=20
    ).stdout
    assert "sleep 6543" not in listed


@pytest.mark.requirement("contract:commands:sandboxed")
@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (True, "unsandboxed: bubblewrap is not installed"),
        (False, "unsandboxed: bubblewrap does not work here: no"),
    ],
)
def test_without_walls_the_verdict_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, *, missing: bool
) -> None:
    if missing:
        monkeypatch.setattr(shutil, "which", lambda _: None)
    else:
        fake = tmp_path / "bwrap"
        fake.write_text("#!/bin/sh\necho no >&2; exit 1\n")
        fake.chmod(0o755)
        monkeypatch.setattr(command_sandbox, "PROGRAM", str(fake))
    check = run("echo out", tmp_path, CommandSandbox())
    assert check.passed
    assert check.evidence == f"exit 0, {said}\nout"


@pytest.mark.requirement("contract:commands:sandboxed")
def test_walls_that_failed_once_are_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(command_sandbox, "PROGRAM", str(program))
    sandbox = CommandSandbox()
    assert "unsandboxed" in str(run("true", tmp_path, sandbox).evidence)

    program.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n')

    assert run("true", tmp_path, sandbox).evidence == f"exit 0, {SANDBOXED}"


@pytest.mark.requirement("contract:commands:gated")
def test_a_command_of_nobody_trusted_is_not_run(tmp_path: Path) -> None:
    found = verify(Contract(commands=("touch ran",)), tmp_path, commands_allowed=False)
    assert found.verdict is Verdict.COULD_NOT_CHECK
    assert not (tmp_path / "ran").exists()
