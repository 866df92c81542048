"""Fifty workers end in the same instant; whoever reads, dies or comes late: consumed once each."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from tests.e2e.bridge_client import PROGRAM, environment
from tests.e2e.live_home import LiveHome, audit, live_home, until

from subagents.domain.run.run import Phase

COUNT: Final = 50
READER: Final = """
import json, os, sys, time
from subagents.client.client import Client
from subagents.errors import Unavailable

socket, name, mode = sys.argv[1:]

def call(path, body, wait_s=0):
    due = time.monotonic() + 60
    while True:
        try:
            with Client(socket, reader=name) as client:
                return client.post(path, body, timeout_s=wait_s)
        except Unavailable:
            if time.monotonic() > due:
                raise
            time.sleep(0.02)

def say(**words):
    print(json.dumps(words), flush=True)

say(began=name)
while True:
    body = {"until": "any", "timeoutSeconds": 30}
    found = call("/v1/wait", body, 30)
    say(handed=found["messages"], results=[each["result"] for each in found["completed"]])
    if mode == "hold" and found["messages"]:
        sys.stdin.read()
    done = call("/v1/inbox/ack", {"messageIds": found["messages"]})
    say(consumed=done["consumed"], of=found["messages"])
    if not found["completed"] and not found["pending"]:
        break
"""


MCP_CLIENT: Final = """
import asyncio, json, os, sys
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

program, cwd, era = sys.argv[1:]

def say(**words):
    print(json.dumps(words), flush=True)

async def main():
    server = StdioServerParameters(
        command=program, args=["mcp", "--session", "main"], env=dict(os.environ), cwd=cwd
    )
    async with Client(stdio_client(server), mode=era) as client:
        # Else the first answer would be followed by this question, and so be taken for kept.
        await client.list_tools()
        say(began=era)
        while True:
            arguments = {"until": "any", "timeoutSeconds": 30}
            answer = await client.call_tool("sessions_wait", arguments)
            found = answer.structured_content
            completed, pending = found["completed"], found["pending"]
            results = [each["result"] for each in completed]
            say(handed=[each["runId"] + ":announce" for each in completed], results=results)
            if not completed and not pending:
                break

asyncio.run(main())
"""


class Reader:
    """A process that keeps asking for what ended, and says what it was handed and consumed."""

    def __init__(self, home: LiveHome, name: str, mode: str = "take") -> None:
        script = home.work / "reader.py"
        script.write_text(READER)
        self._start(home, name, [str(script), str(home.paths.socket), name, mode])

    def _start(self, home: LiveHome, name: str, argv: list[str]) -> None:
        self._log = home.root / f"{name}.{os.urandom(4).hex()}.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, *argv],
                stdin=subprocess.PIPE,
                stdout=log,
                env=environment(home),
            )
        until(self.said, what=f"{name} at work")

    def said(self) -> list[dict[str, Any]]:
        lines = self._log.read_text().split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def all_of(self, key: str) -> list[Any]:
        """Everything it said under this word."""
        return [
            one
            for line in self.said()
            if key in line
            for one in (line[key] if isinstance(line[key], list) else [line[key]])
        ]

    def kill(self) -> None:
        """kill -9; returns when it is gone."""
        self._process.kill()
        self._process.communicate(timeout=90)

    def go_on(self) -> None:
        """Let one that holds what it was handed acknowledge it."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def finish(self) -> None:
        """Wait until nothing is left for it."""
        assert self._process.wait(60) == 0
        if self._process.stdin is not None:
            self._process.stdin.close()


class McpClient(Reader):
    """The same as a client of the ``mcp`` package, through the stdio bridge that it starts."""

    def __init__(self, home: LiveHome, era: str) -> None:
        script = home.work / "mcp_client.py"
        script.write_text(MCP_CLIENT)
        self._start(home, f"mcp-{era}", [str(script), PROGRAM, str(home.work), era])


