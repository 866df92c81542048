"""``subagents demo``: real work by a small fleet, without a model, a key or the user's daemon.

Everything happens in a fresh temporary directory with a daemon of its own. At the end the demo
looks for itself whether all of it is true, and exits 0 only then.
"""

import os
import shlex
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import msgspec

from subagents.api.wire.event_answers import Timeline, TimelineEvent, Why
from subagents.api.wire.message_answers import Attention, AttentionItem, Inbox
from subagents.api.wire.run_answers import PlanReceipt, RunNode, RunResult, WaitResult
from subagents.api.wire.wire_struct import read
from subagents.cli import output
from subagents.cli.flags import Json, Parameter, refuse_unused
from subagents.cli.runs.follow import can_draw
from subagents.client.client import Client, segment
from subagents.client.daemon_start import ensure_daemon
from subagents.errors import (
    EXIT_FAILED,
    EXIT_OK,
    DaemonUnreachable,
    SubagentsError,
    Unavailable,
)
from subagents.extensions.demo.demo_checks import Demonstrated, Finding, findings
from subagents.extensions.demo.demo_fleet import (
    ANSWER,
    ASKS,
    LABELS,
    LAST,
    RETRIED,
    DemoDirectory,
    fleet,
)
from subagents.extensions.demo.demo_stage import STOP_S, Voice, await_end, interruptible, own_daemon
from subagents.process_identity import start_of
from subagents.text import milliseconds_of, one_line, parse_duration

if TYPE_CHECKING:
    from subagents.cli.show.live_screen import LiveTrees

DEADLINE_S: Final = 60.0
"""The deadline of the whole fleet, which needs about two seconds."""
FRAME_S: Final = 0.08
READING_S: Final = 0.8
AWAY: Final = "90s"
"""How long the question stands before it is answered, on a terminal."""
SUMMARY_LINES_SHOWN: Final = 14
QUIET: Final = ("slot granted", "gave its result", "delivery to", "result consumed", "cleaned up",
                "dependency ", "queued in lane", "spawned by", "attempt 1 gave", "attempt 2 gave",
                "verifying (")  # fmt: skip
"""Steps that are shown at the end, in the timeline, but not while the fleet works."""


def demo(
    *,
    kill: Annotated[
        bool, Parameter(help="Kill the daemon (kill -9) in the middle of the work.")
    ] = False,
    keep: Annotated[
        bool, Parameter(help="Keep directory and daemon, to look around in them.")
    ] = False,
    walkaway: Annotated[
        bool,
        Parameter(
            help="Two agents work, the daemon is killed (kill -9), and nobody is back for a while."
        ),
    ] = False,
    away: Annotated[
        str | None,
        Parameter(
            help="With --walkaway: how long nobody is back. Default: 90s.", metavar="DURATION"
        ),
    ] = None,
    scripted: Annotated[
        bool,
        Parameter(help="With --walkaway: use no agent program, so that it costs nothing."),
    ] = False,
    json: Json = False,
) -> int:
    """Show a small fleet at work, without a model or an API key. Your own files are not touched.

    With --walkaway, the workers are agent programs of yours that are logged in, which costs
    some tokens; where there is none, a script takes its place and the output says so.

    The exit code is 0 if everything the demo promises really happened.

    For example:

        subagents demo

        subagents demo --kill --keep

        subagents demo --walkaway --scripted --away 20s
    """
    if walkaway:
        from subagents.extensions.demo import walkaway as story  # noqa: PLC0415

        refuse_unused("is part of --walkaway: leave it out", kill=kill)
        return story.perform(
            away_s=parse_duration(AWAY if away is None else away, field="--away") / 1000,
            with_agents=not scripted,
            keep=keep,
            say=Voice(as_json=json),
        )
    refuse_unused("needs --walkaway", away=away is not None, scripted=scripted)
    say = Voice(as_json=json)
    directory = DemoDirectory.create()
    is_kept = keep
    try:
        with interruptible(), own_daemon(directory, keeps_running=keep) as client:
            code = Demo(directory, client, say).play(kill=kill, keep=keep)
        is_kept = keep or code != EXIT_OK
    except SubagentsError:
        is_kept = True
        raise
    finally:
        if keep:
            _say_how_to_look(directory, say)
        elif is_kept:
            output.note(f"subagents: what the demo left was kept: {directory.root}")
        else:
            directory.remove()
    return code


class Working(NamedTuple):
    """A live attempt."""

    label: str
    attempt: int
    pid: int


