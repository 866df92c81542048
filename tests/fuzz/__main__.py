"""Fuzz the parsers of what others write: ``python -m tests.fuzz [TARGET …] --minutes N``.

Prints one row for each target; ends with 1 when something was found. What was found, and what
reaches new code, is kept below ``.fuzz``.
"""

import argparse
import re
import subprocess
import sys
from typing import Final, NamedTuple

from tests.fuzz.fuzzer import CORPUS
from tests.fuzz.targets import TARGETS

MARGIN_S: Final = 300
"""For starting, and for reading what was kept before."""
TAIL_CHARS: Final = 2_000


class Row(NamedTuple):
    target: str
    executions: int
    coverage: int | None
    """Of libFuzzer: places of our code that were reached. None = nobody counted."""
    findings: tuple[str, ...]


def tried(name: str, *, seconds: int, seed: int, flags: list[str]) -> Row:
    """One target in a process of its own."""
    argv = [
        sys.executable,
        "-m",
        "tests.fuzz.fuzzer",
        name,
        f"--seconds={seconds}",
        f"--seed={seed}",
    ]
    try:
        done = subprocess.run(
            [*argv, *flags], capture_output=True, check=False, timeout=seconds + MARGIN_S
        )
        said, code = (done.stdout + done.stderr).decode("utf-8", "replace"), done.returncode
    except subprocess.TimeoutExpired as error:
        written = (error.stdout or b"") + (error.stderr or b"")
        said, code = written.decode("utf-8", "replace"), -1
    findings = re.findall(r"^FOUND (.*)$", said, re.MULTILINE)
    if code != 0:
        findings.append(f"the process ended with {code}: {said[-TAIL_CHARS:]}")
    counted = re.search(r"number_of_executed_units: *(\d+)", said)
    seen = re.findall(r"^#(\d+)\s.*\bcov: (\d+)", said, re.MULTILINE)
    executions = int(counted[1]) if counted else int(seen[-1][0]) if seen else 0
    return Row(name, executions, int(seen[-1][1]) if seen else None, tuple(findings))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description="Try parsers with what breaks them.",
        epilog="\n".join(f"{each.name:14} {each.about}" for each in TARGETS.values()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all, one after the other")
    parser.add_argument("--minutes", type=float, default=1.0, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without-atheris", action="store_true", help="by dice alone")
    given = parser.parse_args()
    unknown = [name for name in given.targets if name not in TARGETS]
    if unknown:
        parser.error(f"there is no target {unknown[0]}; there are {', '.join(TARGETS)}")
    flags = ["--without-atheris"] if given.without_atheris else []
    found = 0
    print(f"| {'target':14} | {'executions':>10} | {'coverage':>8} | findings |\n|---|---|---|---|")
    for name in given.targets or TARGETS:
        row = tried(name, seconds=round(given.minutes * 60), seed=given.seed, flags=flags)
        coverage = "" if row.coverage is None else row.coverage
        text = "<br>".join(row.findings) or "none"
        print(f"| {row.target:14} | {row.executions:>10,} | {coverage:>8} | {text} |", flush=True)
        found += len(row.findings)
    if found:
        print(f"{found} found; their inputs and tracebacks are in {CORPUS / 'findings'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
