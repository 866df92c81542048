"""Run all parts of a tier to the end, and say then everything that was red.

    python -m scripts.gate check|ci|all [--record]

A part is a target of the Makefile; that one is red hides none that follows. On a machine with
nothing else to do, a tier over its budget by more than a third is red, too. With ``--record`` a
green tier is written down in ``tests/last_green.json``, from where docs/tests.md has it.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

RECORD: Final = Path("tests/last_green.json")
RESULT: Final = "SUBAGENTS_TIER_RESULT"
"""Names the file into which the tests write how many they were."""
TOLERANCE: Final = 4 / 3
LOOKS: Final = 40
LOOK_S: Final = 0.05


@dataclass(frozen=True)
class Gate:
    """A tier as a whole.

    Args:
        parts: Targets of the Makefile, in their order.
        budget_s: What it may take on two cores that have nothing else to do.
    """

    parts: tuple[str, ...]
    budget_s: int


_CHECK: Final = ("web-if-possible", "static", "docs-check", "site")
GATES: Final = {
    "check": Gate((*_CHECK, "tests-check", "seeds"), 15 * 60),
    "ci": Gate((*_CHECK, "tests-ci", "seeds", "package", "audit"), 25 * 60),
    "all": Gate(
        (
            *_CHECK,
            *("tests-all", "simulate", "simulate-cluster", "torture-short", "upgrade"),
            *("package", "audit"),
        ),
        120 * 60,
    ),
}


@dataclass
class Ended:
    """How a part ended."""

    part: str
    code: int
    seconds: float
    tests: Mapping[str, Any] = field(default_factory=dict)


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
    ended = [run(part) for part in gate.parts]
    seconds = time.monotonic() - began
    others = max(others, running_elsewhere())
    say(f"\n{name}:")
    for each in ended:
        say(f"  {'ok ' if each.code == 0 else 'RED'} {each.part:<17} {each.seconds:6.0f} s")
    cores = os.cpu_count() or 1
    allowed = gate.budget_s * TOLERANCE * max(1, 2 / cores) * (1 + others / cores)
    is_late = seconds > allowed
    say(
        f"  {seconds / 60:.1f} minutes of {gate.budget_s / 60:.0f}"
        f" ({cores} cores; {others:.1f} processes of others ran"
        f"{'' if others < 1 else f', so {allowed / 60:.0f} minutes are allowed'})"
    )
    if is_late:
        say("  RED too slow: move what costs most to a later tier (tests/tiers.toml), or mend it")
    red = [each.part for each in ended if each.code != 0]
    if red:
        say(f"  again, one by one: make {' '.join(red)}")
    elif is_recorded and not is_late:
        record(name, seconds, ended)
    return 1 if red or is_late else 0


def run(part: str) -> Ended:
    """One target, its output where ours goes."""
    result = Path(".cache") / f"{part}.json"
    result.parent.mkdir(exist_ok=True)
    result.unlink(missing_ok=True)
    say(f"\n== make {part}")
    began = time.monotonic()
    done = subprocess.run(
        [os.environ.get("MAKE", "make"), "--no-print-directory", part],
        check=False,
        env={**os.environ, RESULT: str(result.absolute())},
    )
    seconds = time.monotonic() - began
    tests = json.loads(result.read_text("utf-8")) if result.exists() else {}
    return Ended(part, done.returncode, seconds, tests)


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


def record(name: str, seconds: float, ended: Sequence[Ended]) -> None:
    """Write down that all of it was green."""
    known = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    found = next(each.tests for each in ended if each.tests)
    known[name] = {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _printed("git", "rev-parse", "--short=8", "HEAD"),
        "python": platform.python_version(),
        "seconds": round(seconds),
        "tests": found["tests"],
        "parts": {each.part: round(each.seconds) for each in ended},
    }
    RECORD.write_text(json.dumps(known, indent=1) + "\n", "utf-8")


def _printed(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
