"""Run all parts of a tier to the end, and say then everything that was red.

    python -m scripts.gate check|ci|all|soak [--record]

A part is a target of the Makefile; that one is red hides none that follows. On a machine with
nothing else to do, a tier over its budget by more than a third is red, too. With ``--record`` a
green tier is written down in ``tests/last_green.json``, from where docs/tests.md has it.
"""

import argparse
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

RECORD: Final = Path("tests/last_green.json")
RESULT: Final = "SUBAGENTS_TIER_RESULT"
"""Names the file into which the tests write how many they were."""
TOLERANCE: Final = 4 / 3
LOOKS: Final = 40
LOOK_S: Final = 0.05
LOOP_S: Final = 0.045
"""What ``LOOP`` takes on the machine that the budgets are for."""
LOOP: Final = "for number in range(1_000_000): number % 7"
START_S: Final = 0.15
"""What a start of ``STARTED`` takes there. Where memory is slow, arithmetic may be as quick as ever
and all that starts processes, so most of the tests, takes three times as long.
"""
WALK_S: Final = 0.085
"""What ``_walk`` takes there. Starts may be quick, too, while memory is three times as slow: the
tests then take half as long again.
"""
WALKED: Final = 150_000
STARTED: Final = "import asyncio, email.message, http.client, logging, sqlite3, ssl, unittest.mock"
TRIES: Final = 5


@dataclass(frozen=True)
class Gate:
    """A tier as a whole.

    Args:
        parts: Targets of the Makefile, one after another.
        budget_s: What it may take on two cores that have nothing else to do.
        group: Of dependencies, which is fetched first.
        paired: Targets that use one processor at most: two run at a time, before the others.
        told: Parts that are told when they are red, and fail nothing.
    """

    parts: tuple[str, ...]
    budget_s: float
    group: str = ""
    paired: tuple[str, ...] = ()
    told: frozenset[str] = frozenset({"seeds-of-commit"})


_STATIC: Final = ("static", "web-check", "docs-check", "site")
_SEEDS: Final = ("seeds", "seeds-of-commit")
_PACKAGE: Final = ("package", "audit")
GATES: Final = {
    "check": Gate(("tests-check", *_SEEDS), 15 * 60, "check", _STATIC),
    "ci": Gate(("tests-ci", "core-alone", *_SEEDS), 25 * 60, "ci", (*_STATIC, *_PACKAGE)),
    "all": Gate(
        ("tests-all", *_SEEDS, "torture-short", "upgrade"), 120 * 60, "ci", (*_STATIC, *_PACKAGE)
    ),
    "soak": Gate(
        (
            "mutations",
            "torture",
            "fuzz",
            "conformance",
            "test-clients",
            "test-real",
            "test-cluster",
        ),
        12 * 60 * 60,
    ),
}


@dataclass
class Ended:
    """How a part ended."""

    part: str
    code: int
    seconds: float
    tests: Mapping[str, Any] = field(default_factory=dict)
    slower: float = 1.0
    """How many times longer than ours the processor took right after it, or those beside it."""
    busy: float = 0.0
    """The share of the processors' time that anybody used while it ran."""
    stolen: float = 0.0
    """The share that the host gave to other machines."""

    @property
    def own_seconds(self) -> float:
        """What it would have taken on a processor of ours that nobody takes away."""
        return self.seconds * (1 - self.stolen) / self.slower


def main(arguments: Sequence[str]) -> int:
    """Run the gate; 1 = something was red."""
    parser = argparse.ArgumentParser(prog="python -m scripts.gate")
    parser.add_argument("gate", choices=[*GATES])
    parser.add_argument("--record", action="store_true", help=f"write {RECORD} when all is green")
    options = parser.parse_args(arguments)
    return passed(options.gate, GATES[options.gate], is_recorded=options.record)


def passed(name: str, gate: Gate, *, is_recorded: bool = False) -> int:
    """Run its parts, print what they came to, and return the exit code."""
    others = running_elsewhere()
    began = time.monotonic()
    ended = [*run([f"groups-{gate.group}"]), *run(gate.paired)] if gate.paired else []
    ended += [each for part in gate.parts for each in run([part])]
    seconds = time.monotonic() - began
    others = max(others, running_elsewhere())
    cores = os.cpu_count() or 1
    took, own = (sum(getattr(each, of) for each in ended) for of in ("seconds", "own_seconds"))
    taken = took / max(own, 1e-9)
    allowed = gate.budget_s * TOLERANCE * max(1, 2 / cores) * taken * (1 + others / cores)
    red = [each.part for each in ended if each.code != 0 and each.part not in gate.told]
    say(f"\n{name}:")
    for each in ended:
        state = "ok" if each.code == 0 else "RED" if each.part in red else "told"
        say(
            f"  {state:<4} {each.part:<16} {each.seconds:6.0f} s, {each.busy:.0%} busy,"
            f" {each.stolen:.0%} stolen, {each.slower:.1f} times slower"
        )
    say(
        f"  {seconds / 60:.1f} of {gate.budget_s / 60:.0f} minutes on {cores} cores that were"
        f" {taken:.1f} times slower than ours, beside {others:.1f} processes of others that ran:"
        f" up to {allowed / 60:.0f} would be allowed"
    )
    if is_late := seconds > allowed:
        say("  RED  too slow: make the dearest tests quicker, or give them a later tier")
    if red:
        say(f"  to run them again: make -k {' '.join(red)}")
    if is_recorded and not red and not is_late:
        record(name, seconds, ended)
    return 1 if red or is_late else 0


