"""``subagents events``: what happens, printed as it happens, over the end of a daemon."""

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.cli_home import Home, temporary_home, until


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with temporary_home(tmp_path) as found:
        yield found


def documents(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.requirement("cli:events")
def test_what_happened_is_printed_with_its_number_and_can_be_asked_for_from_there(
    home: Home,
) -> None:
    home.ok("run", "echo hello", "--label", "one")
    home.ok("run", "echo hello", "--label", "two")
    found = documents(home.ok("events", "--json").out)
    numbers = [each["seq"] for each in found if "event" not in each]
    assert numbers == list(range(1, numbers[-1] + 1))
    ends = documents(home.ok("events", "--alerts", "--json").out)
    assert [(e["event"], e["label"], e["result"]) for e in ends] == [
        ("completion", "one", "hello"),
        ("completion", "two", "hello"),
    ]
    after = str(ends[0]["seq"])
    assert documents(home.ok("events", "--alerts", "--json", "--after", after).out) == ends[1:]
    only = documents(home.ok("events", "--run", "two", "--json").out)
    assert {each["label"] for each in only} == {"two"}
    for_people = home.ok("events", "--run", "one").out.splitlines()
    assert any("completion" in line and "status=ok" in line for line in for_people)
    assert any("Spawned" in line for line in for_people)
    assert home.cli("events", "--after", "-1").code == 2
    assert home.cli("events", "--run", "nobody").code == 3


@pytest.mark.requirement("cli:events")
def test_following_goes_on_with_the_next_daemon_and_prints_nothing_twice(home: Home) -> None:
    home.ok("run", "echo before")
    following = home.start("events", "--follow", "--json", "--after", "0")
    seen: list[dict[str, Any]] = []

    def read() -> None:
        assert following.stdout is not None
        with following.stdout:
            seen.extend(json.loads(line) for line in following.stdout)

    reading = threading.Thread(target=read)
    reading.start()
    try:
        until(lambda: any("event" in each for each in seen), "the first completion")
        home.kill_daemon()
        home.ok("run", "echo after")
        until(lambda: sum("event" in each for each in seen) == 2, "the second completion")
    finally:
        following.send_signal(signal.SIGINT)
        reading.join(40)
        assert following.stderr is not None
        with following.stderr:
            said = following.stderr.read()
        following.wait(90)
    assert following.returncode == 130
    assert said.count("was restarted") <= 1
    numbers = [each["seq"] for each in seen if "event" not in each]
    assert numbers == list(range(1, numbers[-1] + 1))
    assert [each["result"] for each in seen if "event" in each] == ["before", "after"]
