"""What every part of the torture stands on: its arguments, its place on disk, its findings.

A part is a module with a function ``torture(bed) -> None`` that ends it by itself when its time is
over. It notes what it tried and what it saw (``Bed.saw``) and everything that must never happen
(``Bed.wrong``), and is one process: ``python -m tests.torture.PART --minutes 5 --seed 7``.
"""

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, NoReturn

ROOT: Final = Path(__file__).parents[2]
MIB: Final = 1024 * 1024
WRONG_MAX: Final = 40
"""More findings of one part tell nothing new."""


@dataclass(slots=True)
class Fault:
    """A row of the table: what was done to the service, how often, and what was seen."""

    fault: str
    tried: int
    seen: str


@dataclass(slots=True)
class Findings:
    """All of one part; what is printed and stored."""

    part: str
    seed: int
    minutes: float
    """Asked for."""
    seconds: float = 0.0
    """It took."""
    faults: list[Fault] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """What must never happen and did; empty = all is well."""
    skipped: str = ""
    """Why nothing was tried; "" = it was."""


class Skipped(Exception):
    """The part cannot be tried on this machine; the message says why."""


class Bed:
    """The place and the clock of one part.

    Args:
        part: Its name.
        seed: Of all that is drawn.
        minutes: For the work; settling comes on top, and has a bound of its own.
        root: An empty directory.
    """

    def __init__(self, part: str, seed: int, minutes: float, root: Path) -> None:
        self.root = root
        self.chance = random.Random(f"{part}/{seed}")
        self.findings = Findings(part, seed, minutes)
        self._began = time.monotonic()

    @property
    def passed_s(self) -> float:
        return time.monotonic() - self._began

    @property
    def left_s(self) -> float:
        """Seconds of work left; 0 = stop and settle."""
        return max(0.0, self.findings.minutes * 60 - self.passed_s)

    def saw(self, fault: str, tried: int, seen: str) -> None:
        """A row of the table."""
        self.findings.faults.append(Fault(fault, tried, seen))

    def wrong(self, what: str) -> None:
        """Something that must never happen did."""
        self.findings.wrong.append(what)
        self.say(f"WRONG {what}")

    def check(self, is_right: object, what: str) -> None:
        if not is_right:
            self.wrong(what)

    def say(self, text: str) -> None:
        """A line for whoever watches."""
        sys.stderr.write(f"[{self.findings.part} {self.passed_s:6.1f}s] {text}\n")
        sys.stderr.flush()


def main(part: str, torture: Callable[[Bed], None]) -> NoReturn:
    """Run one part as its command line says; exits with 1 when something was wrong."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.torture.{part}", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=None, help="random when not given")
    parser.add_argument("--findings", type=Path, help="write them here as JSON")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    # A runner that gives up on this part says so by TERM: daemons and mounts are still ended then.
    signal.signal(signal.SIGTERM, _stop)
    findings = tried(part, torture, seed=seed, minutes=given.minutes)
    if given.findings is not None:
        given.findings.write_text(json.dumps(asdict(findings)), encoding="utf-8")
    sys.stdout.write(table([findings]))
    sys.exit(1 if findings.wrong else 0)


def _stop(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def tried(part: str, torture: Callable[[Bed], None], *, seed: int, minutes: float) -> Findings:
    """Try one part in a directory of its own, which is kept when something was wrong."""
    root = Path(tempfile.mkdtemp(prefix="torture-"))
    bed = Bed(part, seed, minutes, root)
    bed.say(f"seed {seed}, {minutes:g} minutes, in {root}")
    try:
        torture(bed)
    except Skipped as reason:
        bed.findings.skipped = str(reason)
    except KeyboardInterrupt:
        bed.wrong("it did not end in time")
    except Exception as error:  # noqa: BLE001  whatever stops a part is a finding
        bed.wrong(f"{type(error).__name__}: {error}")
    bed.findings.seconds = round(bed.passed_s, 1)
    if not bed.findings.wrong:
        shutil.rmtree(root, ignore_errors=True)
    return bed.findings


def findings_in(file: Path) -> Findings:
    """What a part wrote.

    Raises:
        OSError: It wrote nothing.
    """
    found = json.loads(file.read_text(encoding="utf-8"))
    return Findings(**{**found, "faults": [Fault(**each) for each in found["faults"]]})


def table(all_findings: Sequence[Findings]) -> str:
    """One table of all that was tried, and below it what was wrong."""
    rows = [("part", "fault", "tried", "seen")]
    for each in all_findings:
        if each.skipped:
            rows.append((each.part, "skipped", "-", each.skipped))
        rows += [(each.part, row.fault, f"{row.tried:,}", row.seen) for row in each.faults]
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    lines = [
        f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}"
        for row in rows
    ]
    lines.append("")
    for each in all_findings:
        verdict = (
            f"{len(each.wrong)} WRONG" if each.wrong else "skipped" if each.skipped else "good"
        )
        lines.append(f"{each.part}: {verdict} (seed {each.seed}, {each.seconds:.0f} s)")
        lines += [f"  {what}" for what in each.wrong[:WRONG_MAX]]
    return "\n".join(lines) + "\n"


def resident_bytes(pid: int) -> int:
    """What a process holds in memory now.

    Raises:
        OSError: There is no such process.
    """
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(pid)