class Fifty:
    """The workers, all held back by one barrier."""

    def __init__(self, home: LiveHome) -> None:
        self._home = home
        os.mkfifo(home.work / "barrier")
        self._barrier = os.open(home.work / "barrier", os.O_RDWR)
        self.run_ids = [
            home.spawn(f"read _ < barrier; echo result {number}") for number in range(COUNT)
        ]
        until(
            lambda: (
                all(home.output(each) == "" for each in self.run_ids)
                and home.get("/v1/runs", phase="running", limit=100)["total"] == COUNT
            ),
            what="fifty workers at work",
            within_s=60,
        )

    def end(self) -> None:
        """Every worker takes one line, and ends."""
        os.write(self._barrier, b"\n" * COUNT)

    def until_all_ended(self) -> None:
        until(
            lambda: all(run.is_settled for run in self._home.stored().values()),
            what="fifty ends",
            within_s=60,
        )

    def close(self) -> None:
        os.close(self._barrier)

    def check(self, *readers: Reader, all_told: bool = True) -> None:
        """Each consumed exactly once, by the journal, the inbox and the readers' own word."""
        home = self._home
        until(
            lambda: all(run.phase is Phase.COMPLETED for run in home.stored().values()),
            what="every run completed",
            within_s=60,
        )
        found = audit(home, self.run_ids)
        assert found.consumed == dict.fromkeys(self.run_ids, 1)
        assert found.starts == dict.fromkeys(self.run_ids, 1)
        rows = home.read("SELECT message_id, consumed_by FROM inbox")
        assert sorted(message for message, _ in rows) == sorted(self.messages)
        results = [f"result {number}" for number in range(COUNT)]
        assert [found.runs[each].result for each in self.run_ids] == results
        handed = {each for reader in readers for each in reader.all_of("results")}
        assert handed >= set(results) or not all_told
        assert home.post("/v1/inbox", {})["messages"] == []

    @property
    def messages(self) -> list[str]:
        return [f"{run_id}:announce" for run_id in self.run_ids]

    def consumers(self) -> Counter[str]:
        rows = self._home.read("SELECT consumed_by FROM inbox WHERE consumed_by IS NOT NULL")
        return Counter(reader for (reader,) in rows)


@contextmanager
def fifty_at_work(tmp_path: Path) -> Iterator[tuple[LiveHome, Fifty]]:
    with live_home(tmp_path) as home:
        fifty = Fifty(home)
        try:
            yield home, fifty
        finally:
            fifty.close()


@pytest.mark.requirement("e2e:fifty:waiting", "field:claude-code-87675")
def test_claude_code_87675_fifty_that_end_while_the_requester_waits_are_consumed_once_each(
    tmp_path: Path,
) -> None:
    with fifty_at_work(tmp_path) as (_, fifty):
        reader = Reader(fifty._home, "waiting")
        fifty.end()
        reader.finish()

        fifty.check(reader)
        assert sorted(reader.all_of("handed")) == sorted(fifty.messages)
        assert sum(reader.all_of("consumed")) == COUNT


@pytest.mark.requirement("e2e:fifty:waiting", "delivery:consumed-once")
def test_three_readers_that_wait_at_once_share_the_fifty_and_take_none_twice(
    tmp_path: Path,
) -> None:
    with fifty_at_work(tmp_path) as (home, fifty):
        readers = [Reader(home, f"waiting{number}") for number in range(3)]
        fifty.end()
        for reader in readers:
            reader.finish()

        fifty.check(*readers)
        handed = [message for reader in readers for message in reader.all_of("handed")]
        assert sorted(handed) == sorted(fifty.messages)
        assert sum(sum(reader.all_of("consumed")) for reader in readers) == COUNT


@pytest.mark.requirement("e2e:fifty:killed", "delivery:consumed-once")
def test_killed_while_it_waits_a_requester_has_taken_nothing_from_the_next_one(
    tmp_path: Path,
) -> None:
    with fifty_at_work(tmp_path) as (home, fifty):
        killed = [Reader(home, f"killed{number}") for number in range(3)]
        for reader in killed:
            reader.kill()
        fifty.end()
        fifty.until_all_ended()
        reader = Reader(home, "next")
        reader.finish()

        fifty.check(reader)
        assert fifty.consumers() == {"next": COUNT}
        assert sum(reader.all_of("consumed")) == COUNT


@pytest.mark.requirement("e2e:fifty:killed", "delivery:offer-lease")
def test_killed_with_the_results_in_its_hands_a_reader_gets_them_again_when_it_comes_back(
    tmp_path: Path,
) -> None:
    with fifty_at_work(tmp_path) as (home, fifty):
        killed = Reader(home, "me", "hold")
        fifty.end()
        until(lambda: killed.all_of("handed"), what="results in the first one's hands")
        fifty.until_all_ended()
        killed.kill()
        handed = killed.all_of("handed")
        again = Reader(home, "me")
        again.finish()

        fifty.check(again)
        assert set(handed) <= set(again.all_of("handed"))
        assert fifty.consumers() == {"me": COUNT}


