"""The old daemon starts workers of many kinds and is killed; the new one starts on its home.

The workers' own `subagents` is the old one. Whatever they do afterwards (ask, report, spawn, end)
reaches the new daemon.
"""

import json
import os
import re
import signal
from collections import Counter

from tests.upgrade.versioned_home import (
    OVER,
    RETRY_WAIT,
    RUNNING,
    Answer,
    VersionedHome,
    attempts,
    outcome,
    result,
    start_time,
    tell,
)

TICKS = [f"tick {n}" for n in range(1, 61)]
TICKING = f"for i in $(seq {len(TICKS)}); do echo tick $i; sleep 0.5; done"
THEN = "while [ ! -e new-is-here ]; do sleep 0.3; done; "
"""What follows it happens when the new daemon is in charge."""

TASKS: dict[str, tuple[str, ...]] = {
    "quick": ("echo quick result",),
    "read-before": ("echo read",),
    "ticker": (TICKING,),
    "errors": (
        (
            f"for i in 1 2 3 4 5; do echo line $i >&2; done; {THEN}"
            "for i in 6 7 8 9 10; do echo line $i >&2; done; exit 3"
        ),
    ),
    "after-ticker": ("tail -n 1", "--after", "ticker", "--include-result"),
    "asker": (
        (
            "echo before; a=$(subagents ask 'which branch?' --option main --option dev"
            ' --timeout 5m); echo "got $a"'
        ),
    ),
    "asks-later": (f"{THEN}a=$(subagents ask 'and now?' --timeout 5m); echo \"then $a\"",),
    "backoff": (
        "test -e flag && echo second time || { touch flag; echo first >&2; exit 7; }",
        *("--retry", "2", "--retry-delay", "30s", "--backoff", "fixed"),
    ),
    "deadline": ("echo begun; sleep 300", "--timeout", "30s"),
    "reporter": (
        (
            f"{THEN}subagents progress 'late phase' 70; subagents notify 'late notice';"
            " subagents report 'late report' --confidence high; echo reported"
        ),
        "--require-report",
    ),
    "verified": (
        f"{THEN}echo '[1,2,3]' > out.json; echo made",
        *("--verify", "out.json", "--verify-json", "--min-items", "3"),
    ),
    "while-away": (
        (
            "while [ ! -e nobody-is-here ]; do sleep 0.2; done; sleep 2;"
            " echo ended while nobody looked; touch ended-alone"
        ),
    ),
    "parent": (
        f"{THEN}subagents run 'echo from the child' --label child; echo parent done",
        *("--max-runs", "5"),
    ),
    "family": (
        (
            f"subagents spawn '{THEN}echo grown' --label early-child >&2; {THEN}sleep 2;"
            " echo family done"
        ),
    ),
    "cancel-me": ("sleep 500",),
    "heavy": (
        "echo heavy done",
        *("--after", "cancel-me", "--on-dependency-failure", "run", "--tag", "t"),
        *("--max-tokens", "1000", "--max-time", "2h"),
    ),
}
LIVE = (
    "ticker",
    "errors",
    "asker",
    "asks-later",
    "deadline",
    "reporter",
    "verified",
    "parent",
    "family",
    "cancel-me",
)
"""At work when the old daemon is killed, and when the new one starts."""

ENDS: dict[str, tuple[str, str, int]] = {
    # All but heavy, which stays paused until the last step.
    **{label: ("ok", "", 1) for label in TASKS if label != "heavy"},
    "errors": ("error", "exit_code", 1),
    "backoff": ("ok", "", 2),
    "deadline": ("timeout", "deadline", 1),
    "cancel-me": ("cancelled", "cancelled_by_caller", 1),
}
"""The outcome's status and reason (empty: any) and the number of attempts."""

RESULTS = {
    "ticker": "\n".join(TICKS),
    "after-ticker": TICKS[-1],
    "asks-later": "then later",
    "backoff": "second time",
    "while-away": "ended while nobody looked",
}