def run(parts: Sequence[str]) -> list[Ended]:
    """Targets, each shown as it goes on; of several, two at a time and each when it has ended."""
    before = processors()
    with ThreadPoolExecutor(min(len(parts), 2)) as pool:
        ended = list(pool.map(_made if len(parts) == 1 else _made_and_shown, parts))
    used, idle, stolen = (now - then for now, then in zip(processors(), before, strict=True))
    whole = max(used + idle + stolen, 1)
    slower, busy, stolen_share = slowness(), used / whole, min(stolen / whole, 0.9)
    return [replace(each, slower=slower, busy=busy, stolen=stolen_share) for each in ended]


def _made(part: str) -> Ended:
    say(f"\n== make {part}")
    return _timed(part, None)


def _made_and_shown(part: str) -> Ended:
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        ended = _timed(part, output)
        output.seek(0)
        say(f"\n== make {part}\n{output.read().rstrip()}")
    return ended


def _timed(part: str, output: IO[str] | None) -> Ended:
    result = Path(".cache") / f"{part}.json"
    result.parent.mkdir(exist_ok=True)
    result.unlink(missing_ok=True)
    began = time.monotonic()
    done = subprocess.run(
        [os.environ.get("MAKE", "make"), "--no-print-directory", part],
        check=False,
        env={**os.environ, RESULT: str(result.absolute())},
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
    )
    seconds = time.monotonic() - began
    tests = json.loads(result.read_text("utf-8")) if result.exists() else {}
    return Ended(part, done.returncode, seconds, tests)


def processors() -> tuple[int, int, int]:
    """Time of all processors since the machine started, in ticks: used, idle, stolen by its host;
    see proc_stat(5).
    """
    ticks = map(int, Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:9])
    user, nice, system, idle, waiting, irq, softirq, stolen = ticks
    return user + nice + system + irq + softirq, idle + waiting, stolen


def running_elsewhere() -> float:
    """How many processes of others run or want to, while none of ours does: a mean over two
    seconds.
    """
    counts = []
    for _ in range(LOOKS):
        stat = Path("/proc/stat").read_text("ascii")
        counts.append(int(stat.partition("procs_running ")[2].split()[0]) - 1)
        time.sleep(LOOK_S)
    return sum(counts) / len(counts)


def slowness() -> float:
    """How many times longer than ours the processor takes for what takes longest; 1 where it is
    quicker.
    """
    loop = compile(LOOP, "loop", "exec")
    start = [sys.executable, "-I", "-c", STARTED]
    looped = _least_s(lambda: exec(loop, {})) / LOOP_S  # noqa: S102  our own
    walked = _least_s(_walk) / WALK_S
    started = _least_s(lambda: subprocess.run(start, check=True)) / START_S
    return max(1.0, looped, started, (looped + walked) / 2)


def _walk() -> None:
    made = {number: [str(number)] for number in range(WALKED)}
    sum(len(made[number * 7_919 % WALKED][0]) for number in range(WALKED))


def _least_s(step: Callable[[], object]) -> float:
    return min(_processor_s(step) for _ in range(TRIES))


def _processor_s(step: Callable[[], object]) -> float:
    before = _used_s()
    step()
    return _used_s() - before


def _used_s() -> float:
    used = [*map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))]
    return sum(each.ru_utime + each.ru_stime for each in used)


def record(name: str, seconds: float, ended: Sequence[Ended]) -> None:
    """Write down that all of it was green."""
    known = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    known[name] = {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _printed("git", "rev-parse", "--short=8", "HEAD"),
        "seconds": round(seconds),
        "tests": sum(each.tests.get("tests", 0) for each in ended),
        "left_out": {why: n for each in ended for why, n in each.tests.get("left_out", {}).items()},
        "parts": {each.part: round(each.seconds) for each in ended},
        "seeds": {each: os.environ.get(each, "") for each in ("SEEDS", "OF_COMMIT")},
        "versions": {"Python": platform.python_version(), **versions()},
    }
    RECORD.write_text(json.dumps(known, indent=1) + "\n", "utf-8")


def versions() -> dict[str, str]:
    """What the programs that tests talk to say of themselves, as far as they are here."""
    programs = {
        "PostgreSQL": ("initdb", "--version"),
        "Chromium": ("chromium", "--version"),
        "bubblewrap": ("bwrap", "--version"),
        "Node.js": ("node", "--version"),
        "git": ("git", "--version"),
    }
    return {
        name: re.sub(r"^[^\d]*(\S+).*", r"\1", _printed(*command), flags=re.DOTALL)
        for name, command in programs.items()
        if shutil.which(command[0])
    }


def _printed(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
