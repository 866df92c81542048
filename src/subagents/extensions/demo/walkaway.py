"""``subagents demo --walkaway``: pull the plug, go for coffee.

Two agents are given work, the daemon is killed with SIGKILL, and for a while nobody comes back.
Then a new daemon is started, and the demo looks for itself whether anything was lost: in the
processes, in the files the workers wrote meanwhile, and in the journal.
"""

import json
import math
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from subagents.api.wire.event_answers import Timeline
from subagents.api.wire.message_answers import Inbox
from subagents.api.wire.run_answers import PlanReceipt, RunDetail, WaitResult
from subagents.api.wire.wire_struct import document_of, read
from subagents.cli import output
from subagents.client.client import Client
from subagents.client.daemon_start import answers, ensure_daemon
from subagents.config.programs.program_catalog import Installed
from subagents.domain.run.spec import Artifact, Contract, RunSpec
from subagents.errors import EXIT_FAILED, EXIT_OK, SubagentsError, Unavailable, UsageError
from subagents.extensions.conversation.found_programs import Found, detect
from subagents.extensions.conversation.program_version import version_of
from subagents.extensions.demo import walkaway_worker
from subagents.extensions.demo.demo_checks import Finding
from subagents.extensions.demo.demo_fleet import DemoDirectory
from subagents.extensions.demo.demo_stage import STOP_S, Voice, await_end, interruptible, own_daemon
from subagents.process_identity import start_of
from subagents.text import one_line

WORKERS: Final = 2
AWAY_S: Final = (1.0, 3600.0)
STEP_S: Final = 2.0
TAIL_S: Final = 12.0
"""There is work left for so long when somebody comes back."""
BEGIN_S: Final = 180.0
"""An agent program starts, and its model answers, within that."""
FINISH_S: Final = 240.0
LOOKS: Final = 6
"""How often the absence is reported."""
POLL_S: Final = 0.2
NOT_SPAWNED: Final = RunDetail(run_id="")
NOT_TWICE: Final = frozenset({"claude-agent-acp", "codex-acp", "openclaw", "llm"})
"""The same programs once more, over another protocol; or none that runs commands."""


class Process(NamedTuple):
    """A process, and when the kernel started it, so that no other one is taken for it."""

    pid: int = 0
    started: str = ""

    def is_still_there(self) -> bool:
        return self.started != "" and start_of(self.pid) == self.started


@dataclass(slots=True, kw_only=True)
class Worker:
    """One of the two, and what was seen of it."""

    label: str
    title: str
    section: Mapping[str, Any]
    """Its agent in the configuration."""
    is_scripted: bool
    run: RunDetail = NOT_SPAWNED
    """What the daemon said of its run last."""
    process: Process = field(default_factory=Process)
    """The process of its first attempt, seen before the daemon was killed."""
    survived: bool = False
    consumed: int = 0
    """How often the journal says that its result was handed over."""

    def lines(self, directory: DemoDirectory) -> list[list[int]]:
        """Of its log of steps: number, time, pid of the shell."""
        try:
            text = (directory.work / self.label / "steps.log").read_text(encoding="utf-8")
        except OSError:
            return []
        rows = [line.split() for line in text.splitlines()]
        return [[int(word) for word in row] for row in rows if len(row) == 3]


@dataclass(slots=True, kw_only=True)
class Seen:
    """What came of it."""

    away_s: float
    killed_at: float = 0.0
    back_at: float = 0.0
    old_pid: int = 0
    new_pid: int = 0
    answered_while_away: bool = False
    announced: int = 0
    again: int = 0
    """Announcements that a second look into the inbox offered."""
    left: list[str] = field(default_factory=list)


def perform(*, away_s: float, with_agents: bool, keep: bool, say: Voice) -> int:
    """Play it; returns 0 when everything that it promises was seen.

    Raises:
        UsageError: ``away_s`` is out of bounds.
        Unavailable: The workers did not begin, or did not end.
    """
    if not AWAY_S[0] <= away_s <= AWAY_S[1]:
        raise UsageError("--away must be 1s to 1h", details={"field": "--away"})
    directory = DemoDirectory.empty()
    workers = chosen(os.environ, with_agents=with_agents)
    is_kept = keep
    try:
        directory.configure(configuration(workers))
        with interruptible(), own_daemon(directory, keeps_running=keep) as client:
            story = Walkaway(directory, client, workers, say, away_s=away_s)
            try:
                story.play()
            except BaseException:
                story.cancel()
                raise
        if not keep:
            story.seen.left = left_of(directory)
        code = story.conclude(is_kept=keep)
        is_kept = keep or code != EXIT_OK
    except SubagentsError:
        is_kept = True
        raise
    finally:
        if is_kept:
            output.note(f"subagents: what the demo left was kept: {directory.root}")
        else:
            directory.remove()
    return code