class Takeover:
    """The scenario, step by step; each step goes on where the one before it stopped."""

    def __init__(self, home: VersionedHome) -> None:
        self._home = home
        self._runs: dict[str, str] = {}
        """Run ids by label."""
        self._before: dict[str, dict[int, str]] = {}
        self._question = ""

    def run(self) -> None:
        self._start_workers()
        self._kill_the_daemon()
        self._check_adoption()
        self._act_on_workers()
        shows = self._check_ends()
        self._check_results(shows)
        self._check_worker_calls(shows)
        self._check_views()
        self._check_history()
        self._check_inbox()
        self._check_new_work()

    def _start_workers(self) -> None:
        home = self._home
        tell(f"  {home.must('old', '--version')}, then {home.must('new', '--version')}")
        home.must("old", "up")
        for label, (task, *flags) in TASKS.items():
            self._runs[label] = home.must("old", "spawn", task, "--label", label, *flags)
        home.must("old", "wait", "read-before")
        home.must("old", "pause", "heavy")
        for label in (*LIVE, "while-away"):
            home.wait_phase("old", label, RUNNING)
        self._question = home.wait_question("old", "asker")
        home.wait_phase("old", "backoff", RETRY_WAIT)
        home.wait_phase("old", "early-child", RUNNING)
        home.wait_until("ticker writes", lambda: home.log("ticker", "tick", "old"), 10)

    def _kill_the_daemon(self) -> None:
        home = self._home
        self._before = {label: home.processes(self._runs[label]) for label in LIVE}
        pid = home.daemon_pid("old")
        written = len(home.log("ticker", "tick", "old"))
        os.kill(pid, signal.SIGKILL)
        tell(f"  --   killed the old daemon (pid {pid}); the log of ticker had {written} lines")
        home.wait_until("the old daemon is gone", lambda: start_time(pid) is None, 10)
        (home.work / "nobody-is-here").touch()
        home.wait_until("while-away ends without a daemon", (home.work / "ended-alone").exists, 15)

    def _check_adoption(self) -> None:
        home = self._home
        alive = {label: home.kept_of(self._before[label], self._runs[label]) for label in LIVE}
        home.check("workers live on without a daemon", all(alive.values()), alive)
        home.check_done("the new daemon starts on the old home", home.call("new", "up"))
        for label in LIVE:
            before = self._before[label]
            kept, show = home.kept_of(before, self._runs[label]), home.show("new", label)
            # A shell loop's sleep comes and goes; the shim and the worker stay.
            home.check(
                f"{label}: same processes, same attempt",
                kept >= 2 and attempts(show) == 1,
                f"{kept} of {len(before)} kept, attempts {attempts(show)}, {show.get('phase')}",
            )
        waiting = home.show("new", "backoff")
        is_waiting = waiting.get("phase") in RETRY_WAIT and attempts(waiting) == 1
        home.check("backoff waits still", is_waiting, waiting.get("phase"))
        after = home.show("new", "after-ticker")
        home.check("after-ticker waits still", after and not attempts(after), after.get("phase"))

    def _act_on_workers(self) -> None:
        home = self._home
        attention = json.dumps(home.json("new", "attention"))
        home.check("attention names the open question", self._question in attention)
        home.check_done(
            "the new command answers the old worker's question",
            home.call("new", "answer", self._question, "dev"),
        )
        home.check_done(
            "the new command cancels an old worker",
            home.call("new", "cancel", "cancel-me", "--reason", "enough", "--yes"),
        )
        (home.work / "new-is-here").touch()
        asked = home.wait_question("new", "asks-later", 25)
        home.must("new", "answer", asked, "later")

    def _check_ends(self) -> dict[str, Answer]:
        home = self._home
        for label in ENDS:
            home.wait_phase("new", label, OVER, 40)
        shows = {label: home.show("new", label) for label in TASKS}
        for label, (status, reason, tries) in ENDS.items():
            found, why = outcome(shows[label])
            home.check(
                f"{label}: {status} {reason}".rstrip() + f", attempts {tries}",
                found == status and reason in {"", why} and attempts(shows[label]) == tries,
                f"{found} {why}, attempts {attempts(shows[label])}",
            )
        for label in ("cancel-me", "deadline"):
            home.check(f"no process of {label} is left", not home.processes(self._runs[label]))
        return shows

    def _check_results(self, shows: dict[str, Answer]) -> None:
        home = self._home
        for label, wanted in RESULTS.items():
            found = result(shows[label])
            home.check(f"{label}: its result is whole, nothing doubled", found == wanted, found)
        answer = result(shows["asker"])
        home.check("asker got the answer", answer.endswith("got dev"), answer)
        for label, prefix, whole in (
            ("ticker", "tick", TICKS),
            ("errors", "line", [f"line {n}" for n in range(1, 11)]),
        ):
            lines = home.log(label, prefix)
            lost, doubled = Counter(whole) - Counter(lines), Counter(lines) - Counter(whole)
            home.check(
                f"{label}: its log is whole, nothing doubled",
                lines == whole,
                f"{len(lines)} lines, lost {[*lost]}, doubled {[*doubled]}",
            )

    def _check_worker_calls(self, shows: dict[str, Answer]) -> None:
        home = self._home
        is_ok = outcome(home.show("new", "child"))[0] == "ok"
        home.check(
            "parent: its child ran under the new daemon",
            is_ok and "parent done" in result(shows["parent"]),
            result(shows["parent"]),
        )
        child = outcome(home.show("new", "early-child"))
        home.check("family: the old child ended well", child[0] == "ok", child)
        for label, field, wanted in (
            ("reporter", "report", "late report"),
            ("reporter", "latestProgress", "late phase"),
            ("verified", "verification", "passed"),
            ("heavy", "budget", "1000"),
        ):
            found = json.dumps(shows[label].get(field))
            home.check(f"{label}: {field} has {wanted!r}", wanted in found, found)
        heavy = shows["heavy"]
        is_waiting = heavy.get("paused") is True and heavy.get("phase") in {"waiting", "queued"}
        home.check("heavy: paused still", is_waiting, heavy.get("phase"))

    def _check_views(self) -> None:
        home = self._home
        for command in ("why", "timeline", "log", "show", "status", "tree", "result"):
            # 4: this run has no result.
            fine = {0, 4} if command == "result" else {0}
            bad = [
                f"{label} {flags}: exit {done.returncode} {done.stderr.strip()[-150:]}"
                for label in TASKS
                for flags in ((), ("--json",))
                for done in (home.call("new", command, label, *flags),)
                if done.returncode not in fine or "Traceback" in done.stderr
            ]
            home.check(f"`{command}` of every run, plain and --json", not bad, bad or "")
        listed = [each["runId"] for each in home.json("new", "list", "--limit", "500")["runs"]]
        home.check(
            "`list` has every run once",
            set(self._runs.values()) <= set(listed) and len(listed) == len(set(listed)),
            f"{len(listed)} runs",
        )

    def _check_history(self) -> None:
        home = self._home
        for label in ("ticker", "backoff", "asker"):
            events = home.json("new", "timeline", label).get("events", [])
            numbers = [each["seq"] for each in events]
            home.check(
                f"`timeline {label}` is one row without gaps",
                len(numbers) > 4 and numbers == list(range(1, len(numbers) + 1)),
                f"{len(numbers)} events",
            )
        why = home.must("new", "why", "backoff")
        home.check("`why backoff` tells of the first attempt", re.search(r"code 7|first", why), why)
        feed = home.call("new", "events", "--after", "0", "--json")
        told = [json.loads(line) for line in feed.stdout.splitlines() if line.startswith("{")]
        # News (alerts, completions) carry the number of the event that caused them.
        numbers = [each["seq"] for each in told if "event" not in each]
        home.check(
            "`events` goes on from the old numbers, none twice",
            numbers and numbers == sorted(set(numbers)),
            f"{len(numbers)} events, exit {feed.returncode}",
        )

    def _check_inbox(self) -> None:
        home = self._home
        everything = home.inbox("--all")
        counts = Counter(home.announced(everything))
        wrong = {label: counts[self._runs[label]] for label in ENDS}
        wrong = {label: count for label, count in wrong.items() if count != 1}
        home.check("each end was announced exactly once", not wrong, wrong)
        notices = sum("late notice" in each["text"] for each in everything)
        home.check("the old worker's late notice is there once", notices == 1, notices)
        unread = Counter(home.announced(home.inbox()))
        wrong = {
            label: unread[run_id]
            for label, run_id in self._runs.items()
            if unread[run_id] != (label not in {"read-before", "heavy"})
        }
        home.check(
            "the inbox hands over each unread end once, and none that was read", not wrong, wrong
        )
        home.check("and nothing a second time", not home.inbox())

    def _check_new_work(self) -> None:
        home = self._home
        home.check_done("`retry` of an old run", home.call("new", "retry", "errors", "--json"))
        more = home.call("new", "run", "echo new work", "--label", "afterwards")
        home.check("new work after it all", more.stdout.strip() == "new work", more.stderr)
        home.check_done("`resume` of a run paused before", home.call("new", "resume", "heavy"))
        home.wait_phase("new", "heavy", OVER, 15)
        heavy = outcome(home.show("new", "heavy"))
        home.check("heavy: ok", heavy[0] == "ok", heavy)
        home.check_done("`db check`", home.call("new", "db", "check"))
        logs = [each.read_text() for each in (home.root / "h").rglob("daemon.log")]
        problems = [
            line
            for log in logs
            for line in log.splitlines()
            if '"level":"error"' in line or "Traceback" in line
        ]
        home.check("no error in the daemons' log", logs and not problems, problems[:2] or "")