class Demo:
    """One performance."""

    def __init__(self, directory: DemoDirectory, client: Client, say: Voice) -> None:
        self._directory = directory
        self._client = client
        self._say = say
        self._ids: dict[str, str] = {}
        self._shown: dict[str, int] = dict.fromkeys(LABELS, 0)
        self._start_ms = 0
        self._is_live = can_draw()
        self._survived = True

    def play(self, *, kill: bool, keep: bool) -> int:
        """Delegate, follow, answer, and look at what came of it.

        Raises:
            Unavailable: The fleet was not done within a minute.
        """
        started = time.monotonic()
        self._introduce()
        answer = self._client.post("/v1/plans", {"specs": fleet(self._directory), **self._where()})
        self._ids = {each.label: each.run_id for each in read(answer, PlanReceipt).receipts}
        try:
            self._follow(kill=kill)
        except BaseException:
            self._cancel_all()
            raise
        done = self._collect()
        seconds = time.monotonic() - started
        found = findings(done)
        if kill:
            found.append(
                Finding(
                    f"{ASKS} went on with the same pid while the daemon was dead", self._survived
                )
            )
        self._tell(done, found, keep=keep)
        is_true = all(each.is_true for each in found)
        self._say()
        verdict = "All of it is true" if is_true else "Not all of it is true"
        self._say(f"{verdict}; {seconds:.1f} s.")
        if self._say.as_json:
            output.document(
                {
                    "ok": is_true,
                    "seconds": round(seconds, 3),
                    "runs": self._ids,
                    "checks": [{"text": each.text, "passed": each.is_true} for each in found],
                    "directory": str(self._directory.root) if keep else None,
                }
            )
        return EXIT_OK if is_true else EXIT_FAILED

    # -- the work -------------------------------------------------------------------------------

    def _introduce(self) -> None:
        modules = len(self._directory.modules())
        pid = self._daemon_pid()
        self._say(f"Four workers look at this package's own source: {modules} modules, copied to")
        self._say(f"{self._directory.work}. No model, no key; a daemon of its own (pid {pid}).")
        self._say()
        self._say("  count, lint   Python programs, each with a contract on the file it writes")
        self._say("  report        a line of shell with a question")
        self._say("  summary       after the other three, from their results")
        self._say()

    def _where(self) -> Mapping[str, object]:
        return {"cwd": str(self._directory.work), "configEnv": {}}

    def _follow(self, *, kill: bool) -> None:
        due = time.monotonic() + DEADLINE_S
        with self._screen() as screen:
            while not self._look(screen):
                question = self._question()
                if question is not None:
                    self._pause(screen)
                    if kill:
                        self._kill_daemon(screen)
                        kill = False
                    self._answer(screen, question)
                if time.monotonic() > due:
                    raise Unavailable(
                        f"the demo's fleet was not done within {DEADLINE_S:.0f} s",
                        hint="look at what it came to: subagents demo --keep",
                    )
                time.sleep(FRAME_S)

    def _screen(self) -> "AbstractContextManager[LiveTrees | None]":
        if not self._is_live:
            return nullcontext()
        from subagents.cli.show.live_screen import LiveTrees  # noqa: PLC0415  for terminals only

        return LiveTrees()

    def _look(self, screen: "LiveTrees | None") -> bool:
        """Show how far they are; returns whether all are over."""
        nodes = {label: self._node(label) for label in LABELS}
        if screen is None:
            self._tell_steps()
        else:
            # A tree of who waits for whom, since none of them spawned another.
            first = [nodes[label] for label in LABELS if label != LAST]
            screen.show([msgspec.structs.replace(nodes[LAST], children=first)])
        return all(node.phase in {"completed", "completed_giveup"} for node in nodes.values())

    def _node(self, label: str) -> RunNode:
        return read(self._client.get(f"/v1/runs/{self._ids[label]}/tree"), RunNode)

    def _tell_steps(self) -> None:
        news: list[tuple[int, str, str]] = []
        for label in LABELS:
            steps = self._why(label).steps
            news += [
                (milliseconds_of(step.occurred_at) or 0, label, step.text)
                for step in steps[self._shown[label] :]
            ]
            self._shown[label] = len(steps)
        for at_ms, label, text in sorted(news, key=lambda each: each[0]):
            self._start_ms = self._start_ms or at_ms
            if not text.startswith(QUIET):
                at = f"+{(at_ms - self._start_ms) / 1000:.2f}s"
                self._say(f"  {at}  {label:<8} {one_line(text, chars_max=110)}")

    def _why(self, label: str) -> Why:
        return read(self._client.get(f"/v1/runs/{self._ids[label]}/why"), Why)

    def _question(self) -> AttentionItem | None:
        items = read(self._client.get("/v1/attention"), Attention).items
        return next((each for each in items if each.kind == "question"), None)

    def _answer(self, screen: "LiveTrees | None", question: AttentionItem) -> None:
        request_id = question.request_id or ""
        self._aside(screen, f"? {question.label} asks: {one_line(question.text, chars_max=200)}")
        self._aside(screen, f"  subagents answer {request_id} {ANSWER}")
        self._client.post(f"/v1/requests/{segment(request_id)}/respond", {"response": ANSWER})

    def _aside(self, screen: "LiveTrees | None", text: str) -> None:
        """Something that is done or said outside the tree."""
        if screen is None:
            self._say(f"  {text}")
        else:
            screen.note(text)

    def _pause(self, screen: "LiveTrees | None") -> None:
        if screen is None:
            return
        due = time.monotonic() + READING_S
        while time.monotonic() < due:
            self._look(screen)
            time.sleep(FRAME_S)

    def _kill_daemon(self, screen: "LiveTrees | None") -> None:
        """kill -9 in the middle of the work; the worker must not notice more than a pause."""
        pid = self._daemon_pid()
        before = self._working()
        os.kill(pid, signal.SIGKILL)
        await_end(pid)
        self._client.close()
        alive = [each for each in before if start_of(each.pid) is not None]
        shown = ", ".join(f"{each.label} (pid {each.pid})" for each in alive)
        self._aside(
            screen, f"! kill -9 {pid}: the daemon is dead; still at work: {shown or 'nobody'}"
        )
        ensure_daemon(self._directory.paths, self._directory.environ(os.environ))
        self._aside(
            screen, f"! a new daemon (pid {self._daemon_pid()}) took over from what is on disk"
        )
        self._pause(screen)
        same = [each for each in self._working() if each in alive]
        for each in same:
            self._aside(
                screen, f"! {each.label} is still attempt {each.attempt} with pid {each.pid}"
            )
        # Others may have come to their end meanwhile; this one waits for its answer.
        self._survived = ASKS in [each.label for each in same]

    def _working(self) -> list[Working]:
        """Who is at work now."""
        found: list[Working] = []
        for label, run_id in self._ids.items():
            run = self._client.get(f"/v1/runs/{run_id}")
            attempts = run.get("attempts")
            newest = attempts[-1] if isinstance(attempts, list) and attempts else {}
            if run.get("phase") == "running":
                found.append(Working(label, newest.get("number", 0), newest.get("pid", 0)))
        return found

    def _daemon_pid(self) -> int:
        pid = self._client.get("/version").get("pid")
        if not isinstance(pid, int):
            raise DaemonUnreachable("the demo's daemon does not say its process id")
        return pid

    def _cancel_all(self) -> None:
        """Nothing of a broken-off demo continues working."""
        try:
            for run_id in self._ids.values():
                self._client.post(f"/v1/runs/{run_id}/cancel", {"reason": "demo broken off"})
            self._wait()
        except SubagentsError as error:
            output.note(f"subagents: could not cancel the demo's runs: {error.message}")

    # -- afterwards -----------------------------------------------------------------------------

    def _wait(self) -> WaitResult:
        body = {"runIds": list(self._ids.values()), "until": "all", "timeoutSeconds": STOP_S}
        return read(self._client.post("/v1/wait", body, timeout_s=STOP_S), WaitResult)

    def _collect(self) -> Demonstrated:
        """Take the results over, as ``subagents wait`` does, and everything that shows how."""
        waited = self._wait()
        self._client.post("/v1/inbox/ack", {"messageIds": waited.messages})
        again = read(self._client.post("/v1/inbox", {}), Inbox).messages
        return Demonstrated(
            directory=self._directory,
            items={item.label: item for item in waited.completed},
            events={label: self._events(label) for label in LABELS},
            inbox=read(self._client.get("/v1/inbox", {"all": 1}), Inbox).messages,
            repeats=sum(message.kind == "announcement" for message in again),
        )

    def _events(self, label: str) -> Sequence[TimelineEvent]:
        path = f"/v1/runs/{self._ids[label]}/timeline"
        return read(self._client.get(path, {"limit": 500}), Timeline).events

    def _tell(self, done: Demonstrated, found: Sequence[Finding], *, keep: bool) -> None:
        self._tell_summary(done.items.get(LAST))
        self._say.heading(f"How {RETRIED} went (subagents why {RETRIED})")
        steps = self._why(RETRIED).steps
        start_ms = milliseconds_of(steps[0].occurred_at) or 0 if steps else 0
        for step in steps:
            at = f"+{((milliseconds_of(step.occurred_at) or 0) - start_ms) / 1000:.2f}s"
            self._say(f"  {at}  {one_line(step.text, chars_max=110)}")
        self._say.heading("What the demo looked up for itself")
        for each in found:
            self._say.mark(each.text, state="ok" if each.is_true else "failed")
        if not keep:
            self._say.heading("Look further")
            self._say("  subagents demo --kill     the same, with kill -9 of the daemon")
            self._say("  subagents demo --keep     keep the files and the daemon to look around")
            self._say("  subagents run 'wc -l *.py > lines.txt' --verify lines.txt")

    def _tell_summary(self, item: RunResult | None) -> None:
        self._say.heading("The result: summary.md")
        file = self._directory.work / "summary.md"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        for line in lines[:SUMMARY_LINES_SHOWN]:
            self._say(f"  | {line}".rstrip())
        self._say.heading("Verified before anybody was told")
        checks = item.verification.checks if item and item.verification else []
        for check in checks:
            detail = check.evidence if check.passed else check.reason
            text = f"{check.target}  {one_line(detail or '', chars_max=80)}".rstrip()
            self._say.mark(text, state="ok" if check.passed else "failed")


def _say_how_to_look(directory: DemoDirectory, say: Voice) -> None:
    say.heading("Kept")
    say(f"  files     {directory.work}")
    say(f"  export SUBAGENTS_HOME={shlex.quote(str(directory.home))}")
    say("  subagents list")
    say(f"  subagents why -v {RETRIED}")
    say(f"  subagents show {LAST}")
    say(f"  subagents down --yes; rm -r {shlex.quote(str(directory.root))}    when you are done")
