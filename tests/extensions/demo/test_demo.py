"""``subagents demo`` is believed only as far as these tests look after it."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from subagents.client.daemon_start import answers
from subagents.domain.rules.contract import validate
from subagents.extensions.demo import demo_worker
from subagents.extensions.demo.demo_checks import Demonstrated, findings
from subagents.extensions.demo.demo_fleet import DemoDirectory, fleet

TIMEOUT_S = 60.0
COMMAND = [sys.executable, "-m", "subagents", "demo"]


def environ(tmp: Path, **more: str) -> dict[str, str]:
    """The test's own temporary directory, and a user's home that must stay untouched."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("SUBAGENTS_")}
    (tmp / "t").mkdir(exist_ok=True)
    ours = {"TMPDIR": str(tmp / "t"), "SUBAGENTS_HOME": str(tmp / "user")}
    return {**kept, **ours, "NO_COLOR": "1", **more}


def perform(tmp: Path, *flags: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *flags],
        env=environ(tmp, **more),
        cwd=tmp,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def processes_of(tmp: Path) -> list[str]:
    """Command lines of live processes whose environment names the test's directory."""
    found: list[str] = []
    for each in Path("/proc").iterdir():
        if not each.name.isdecimal() or int(each.name) == os.getpid():
            continue
        try:
            if str(tmp / "t").encode() in (each / "environ").read_bytes():
                found.append((each / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def assert_nothing_is_left(tmp: Path) -> None:
    due = time.monotonic() + 10
    while processes_of(tmp) and time.monotonic() < due:
        time.sleep(0.05)
    assert processes_of(tmp) == []
    assert list((tmp / "t").iterdir()) == []


@pytest.mark.requirement("demo:first-minute")
def test_the_demo_does_real_work_shows_it_and_leaves_nothing(tmp_path: Path) -> None:
    done = perform(tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    for shown in (
        "verification failed: File counts.json has 0 items",
        "attempt 2 started",
        "? report asks: Sort the report by size or by name?",
        '"size"',
        "summary  attempt 1 started",
        "The result: summary.md",
        "How count went (subagents why count)",
        "Look further",
        "All of it is true",
    ):
        assert shown in done.stdout
    assert "\x1b" not in done.stdout
    assert_nothing_is_left(tmp_path)


@pytest.mark.requirement("demo:own-home")
def test_the_demo_never_touches_the_homes_of_user_or_worker(tmp_path: Path) -> None:
    """Also not when it is itself started by a worker, with a socket in its environment."""
    planted = {
        "SUBAGENTS_SOCKET": str(tmp_path / "no.sock"),
        "SUBAGENTS_RUN_ID": "r-0000000000",
        "SUBAGENTS_SESSION_KEY": "agent:x:subagent:y",
        "SUBAGENTS_AGENTS__DEFAULTS__SUBAGENTS__MAX_CONCURRENT": "nonsense",
    }

    done = perform(tmp_path, "--json", **planted)

    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "user").exists()


@pytest.mark.requirement("demo:kill")
def test_the_demo_survives_kill_9_of_its_daemon(tmp_path: Path) -> None:
    done = perform(tmp_path, "--kill", "--json")

    document = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert document["ok"] is True
    assert document["seconds"] > 0
    texts = [check["text"] for check in document["checks"] if check["passed"]]
    assert "report went on with the same pid while the daemon was dead" in texts
    assert "no worker was started twice for the same attempt (starts.log)" in texts
    assert "the daemon is dead; still at work:" in done.stderr
    assert_nothing_is_left(tmp_path)


@pytest.mark.requirement("demo:keep")
def test_a_kept_demo_can_be_looked_at_with_the_commands_it_names(tmp_path: Path) -> None:
    done = perform(tmp_path, "--keep", "--json")
    root = Path(json.loads(done.stdout)["directory"])
    env = {**environ(tmp_path), "SUBAGENTS_HOME": str(root / "home")}

    try:
        shown = subprocess.run(
            [sys.executable, "-m", "subagents", "timeline", "count"],
            env=env,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert shown.stdout.count("VerificationFinished") == 2, shown.stderr
        assert (root / "work" / "summary.md").stat().st_size > 400
    finally:
        subprocess.run(
            [sys.executable, "-m", "subagents", "down", "--yes"],
            env=env,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=True,
        )
    assert not answers(DemoDirectory(root).paths.socket)
    assert f"export SUBAGENTS_HOME={root / 'home'}" in done.stderr


@pytest.mark.requirement("demo:live-tree")
def test_on_a_terminal_the_demo_draws_who_waits_for_whom(tmp_path: Path) -> None:
    screen = on_terminal(environ(tmp_path, TERM="xterm", COLUMNS="120", LINES="40"))

    assert "├ ✔ count" in screen
    assert "? report asks: Sort the report by size or by name?" in screen
    assert "All of it is true" in screen
    assert "\x1b[32m" not in screen  # NO_COLOR


def on_terminal(env: Mapping[str, str]) -> str:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(COMMAND, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    content = b""
    try:
        while chunk := os.read(ours, 65536):
            content += chunk
    except OSError:
        # How Linux tells that the other side of a terminal was closed.
        pass
    finally:
        os.close(ours)
    assert process.wait(TIMEOUT_S) == 0, content.decode(errors="replace")
    return content.decode(errors="replace")


@pytest.mark.requirement("demo:interrupted")
def test_an_interrupted_demo_leaves_neither_workers_nor_daemon_nor_files(tmp_path: Path) -> None:
    process = subprocess.Popen(
        COMMAND, env=environ(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    while "attempt 1 started" not in (line := process.stdout.readline()):
        assert line, "it ended before any worker started"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == 130
    assert_nothing_is_left(tmp_path)


@pytest.mark.requirement("demo:interrupted")
def test_a_demo_whose_reader_went_away_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        COMMAND, env=environ(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    process.wait(TIMEOUT_S)

    assert b"Traceback" not in said
    assert_nothing_is_left(tmp_path)


@pytest.mark.requirement("demo:checked")
def test_the_demo_believes_nothing_that_did_not_happen(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    nothing = Demonstrated(
        directory=DemoDirectory(tmp_path), items={}, events={}, inbox=[], repeats=0
    )

    found = findings(nothing)

    assert len(found) == 8
    assert [each.text for each in found if each.is_true] == []


@pytest.mark.requirement("demo:checked")
def test_every_contract_of_the_demo_can_be_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    directory = DemoDirectory.create()

    contracts = [spec.verification for spec in fleet(directory)]

    assert directory.root.parent == tmp_path
    for contract in contracts:
        assert contract is not None
        validate(contract, commands_allowed=False)


@pytest.mark.requirement("demo:first-minute")
def test_the_counting_worker_finds_everything_only_when_told_what_was_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "source" / "package").mkdir(parents=True)
    (tmp_path / "source" / "package" / "a.py").write_text("1\n2\n")
    monkeypatch.chdir(tmp_path)

    monkeypatch.delenv("SUBAGENTS_RETRY_REASON", raising=False)
    demo_worker.count()
    first = json.loads(Path("counts.json").read_text())
    monkeypatch.setenv("SUBAGENTS_RETRY_REASON", "0 items")
    told = demo_worker.count()

    assert first == []
    assert json.loads(Path("counts.json").read_text()) == [
        {"module": "source/package/a.py", "lines": 2}
    ]
    assert "I was told: 0 items" in told
