"""The new command with the old daemon, then a clean change; the old command with the new daemon."""

from collections import Counter
from collections.abc import Callable

from tests.upgrade.versioned_home import (
    OVER,
    RUNNING,
    Version,
    VersionedHome,
    attempts,
    result,
    start_time,
    tell,
)

TICKS = [f"tick {n}" for n in range(1, 31)]
LONG = (
    f"for i in $(seq {len(TICKS)}); do echo tick $i; sleep 0.5; done;"
    " while [ ! -e all-tried ]; do sleep 0.2; done"
)

VIEWS = {
    "show": "ended",
    "why": "",
    "log": "two",
    "timeline": "",
    "result": "two",
    "status": "ended",
    "tree": "ended",
}
"""Commands that show one run, and what their plain output says of the run `ended`."""


def mixed_versions(home: VersionedHome) -> None:
    home.must("old", "up")
    pid = home.daemon_pid("old")
    ended = home.must("old", "spawn", "echo one; echo two", "--label", "ended")
    long = home.must("old", "spawn", LONG, "--label", "long")
    home.must(
        "old", "spawn", "tail -n 1", "--label", "after-long", "--after", "long", "--include-result"
    )
    asking = "a=$(subagents ask 'well?' --timeout 2m); echo \"got $a\""
    home.must("old", "spawn", asking, "--label", "asks")
    home.wait_phase("old", "ended", OVER)
    home.wait_phase("old", "long", RUNNING)
    question = home.wait_question("old", "asks")
    before = home.processes(long)

    _try_commands(home, "new", home.check)
    home.check("the old daemon is the same all the while", home.daemon_pid("old") == pid)
    home.check_done("new command: answer", home.call("new", "answer", question, "fine"))
    home.check_done("new command: down", home.call("new", "down", "--yes"))
    home.check("the old daemon is gone", start_time(pid) is None)
    home.check("the worker lives on", home.kept_of(before, long))
    home.check_done("the new daemon takes over", home.call("new", "up"))
    tries = attempts(home.show("new", "long"))
    home.check("same processes, same attempt", home.kept_of(before, long) >= 2 and tries == 1)

    tell("  for information: what the old command cannot do with the new daemon")
    _try_commands(home, "old", _note)
    (home.work / "all-tried").touch()
    _check_ends(home, (ended, long))


def _note(what: str, is_true: object, seen: object) -> None:
    """An old command is replaced with its daemon, so what it cannot do fails nothing."""
    if not is_true:
        tell(f"  note {what}  [{str(seen)[:300]}]")


def _try_commands(
    home: VersionedHome, version: Version, judge: Callable[[str, object, object], None]
) -> None:
    """Use this version's command with the daemon that runs."""

    def one(*args: str, codes: tuple[int, ...] = (0,), text: str = "") -> None:
        done = home.call(version, *args)
        fine = done.returncode in codes and text in done.stdout and "Traceback" not in done.stderr
        seen = f"exit {done.returncode}: {done.stdout[-250:]} {done.stderr[-350:]}"
        judge(f"{version} command: {' '.join(args)}", fine, "" if fine else seen)

    spawned = f"spawned-{version}"
    one("run", "echo mixed", text="mixed")
    one("run", "exit 3", codes=(5,))
    one("run", "echo '[1]' > m.json", "--verify", "m.json", "--verify-json")
    one("spawn", "sleep 1; echo spawned", "--label", spawned, "--retry", "1", "--tag", "x")
    one("wait", spawned, text="spawned")
    one("list", text="ended")
    one("list", "--json", text="ended")
    for command, text in VIEWS.items():
        one(command, "ended", text=text)
        one(command, "ended", "--json")
    one("show", "long", text="long")
    one("attention")
    one("events")
    one("inbox", "--all")
    one("agents", "list")
    one("pause", "after-long")
    one("resume", "after-long")
    one("cancel", spawned, "--yes")
    one("up")
    # What it finds depends on the machine.
    one("doctor", codes=tuple(range(9)))


def _check_ends(home: VersionedHome, spawned: tuple[str, ...]) -> None:
    for label in ("long", "after-long", "asks"):
        home.wait_phase("new", label, OVER, 30)
    logged = home.log("long", "tick")
    home.check("long: its log is whole, nothing doubled", logged == TICKS, f"{len(logged)} lines")
    after = result(home.show("new", "after-long"))
    home.check("after-long got its result", after == TICKS[-1], after)
    answer = result(home.show("new", "asks"))
    home.check("asks got its answer", answer == "got fine", answer)
    counts = Counter(home.announced(home.inbox("--all")))
    home.check(
        "each end was announced exactly once",
        set(counts.values()) == {1} and set(spawned) <= set(counts),
        dict(counts),
    )