@pytest.mark.requirement("e2e:fifty:killed", "delivery:offer-lease", "e2e:kill:offered")
def test_between_offer_and_acknowledgement_the_daemon_is_killed_and_nothing_is_lost_or_doubled(
    tmp_path: Path,
) -> None:
    with fifty_at_work(tmp_path) as (home, fifty):
        holding = Reader(home, "holding", "hold")
        fifty.end()
        until(lambda: holding.all_of("handed"), what="results in the first one's hands")
        fifty.until_all_ended()
        home.restart_after_kill()
        # The leases died with the daemon: another reader is handed all of them again …
        other = Reader(home, "other", "hold")
        until(lambda: other.all_of("handed"), what="results in the other one's hands")
        # … and now both acknowledge the same messages.
        holding.go_on()
        other.go_on()
        holding.finish()
        other.finish()

        fifty.check(holding, other)
        assert set(holding.all_of("handed")) <= set(other.all_of("handed"))
        assert sum(holding.all_of("consumed")) + sum(other.all_of("consumed")) == COUNT


@pytest.mark.requirement(
    "e2e:fifty:never", "delivery:consumed-once", "field:parked-delivery-expired"
)
def test_agentwire_872_fifty_that_nobody_waited_for_lie_ready_over_a_kill_until_somebody_comes(
    tmp_path: Path,
) -> None:
    with fifty_at_work(tmp_path) as (home, fifty):
        home.kill()
        fifty.end()
        until(
            lambda: all(home.output(each).startswith("result") for each in fifty.run_ids),
            what="fifty workers that ended while no daemon was there",
        )
        home.start()
        fifty.until_all_ended()
        home.restart_after_kill()
        assert fifty.consumers() == {}
        late = Reader(home, "late")
        late.finish()

        fifty.check(late)
        assert sum(late.all_of("consumed")) == COUNT


# -- the same through MCP ------------------------------------------------------------------------

each_era = pytest.mark.parametrize("era", ["legacy", "auto"])


@pytest.mark.requirement("e2e:fifty:mcp", "e2e:fifty:waiting", "delivery:consumed-once")
@each_era
def test_an_mcp_client_that_waits_over_a_kill_of_the_daemon_is_handed_each_of_the_fifty_once(
    era: str, tmp_path: Path
) -> None:
    with fifty_at_work(tmp_path) as (home, fifty):
        client = McpClient(home, era)
        home.restart_after_kill()
        fifty.end()
        client.finish()

        fifty.check(client)
        assert sorted(client.all_of("handed")) == sorted(fifty.messages)


@pytest.mark.requirement("e2e:fifty:mcp", "e2e:fifty:killed", "delivery:consumed-once")
def test_mcp_clients_killed_while_they_wait_take_nothing_with_them(tmp_path: Path) -> None:
    with fifty_at_work(tmp_path) as (home, fifty):
        killed = [McpClient(home, era) for era in ("legacy", "auto")]
        fifty.end()
        for client in killed:
            client.kill()
        following = McpClient(home, "auto")
        following.finish()

        fifty.check(*killed, following, all_told=False)
        # What a client read before it was killed counts as read, said it so or not: its bridge
        # saw it live on. All the rest went to the next one at once, not after a lease.
        rows = home.read("SELECT message_id, consumed_by FROM inbox")
        handed = set(following.all_of("handed"))
        by_others = {message for message, _ in rows} - handed
        said = {message for client in killed for message in client.all_of("handed")}
        readers = {reader for message, reader in rows if message in handed}
        assert said - handed <= by_others
        assert not {reader for message, reader in rows if message in by_others} & readers


@pytest.mark.requirement("e2e:fifty:mcp", "e2e:fifty:never", "delivery:consumed-once")
def test_an_mcp_client_that_comes_when_all_is_over_beside_another_channel_takes_none_twice(
    tmp_path: Path,
) -> None:
    with fifty_at_work(tmp_path) as (home, fifty):
        fifty.end()
        fifty.until_all_ended()
        channels = [McpClient(home, "auto"), Reader(home, "line"), McpClient(home, "legacy")]
        for channel in channels:
            channel.finish()

        fifty.check(*channels)
        handed = [message for channel in channels for message in channel.all_of("handed")]
        assert sorted(handed) == sorted(fifty.messages)
