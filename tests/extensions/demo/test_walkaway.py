"""``subagents demo --walkaway``: what it shows is so, and what is not so makes it fail."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.demo.test_demo import COMMAND, assert_nothing_is_left, environ, perform

from subagents.api.wire.run_answers import RunDetail
from subagents.api.wire.wire_struct import read
from subagents.client.client import Client
from subagents.config.programs.program_catalog import CLAUDE
from subagents.extensions.conversation.found_programs import Found
from subagents.extensions.demo.demo_fleet import DemoDirectory
from subagents.extensions.demo.demo_stage import Voice
from subagents.extensions.demo.walkaway import Process, Walkaway, Worker, chosen, is_fit

BOUND_S = 60.0


@pytest.mark.requirement("demo:walkaway")
def test_two_workers_go_on_while_nobody_is_there_and_leave_nothing(tmp_path: Path) -> None:
    done = perform(tmp_path, "--walkaway", "--scripted", "--away", "2s", "--json")

    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert document["ok"]
    assert [each["scripted"] for each in document["workers"]] == [True, True]
    assert [each["label"] for each in document["workers"]] == ["script-1", "script-2"]
    assert all(each["pid"] == each["attempts"][0]["pid"] for each in document["workers"])
    assert all(each["passed"] for each in document["checks"])
    assert "no agent program is used here: both workers are scripts" in done.stderr
    assert "kill -9" in done.stderr
    for shown in ("no daemon answered", "before and after", "handed over once", "no process"):
        assert any(shown in each["text"] for each in document["checks"])
    assert_nothing_is_left(tmp_path)


@pytest.mark.requirement("demo:interrupted")
def test_whoever_breaks_it_off_while_nobody_is_there_ends_the_workers_too(tmp_path: Path) -> None:
    command = [*COMMAND, "--walkaway", "--scripted", "--away", "60s"]
    with subprocess.Popen(
        command, env=environ(tmp_path), cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert any("nobody is back" in line for line in process.stdout)
        process.send_signal(signal.SIGTERM)
        assert process.wait(BOUND_S) != 0
    assert_nothing_is_left(tmp_path)


@pytest.mark.requirement("demo:walkaway")
def test_an_agent_program_that_cannot_work_fails_it_and_says_so(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text("#!/bin/sh\necho '2.1.999 (Claude Code)'; exit 1\n")
    (programs / "claude").chmod(0o755)
    found = environ(tmp_path)
    path = f"{programs}:{found['PATH']}"

    done = perform(tmp_path, "--walkaway", "--away", "2s", PATH=path, ANTHROPIC_API_KEY="x")

    assert done.returncode != 0
    assert "Claude Code (2.1.999" in done.stdout
    assert "claude ended before it worked" in done.stderr
    assert "--scripted" in done.stderr


@pytest.mark.requirement("demo:walkaway")
@pytest.mark.parametrize("away", ["0s", "2h", "soon"])
def test_an_absence_out_of_bounds_is_refused(tmp_path: Path, away: str) -> None:
    done = perform(tmp_path, "--walkaway", "--away", away)
    assert done.returncode == 2
    assert "--away" in done.stderr


@pytest.mark.requirement("demo:walkaway")
def test_only_programs_that_are_logged_in_are_used() -> None:
    assert is_fit(Found(CLAUDE, "/bin/claude", "ANTHROPIC_API_KEY"))
    assert not is_fit(Found(CLAUDE, "/bin/claude", None))
    assert [each.is_scripted for each in chosen({"PATH": "/none"}, with_agents=False)] == [True] * 2


class Story:
    """A walk that went well, to be spoilt."""

    def __init__(self, directory: Path) -> None:
        self.directory = DemoDirectory(directory)
        worker = chosen({}, with_agents=False)[0]
        self.worker: Worker = worker
        client = Client(directory / "none")
        self.walk = Walkaway(self.directory, client, [worker], Voice(as_json=False), away_s=10)
        worker.process, worker.survived, worker.consumed = Process(7), True, 1
        worker.run = self.run()
        seen = self.walk.seen
        seen.killed_at, seen.back_at, seen.announced = 1000.0, 1010.0, 1
        self.write([[number, 999 + number, 42] for number in range(1, 21)])

    def run(self, *pids: int, passed: bool = True) -> RunDetail:
        check = {"type": "artifact", "target": "report.json", "passed": passed}
        document: dict[str, Any] = {
            "runId": "r-1",
            "outcome": {"status": "ok"},
            "verification": {"status": "passed", "checks": [check]},
            "attempts": [{"pid": pid} for pid in pids or (7,)],
        }
        return read(document, RunDetail)

    def write(self, rows: list[list[int]]) -> None:
        folder = self.directory.work / self.worker.label
        folder.mkdir(parents=True, exist_ok=True)
        lines = [" ".join(map(str, row)) for row in rows]
        (folder / "steps.log").write_text("\n".join(lines))

    def failed(self) -> list[str]:
        return [each.text for each in self.walk.findings(is_kept=False) if not each.is_true]


@pytest.mark.requirement("demo:walkaway")
def test_each_promise_that_did_not_hold_fails(tmp_path: Path) -> None:
    story = Story(tmp_path)
    assert story.failed() == []

    story.walk.seen.answered_while_away = True
    assert len(story.failed()) == 1
    story.walk.seen.answered_while_away = False
    spoilt: list[tuple[Any, str, Any]] = [
        (story.worker, "survived", False),
        (story.worker, "run", story.run(7, 8)),
        (story.worker, "run", story.run(passed=False)),
        (story.worker, "consumed", 2),
        (story.walk.seen, "again", 1),
        (story.walk.seen, "announced", 2),
        (story.walk.seen, "left", ["pid 9"]),
        (story.walk.seen, "back_at", 1009.0),
    ]
    for part, name, value in spoilt:
        before = getattr(part, name)
        setattr(part, name, value)
        assert len(story.failed()) == 1, name
        setattr(part, name, before)
    story.write([[number, 999 + number, 42 + number // 9] for number in range(1, 21)])
    assert len(story.failed()) == 1, "a second shell did some of the steps"