def chosen(environ: Mapping[str, str], *, with_agents: bool) -> list[Worker]:
    """Agent programs that are here and logged in; a script in the place of each that is missing."""
    found = [each for each in detect(environ) if is_fit(each)] if with_agents else []
    workers = [_agent(each, environ) for each in found[:WORKERS]]
    path = os.environ.get("PATH", os.defpath)
    for number in range(len(workers) + 1, WORKERS + 1):
        label = f"script-{number}"
        command = [sys.executable, "-I", str(Path(walkaway_worker.__file__)), label]
        section = {"runtime": "command", "command": command, "env": {"PATH": path}}
        title = "a script, in the place of an agent program"
        workers.append(Worker(label=label, title=title, section=section, is_scripted=True))
    return workers


def is_fit(found: Found) -> bool:
    """Whether it can work here: somebody is logged in, and it runs commands."""
    return found.login is not None and found.program.name not in NOT_TWICE


def _agent(found: Found, environ: Mapping[str, str]) -> Worker:
    program = found.program
    version = version_of(Installed(program.name, program, found.place), environ)
    section = {"runtime": program.runtime, "runtime_options": dict(program.options)}
    title = f"{program.title} ({version or found.place})"
    return Worker(label=program.name, title=title, section=section, is_scripted=False)


def configuration(workers: Sequence[Worker]) -> str:
    """The ``subagents.toml`` of the demo's daemon."""
    lines = []
    for worker in workers:
        lines.append(f"[agents.{worker.label}]")
        for name, value in worker.section.items():
            if isinstance(value, dict):
                lines += [f"{name}.{key} = {json.dumps(each)}" for key, each in value.items()]
            else:
                lines.append(f"{name} = {json.dumps(value)}")
    return "\n".join([*lines, ""])


