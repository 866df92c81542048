"""One home and two versions of the command, with the checks on what they say."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Self

Version = Literal["old", "new"]
Answer = dict[str, Any]

OVER = ("completed", "completed_giveup")
RETRY_WAIT = ("retry_wait",)
RUNNING = ("running",)
SHOWN_MAX = 700
CONFIG = """
[agents.defaults.subagents]
max_spawn_depth = 2
max_children_per_agent = 50
max_concurrent = 30
[agents.main]
subagents.allow_agents = ["*"]
"""


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def start_time(pid: int) -> str | None:
    """Clock ticks since boot; None when the process is gone or a zombie.

    With the id it tells one process from another.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def outcome(run: Answer) -> tuple[str, str]:
    """Its status and its reason; both empty while the run has none."""
    found = run.get("outcome") or {}
    return found.get("status") or "", found.get("reason") or ""


def attempts(run: Answer) -> int:
    return len(run.get("attempts", []))


def result(run: Answer) -> str:
    return (run.get("result") or "").strip()


class VersionedHome:
    """A temporary home; every process in it, and the home itself, is gone after the ``with``."""

    def __init__(self, old: Path, new: Path, failed: list[str]) -> None:
        """``failed`` gets the name of each check that fails."""
        self._failed = failed
        # Not TMPDIR: the path of a socket in it may be 107 bytes long at most.
        self.root = Path(tempfile.mkdtemp(prefix="sa-up-", dir="/tmp"))
        self.work = self.root / "work"
        self.work.mkdir()
        for version, program in (("old", old), ("new", new)):
            binaries = self.root / "bin" / version
            binaries.mkdir(parents=True)
            (binaries / "subagents").symlink_to(program)
        config = self.root / "h" / "config" / "subagents.toml"
        config.parent.mkdir(parents=True)
        config.write_text(CONFIG)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.call("new", "down", "--yes")
        for sign in (signal.SIGTERM, signal.SIGKILL):
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, sign)
            time.sleep(0.3)
        shutil.rmtree(self.root, ignore_errors=True)

    def check(self, what: str, is_true: object, seen: object = "") -> None:
        shown = "" if is_true else f"  [{str(seen).strip()[:SHOWN_MAX]}]"
        tell(f"  {'ok  ' if is_true else 'FAIL'} {what}{shown}")
        if not is_true:
            self._failed.append(what)

    def check_done(self, what: str, done: subprocess.CompletedProcess[str]) -> None:
        self.check(what, done.returncode == 0, f"{done.stdout} {done.stderr}")

    def wait_until(self, what: str, is_true: Callable[[], object], timeout: float) -> None:
        """Look again and again; a failed check after ``timeout`` seconds."""
        due = time.monotonic() + timeout
        while time.monotonic() < due:
            if is_true():
                return
            time.sleep(0.2)
        self.check(what, is_true=False, seen=f"not within {timeout:.0f} s")

    def wait_phase(
        self, version: Version, label: str, phases: tuple[str, ...], timeout: float = 10
    ) -> None:
        what = f"{label} is {' or '.join(phases)}"
        self.wait_until(what, lambda: self.show(version, label).get("phase") in phases, timeout)

    def wait_question(self, version: Version, label: str, timeout: float = 10) -> str:
        """The id of the first question that the worker asks."""
        self.wait_until(f"{label} asks", lambda: self.show(version, label).get("requests"), timeout)
        asked = self.show(version, label).get("requests") or [{"requestId": "none"}]
        return str(asked[0]["requestId"])

    def call(self, version: Version, *args: str) -> subprocess.CompletedProcess[str]:
        kept = ("LANG", "LC_ALL", "USER", "LOGNAME")
        env = {name: os.environ[name] for name in kept if name in os.environ}
        env["PATH"] = f"{self.root}/bin/{version}:/usr/local/bin:/usr/bin:/bin"
        env |= {"HOME": str(self.root), "SUBAGENTS_HOME": str(self.root / "h")}
        return subprocess.run(
            [str(self.root / "bin" / version / "subagents"), *args],
            cwd=self.work,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )

    def must(self, version: Version, *args: str) -> str:
        """What it prints; a failed check when it fails."""
        done = self.call(version, *args)
        if done.returncode:
            self.check_done(f"{version}: subagents {' '.join(args)[:70]}", done)
        return done.stdout.strip()

    def json(self, version: Version, *args: str) -> Answer:
        """Empty when the command fails."""
        with contextlib.suppress(ValueError):
            found = json.loads(self.call(version, *args, "--json").stdout)
            if isinstance(found, dict):
                return found
        return {}

    def show(self, version: Version, run: str) -> Answer:
        return self.json(version, "show", run)

    def log(self, run: str, prefix: str, version: Version = "new") -> list[str]:
        """The lines of its log that begin so."""
        lines = self.json(version, "log", run, "--limit", "500").get("lines", [])
        return [each["text"] for each in lines if each["text"].startswith(prefix)]

    def inbox(self, *flags: str) -> list[Answer]:
        found: list[Answer] = self.json("new", "inbox", *flags, "--limit", "500").get(
            "messages", []
        )
        return found

    def announced(self, messages: list[Answer]) -> list[str]:
        """The ids of the runs whose end they tell."""
        return [str(each["runId"]) for each in messages if each["kind"] == "announcement"]

    def daemon_pid(self, version: Version) -> int:
        return int(self.json(version, "up").get("daemonPid", 0))

    def processes(self, run_id: str | None = None) -> dict[int, str]:
        """The start time by id of every process of this home, or of one run of it."""
        marker = f"PATH={self.root}/bin/".encode()
        wanted = run_id and f"SUBAGENTS_RUN_ID={run_id}".encode()
        found = {}
        for each in Path("/proc").iterdir():
            if not each.name.isdigit() or int(each.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                environ = (each / "environ").read_bytes().split(b"\0")
                is_here = any(part.startswith(marker) for part in environ)
                since = start_time(int(each.name))
                if since and is_here and (wanted is None or wanted in environ):
                    found[int(each.name)] = since
        return found

    def kept_of(self, before: dict[int, str], run_id: str) -> int:
        """How many of these processes are still the same."""
        return len(before.items() & self.processes(run_id).items())
