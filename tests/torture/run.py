"""All parts of the torture, one after the other; one table at the end.

    python -m tests.torture.run --minutes 60 [--seed N] [--parts kill_storm,full_disk]

Each part is a process of its own and gets its share of the minutes; what it needs to settle comes
on top. Exits with 1 when anything was lost, doubled, stuck or wrong. ``make torture`` calls it, and
a short cut of it is in ``make check``.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.torture.bed import ROOT, Findings, findings_in, table

PARTS: Final = {
    "kill_storm": 5.0,
    "crash_copies": 1.0,
    "full_disk": 3.0,
    "bit_flips": 2.0,
    "floods": 2.0,
    "soak": 4.0,
}
"""Each with its share of the time."""
RECORD: Final = ROOT / "tests" / "torture" / "seen.json"
SETTLE_S: Final = 360.0
"""For all that a part does after its time, when nothing else bounds it."""
END_S: Final = 40.0
"""For a part that was told to end to end its processes."""


def main(arguments: Sequence[str]) -> int:
    """Run the parts; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.run", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="of work, for all parts")
    parser.add_argument("--within", type=float, help="end after so many minutes, come what may")
    parser.add_argument("--seed", type=int, help="random when not given")
    parser.add_argument("--parts", default=",".join(PARTS), help="of " + ", ".join(PARTS))
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.relative_to(ROOT)}")
    given = parser.parse_args(arguments)
    parts = given.parts.split(",")
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    end = None if given.within is None else time.monotonic() + given.within * 60
    found = run_parts(parts, minutes=given.minutes, seed=seed, end=end)
    sys.stdout.write(f"\n{table(found)}\nagain: {again(given.minutes, seed, parts)}\n")
    if given.record:
        record(found)
    return 1 if any(each.wrong for each in found) else 0


def again(minutes: float, seed: int, parts: Sequence[str]) -> str:
    """The command that repeats this one."""
    return f"make torture MINUTES={minutes:g} SEED={seed} PARTS={','.join(parts)}"


def run_parts(
    parts: Sequence[str], *, minutes: float, seed: int, end: float | None
) -> list[Findings]:
    """One after the other.

    Args:
        parts: Their names.
        minutes: Of work, shared out.
        seed: Of each.
        end: On the monotonic clock, when the last must have ended; None = no such bound.
    """
    whole = sum(PARTS[each] for each in parts)
    found = []
    for index, part in enumerate(parts):
        share = PARTS[part] / whole * minutes
        allowed_s = share * 60 + SETTLE_S
        if end is not None:
            # What those before it left of the time to settle is for all that follow.
            later = sum(PARTS[each] for each in parts[index + 1 :]) / whole * minutes * 60
            allowed_s = min(allowed_s, end - time.monotonic() - later - END_S)
        found.append(run_part(part, share, seed, allowed_s))
    return found


def run_part(part: str, minutes: float, seed: int, allowed_s: float) -> Findings:
    """One part as a process; one that does not end in time is ended, and that is wrong."""
    with tempfile.TemporaryDirectory(prefix="torture-findings-") as place:
        file = Path(place) / "findings.json"
        command = [sys.executable, "-m", f"tests.torture.{part}", "--minutes", f"{minutes:.3f}"]
        process = subprocess.Popen(
            [*command, "--seed", str(seed), "--findings", str(file)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
        )
        try:
            process.wait(max(1.0, allowed_s))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(END_S)
        finally:
            if process.poll() is None:
                process.terminate()
        try:
            return findings_in(file)
        except OSError:
            return Findings(part, seed, minutes, wrong=[f"it ended with {process.returncode}"])


def record(found: Sequence[Findings]) -> None:
    """Keep what was seen, beside what other parts saw before."""
    kept = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    day = datetime.now(UTC).date().isoformat()
    for each in found:
        if not each.skipped:
            kept[each.part] = {"date": day, **asdict(each)}
    ordered = {part: kept[part] for part in PARTS if part in kept}
    RECORD.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