class Walkaway:
    """One performance."""

    def __init__(
        self,
        directory: DemoDirectory,
        client: Client,
        workers: Sequence[Worker],
        say: Voice,
        *,
        away_s: float,
    ) -> None:
        self._directory = directory
        self._client = client
        self._workers = workers
        self._say = say
        self.seen = Seen(away_s=away_s)
        self._step_s = min(STEP_S, away_s / 10)
        self._count = math.ceil((away_s + min(TAIL_S, away_s)) / self._step_s)
        self._begun_at = time.monotonic()

    def play(self) -> None:
        """Delegate, pull the plug, stay away, come back, and collect.

        Raises:
            Unavailable: They did not begin, or did not end, in time.
        """
        self._delegate()
        self._until_at_work()
        self._pull_the_plug()
        self._stay_away()
        self._come_back()
        self._collect()

    def cancel(self) -> None:
        """Nothing of a walk that was broken off goes on working; only a daemon can end it."""
        try:
            ensure_daemon(self._directory.paths, self._directory.environ(os.environ))
            ids = [worker.run.run_id for worker in self._workers if worker.run.run_id]
            for run_id in ids:
                self._client.post(f"/v1/runs/{run_id}/cancel", {"reason": "demo broken off"})
            body = {"runIds": ids, "until": "all", "timeoutSeconds": STOP_S}
            self._client.post("/v1/wait", body, timeout_s=STOP_S)
        except SubagentsError as error:
            output.note(f"subagents: could not cancel the demo's runs: {error.message}")

    # -- before ---------------------------------------------------------------------------------

    def _delegate(self) -> None:
        self.seen.old_pid = self._daemon_pid()
        self._at(f"a daemon of its own: pid {self.seen.old_pid}")
        for worker in self._workers:
            folder = self._directory.work / worker.label
            folder.mkdir(parents=True)
            text = walkaway_worker.STEPS.format(seconds=f"{self._step_s:g}", count=self._count)
            (folder / "steps.sh").write_text(text, encoding="utf-8")
        specs = [self._spec(worker) for worker in self._workers]
        body = {"specs": specs, "cwd": str(self._directory.work), "configEnv": {}}
        receipts = read(self._client.post("/v1/plans", body), PlanReceipt).receipts
        for worker, receipt in zip(self._workers, receipts, strict=True):
            worker.run = self._run(receipt.run_id)
            self._at(f"{worker.label}: {receipt.run_id}, {worker.title}")
        if all(worker.is_scripted for worker in self._workers):
            self._say(f"{'':11}no agent program is used here: both workers are scripts")

    def _spec(self, worker: Worker) -> RunSpec:
        takes = round(self._count * self._step_s)
        schema: dict[str, object] = {
            "type": "object",
            "required": ["worker", "steps"],
            "properties": {"worker": {"const": worker.label}, "steps": {"const": self._count}},
        }
        task = walkaway_worker.TASK.format(label=worker.label, takes=takes, limit=takes * 2 + 60)
        return RunSpec(
            task=task,
            label=worker.label,
            agent_id=worker.label,
            cwd=str(self._directory.work / worker.label),
            verification=Contract(artifacts=(Artifact(path="report.json", schema=schema),)),
        )

    def _until_at_work(self) -> None:
        due = time.monotonic() + BEGIN_S
        while not all(len(worker.lines(self._directory)) >= 2 for worker in self._workers):
            for worker in self._workers:
                worker.run = self._run(worker.run.run_id)
                if worker.run.outcome is not None:
                    reason = one_line(worker.run.outcome.error or worker.run.phase, chars_max=300)
                    raise Unavailable(
                        f"{worker.label} ended before it worked: {reason}",
                        hint="without agent programs: subagents demo --walkaway --scripted",
                    )
            if time.monotonic() > due:
                raise Unavailable(f"the workers did not begin within {BEGIN_S:.0f} s")
            time.sleep(POLL_S)
        for worker in self._workers:
            worker.run = self._run(worker.run.run_id)
            pid = worker.run.attempts[-1].pid or 0
            worker.process = Process(pid, start_of(pid) or "")
            self._at(f"{worker.label}: attempt 1, pid {pid}, at work")

    # -- the plug -------------------------------------------------------------------------------

    def _pull_the_plug(self) -> None:
        os.kill(self.seen.old_pid, signal.SIGKILL)
        await_end(self.seen.old_pid)
        self._client.close()
        self.seen.killed_at = time.time()
        self._at(f"kill -9 {self.seen.old_pid}: the daemon is dead; nobody is back for a while")

    def _stay_away(self) -> None:
        """Look only at what anybody could see: processes and files."""
        begun, told = time.monotonic(), 0
        while (gone := time.monotonic() - begun) < self.seen.away_s:
            if gone >= (told + 1) * self.seen.away_s / LOOKS:
                told += 1
                self.seen.answered_while_away |= answers(self._directory.paths.socket)
                shown = [
                    f"{each.label} pid {each.process.pid}"
                    f" {'alive' if each.process.is_still_there() else 'GONE'},"
                    f" step {len(each.lines(self._directory))}"
                    for each in self._workers
                ]
                self._at(f"  no daemon; {'; '.join(shown)}")
            time.sleep(POLL_S)

    def _come_back(self) -> None:
        self.seen.answered_while_away |= answers(self._directory.paths.socket)
        self.seen.back_at = time.time()
        for worker in self._workers:
            worker.survived = worker.process.is_still_there()
        ensure_daemon(self._directory.paths, self._directory.environ(os.environ))
        self.seen.new_pid = self._daemon_pid()
        self._at(f"somebody is back: a new daemon, pid {self.seen.new_pid}")

    # -- after ----------------------------------------------------------------------------------

    def _collect(self) -> None:
        due = time.monotonic() + FINISH_S
        ids = [worker.run.run_id for worker in self._workers]
        body = {"runIds": ids, "until": "all", "timeoutSeconds": 20}
        while True:
            waited = read(self._client.post("/v1/wait", body, timeout_s=25), WaitResult)
            if not waited.pending:
                break
            if time.monotonic() > due:
                raise Unavailable(f"the workers did not end within {FINISH_S:.0f} s")
        self._client.post("/v1/inbox/ack", {"messageIds": waited.messages})
        again = read(self._client.post("/v1/inbox", {}), Inbox).messages
        self.seen.again = sum(each.kind == "announcement" for each in again)
        inbox = read(self._client.get("/v1/inbox", {"all": 1}), Inbox).messages
        self.seen.announced = sum(each.kind == "announcement" for each in inbox)
        for worker in self._workers:
            worker.run = self._run(worker.run.run_id)
            path = f"/v1/runs/{worker.run.run_id}/timeline"
            events = read(self._client.get(path, {"limit": 500}), Timeline).events
            consumed = [each for each in events if each.type == "AnnouncementConsumed"]
            worker.consumed = sum(not each.stale for each in consumed)
            status = worker.run.outcome.status if worker.run.outcome else worker.run.phase
            result = one_line(worker.run.result or "", chars_max=60)
            self._at(f"{worker.label}: {status}, {_verdict(worker.run)}: {result}")

    def conclude(self, *, is_kept: bool) -> int:
        """Say what was seen; returns the exit code."""
        found = self.findings(is_kept=is_kept)
        self._say.heading("What the demo looked up for itself")
        for each in found:
            self._say.mark(each.text, state="ok" if each.is_true else "failed")
        is_true = all(each.is_true for each in found)
        seconds = time.monotonic() - self._begun_at
        self._say()
        verdict = "All of it is true" if is_true else "Not all of it is true"
        self._say(f"{verdict}; {seconds:.0f} s.")
        if self._say.as_json:
            output.document(
                {
                    "ok": is_true,
                    "seconds": round(seconds, 3),
                    "workers": [
                        {
                            "pid": each.process.pid,
                            "scripted": each.is_scripted,
                            **document_of(each.run),
                        }
                        for each in self._workers
                    ],
                    "checks": [{"text": each.text, "passed": each.is_true} for each in found],
                }
            )
        return EXIT_OK if is_true else EXIT_FAILED

    def findings(self, *, is_kept: bool) -> list[Finding]:
        """Every promise, with the numbers that prove it."""
        seen = self.seen
        gone = seen.back_at - seen.killed_at
        alone = gone >= seen.away_s and not seen.answered_while_away
        made = [Finding(f"for {gone:.1f} s no daemon answered (pid {seen.old_pid} dead)", alone)]
        for worker in self._workers:
            pid = worker.process.pid
            is_one = worker.survived and [each.pid for each in worker.run.attempts] == [pid]
            text = f"{worker.label}: one attempt, pid {pid} before and after"
            made.append(Finding(text, is_one))
            made.append(self._worked_on(worker))
        made += [
            Finding(
                f"{worker.label}: report.json checked, {_verdict(worker.run)}",
                _is_good(worker.run),
            )
            for worker in self._workers
        ]
        times = ", ".join(f"{worker.label} {worker.consumed}×" for worker in self._workers)
        once = all(worker.consumed == 1 for worker in self._workers)
        is_once = once and seen.announced == len(self._workers) and seen.again == 0
        inbox = f"{seen.announced} announcements in the inbox, {seen.again} offered again"
        made.append(Finding(f"each result handed over once: {times}; {inbox}", is_once))
        if not is_kept:
            left = "; ".join(seen.left) or "no process"
            made.append(Finding(f"left behind: {left}", not seen.left))
        return made

    def _worked_on(self, worker: Worker) -> Finding:
        """Steps while nobody was there: many, without a gap, by one shell."""
        rows = worker.lines(self._directory)
        while_away = [row for row in rows if self.seen.killed_at <= row[1] <= self.seen.back_at]
        times = [row[1] for row in while_away]
        gap = max((b - a for a, b in pairwise(times)), default=0)
        shells = {row[2] for row in rows}
        numbers = [row[0] for row in rows]
        # Half of what was due: a busy machine sleeps longer than it was told to.
        enough = len(while_away) >= self.seen.away_s / self._step_s / 2
        is_true = enough and len(shells) == 1 and numbers == list(range(1, self._count + 1))
        text = (
            f"{worker.label}: {len(while_away)} of its {len(rows)} steps meanwhile, no gap over"
            f" {max(gap, math.ceil(self._step_s))} s, each step once"
        )
        return Finding(text, is_true)

    # -- small parts ----------------------------------------------------------------------------

    def _at(self, text: str) -> None:
        self._say(f"  {time.monotonic() - self._begun_at:6.1f}s  {text}")

    def _run(self, run_id: str) -> RunDetail:
        return read(self._client.get(f"/v1/runs/{run_id}"), RunDetail)

    def _daemon_pid(self) -> int:
        pid = self._client.get("/version").get("pid")
        if not isinstance(pid, int):
            raise Unavailable("the demo's daemon does not say its process id")
        return pid


def _verdict(run: RunDetail) -> str:
    found = run.verification
    if found is None:
        return "not verified"
    passed = sum(check.passed for check in found.checks)
    return f"{found.status} {passed}/{len(found.checks)}"


def _is_good(run: RunDetail) -> bool:
    if run.verification is None or run.outcome is None or run.outcome.status != "ok":
        return False
    return bool(run.verification.checks) and all(check.passed for check in run.verification.checks)


def left_of(directory: DemoDirectory) -> list[str]:
    """Command lines of processes that still belong to this directory, by their environment."""
    mark = os.fsencode(directory.home)
    found: list[str] = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if int(each.name) != os.getpid() and mark in (each / "environ").read_bytes():
                words = (
                    (each / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
                found.append(f"pid {each.name}: {one_line(words, chars_max=80)}")
        except OSError:
            continue
    return found
