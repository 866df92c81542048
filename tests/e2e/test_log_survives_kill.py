"""The log of a worker that works: read meanwhile, over kill -9 of the daemon, and followed."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.live_home import LiveHome, live_home, until

from subagents.client.client import Client

WORKER = """\
import json, os, sys, time
from pathlib import Path

gates = Path(sys.argv[1])

def say(**event):
    print(json.dumps(event), flush=True)

def wait_for(name):
    (gates / f"reached-{name}").touch()
    while not (gates / name).exists():
        time.sleep(0.02)

for part in ("first", "second"):
    for number in range(40):
        command = {"command": f"pytest {part} {number}"}
        say(subagents="tool", name="Bash", id=f"{part}{number}", status="started", input=command)
        failed = number % 4 == 3
        say(subagents="tool", name="Bash", id=f"{part}{number}", status="ended", input=command,
            output="1 failed" if failed else "ok", exitCode=int(failed), durationMs=50)
        say(subagents="text", text=f"{part} part {number}")
        print(f"plain {part} {number}", flush=True)
        print(f"Error: {part} {number}" if failed else "warning", file=sys.stderr, flush=True)
    say(subagents="thinking", text="hm " * 400)
    say(subagents="usage", tokensIn=4500, tokensOut=120)
    say(subagents="progress", phase=f"{part} part", percentComplete=50)
    wait_for(part)
"""
PER_PART = 40 * 5 + 1
"""Two lines of the tool, its text, plain output, an error line; and one thought."""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[LiveHome]:
    with live_home(tmp_path) as found:
        (found.work / "worker.py").write_text(WORKER)
        yield found


def start(home: LiveHome) -> str:
    return home.spawn(f"exec python3 worker.py {home.work}", label="worker")


def reached(home: LiveHome, run: str, part: str, count: int) -> list[dict[str, Any]]:
    """The lines of the stream once all of so many are kept."""
    until((home.work / f"reached-{part}").exists, what=f"{part} part")
    return until(
        lambda: found if len(found := stream(home, run)) >= count else None,
        what=f"{count} lines",
    )


def lines(home: LiveHome, run: str, **query: str | int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = home.get(f"/v1/runs/{run}/log", **query)["lines"]
    return found


def stream(home: LiveHome, run: str) -> list[dict[str, Any]]:
    """What the worker itself said."""
    kinds = "text,thinking,tool,error"
    return lines(home, run, limit=10_000, type=kinds)


@pytest.mark.requirement("log:survives-kill", "e2e:log")
def test_the_same_lines_come_by_offset_and_since_before_and_after_a_kill(home: LiveHome) -> None:
    run = start(home)
    reached(home, run, "first", PER_PART)
    whole = lines(home, run, limit=10_000)
    since = whole[100]["ts"] / 1000

    def looks() -> list[object]:
        from datetime import UTC, datetime  # noqa: PLC0415  for this alone

        moment = datetime.fromtimestamp(since, tz=UTC).isoformat()
        return [
            lines(home, run, limit=100, offset=0),
            lines(home, run, offset=100, limit=20),
            lines(home, run, offset=0, limit=100, since=moment),
            lines(home, run, offset=3, limit=5, grep="exit 1"),
            lines(home, run, offset=0, limit=5, grep="tool_use"),
            lines(home, run, offset=0, limit=1, type="thinking"),
        ]

    before = looks()
    home.restart_after_kill()

    assert looks() == before
    (home.work / "first").touch()
    after = reached(home, run, "second", 2 * PER_PART)
    assert looks() == before
    # Nothing was lost and nothing came twice, also around the kill.
    said = [line["text"] for line in after]
    plain = [text for text in said if text.startswith("plain ")]
    assert plain == [f"plain {part} {n}" for part in ("first", "second") for n in range(40)]
    tools = [text for text in said if "Bash" in text]
    assert len(tools) == len(set(tools)) == 160
    numbers = [line["seq"] for line in lines(home, run, limit=10_000)]
    assert numbers == [*range(1, len(numbers) + 1)]
    (home.work / "second").touch()
    home.finish(run)
    assert lines(home, run, tail=1)[0]["text"].endswith("run ended: ok")
    assert looks() == before


@pytest.mark.requirement("log:survives-kill", "e2e:log")
def test_a_kill_while_the_worker_writes_loses_and_doubles_nothing(home: LiveHome) -> None:
    count = 3_000
    task = f"for n in $(seq {count}); do echo $n; test $((n % 500)) -ne 0 || sleep 0.2; done"
    run = home.spawn(task, label="writer")

    def said() -> int:
        return len(lines(home, run, limit=10_000, type="text"))

    for least in (300, 1_200, 2_100):
        until(lambda least=least: said() > least, what=f"{least} lines")  # type: ignore[misc]  # bound by the default
        home.restart_after_kill()
    home.finish(run)
    found = [line["text"] for line in lines(home, run, limit=10_000, type="text")]
    assert found == [str(number) for number in range(1, count + 1)]


@pytest.mark.requirement("log:survives-kill", "log:long-poll")
def test_a_follower_by_cursor_sees_every_line_once_over_kills(home: LiveHome) -> None:
    run = start(home)
    seen: list[int] = []
    said: list[str] = []
    failures: list[BaseException] = []

    def follow() -> None:
        after, ended = 0, False
        try:
            while not ended:
                try:
                    with Client(home.paths.socket, timeout_s=5) as client:
                        query = {"afterSeq": after, "limit": 50, "waitSeconds": 5}
                        page: Any = client.get(f"/v1/runs/{run}/log", query, timeout_s=5)
                except Exception:  # noqa: BLE001, S112  the daemon is being killed
                    continue
                seen.extend(line["seq"] for line in page["lines"])
                said.extend(line["text"] for line in page["lines"])
                after, ended = page["nextSeq"], page["ended"]
        except BaseException as error:  # noqa: BLE001  the test raises it
            failures.append(error)

    following = threading.Thread(target=follow, daemon=True)
    following.start()
    reached(home, run, "first", PER_PART)
    home.restart_after_kill()
    (home.work / "first").touch()
    reached(home, run, "second", 2 * PER_PART)
    home.restart_after_kill()
    (home.work / "second").touch()
    home.finish(run)
    following.join(30)
    assert not following.is_alive()
    assert failures == []
    assert seen == [*range(1, len(seen) + 1)]
    assert said == [line["text"] for line in lines(home, run, limit=10_000)]


@pytest.mark.requirement("log:summary", "e2e:log")
def test_the_digest_of_a_real_worker_says_what_it_did(home: LiveHome) -> None:
    run = start(home)
    reached(home, run, "first", PER_PART)
    until(lambda: home.row(run)["latestProgress"], what="its progress")
    until(lambda: home.row(run)["tokensIn"], what="its usage")
    found = home.get(f"/v1/runs/{run}/log", summary=1)
    text = found["summary"]
    assert "tools: 40 calls: Bash 40 (10 failed)" in text
    assert "exit 1: pytest first 39" in text
    assert "errors (10, the last 5):" in text
    assert "Error: first 39" in text
    assert "progress: 50 % first part" in text
    assert "cost: 4,500 tokens in, 120 tokens out" in text
    assert len(text.splitlines()) <= 40
    status = home.row(run)
    assert (status["tokensIn"], status["costUsd"]) == (4500, None)
    (home.work / "first").touch()
    (home.work / "second").touch()
    home.finish(run)
    updates = home.get(f"/v1/runs/{run}/progress")["updates"]
    assert updates[0]["phase"] == "first part"
    assert json.dumps(updates).count("part") == len(updates)
