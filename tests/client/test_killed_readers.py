"""Whoever is killed before it has dealt with a message finds it unread: real processes, killed at
their worst line.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.cli.cli_home import Home, temporary_home, until

from subagents.unread import unread_bytes

OPEN = """
import asyncio, os, signal, sys
from subagents import Orchestrator
def die():
    os.kill(os.getpid(), signal.SIGKILL)
async def main():
    async with Orchestrator.connect() as sub:
        {body}
asyncio.run(main())
"""
COMMAND = """
import os, signal, sys
from subagents.cli.runs import follow
from subagents.cli.main import main
follow.settle = lambda *ids: os.kill(os.getpid(), signal.SIGKILL)
sys.exit(main())
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with temporary_home(tmp_path_factory.mktemp("killed")) as found:
        found.ok("up")
        yield found


@pytest.fixture
def run(home: Home) -> str:
    """A run that has ended, and whose announcement is the only unread message."""
    home.ok("inbox")
    run = home.spawn("echo the result")
    home.ok("list", "--watch", run)
    return run


def unread(home: Home) -> list[str]:
    """The runs whose messages are unread; looks only."""
    listed = home.ok("inbox", "--all", "--json").rows("messages")
    return [str(each["runId"]) for each in listed if each["consumedAt"] is None]


def program(home: Home, body: str) -> "subprocess.CompletedProcess[str]":
    return finished(home, OPEN.format(body=body))


def finished(home: Home, script: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=home.env(),
        cwd=home.work,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


KILLED = {
    "in the loop over the inbox": "async for message in sub.inbox(): die()",
    "in the block of the inbox": (
        "async with sub.inbox() as messages: message = await anext(messages); die()"
    ),
    "after wait": "await (await sub.get('{run}')).wait(); die()",
    "after gathered waits": ("await asyncio.gather((await sub.get('{run}')).wait()); die()"),
    "after the tool that waits": "await sub.tools.sessions_wait(run_ids=['{run}']); die()",
}


@pytest.mark.requirement("inbox:after-hand-over")
@pytest.mark.parametrize("body", KILLED.values(), ids=KILLED)
def test_a_program_killed_with_a_message_in_hand_leaves_it_unread(
    home: Home, run: str, body: str
) -> None:
    done = program(home, body.replace("{run}", run))
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert run in unread(home)


LIVES = {
    "asks for the next": "[message async for message in sub.inbox()]",
    "leaves its block": "async with sub.inbox() as messages: await anext(messages)",
    "leaves after wait": "await (await sub.get('{run}')).wait()",
    "leaves after the tool": "await sub.tools.sessions_wait(run_ids=['{run}'])",
}


@pytest.mark.requirement("inbox:after-hand-over")
@pytest.mark.parametrize("body", LIVES.values(), ids=LIVES)
def test_a_program_that_goes_on_well_has_read_it(home: Home, run: str, body: str) -> None:
    done = program(home, body.replace("{run}", run))
    assert done.returncode == 0, done.stderr
    assert run not in unread(home)


@pytest.mark.requirement("inbox:after-hand-over")
def test_a_program_that_fails_with_a_message_in_hand_leaves_it_unread(home: Home, run: str) -> None:
    assert program(home, "async with sub.inbox() as m: await anext(m); 1 / 0").returncode == 1
    assert run in unread(home)


@pytest.mark.requirement("inbox:after-hand-over")
@pytest.mark.parametrize("command", ["inbox", "wait", "run"])
def test_what_lay_in_the_pipe_of_a_command_when_its_reader_was_killed_is_unread(
    home: Home, run: str, command: str
) -> None:
    arguments = {"inbox": [], "wait": [run], "run": ["echo another"]}[command]
    before = unread(home)
    process = subprocess.Popen(
        [sys.executable, "-m", "subagents", command, *arguments],
        env=home.env(),
        cwd=home.work,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    until(lambda: unread_bytes(pipe) > 0, "it has printed")
    process.stdout.close()
    process.wait(60)
    left = unread(home)
    assert {*left} > {*before} if command == "run" else run in left


@pytest.mark.requirement("inbox:after-hand-over")
@pytest.mark.parametrize("command", ["inbox", "wait"])
def test_a_command_killed_before_it_acknowledges_has_printed_and_leaves_it_unread(
    home: Home, run: str, command: str
) -> None:
    done = finished(home, COMMAND, *([command] if command == "inbox" else [command, run]))
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert "the result" in done.stdout
    assert run in unread(home)
