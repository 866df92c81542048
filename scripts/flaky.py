"""Run tests many times on a machine that is kept busy: is one red now and then?

    python -m scripts.flaky TEST... [--times 200] [--load 4] [--at-once 2]

Each TEST is what pytest takes: a file, or a test of one. ``--load`` busy loops run beside them, and
``--at-once`` processes share the runs in batches of ``BATCH``: a process is dear to start, but what
only happens to the first test of one has to come up, too. Within a batch a test starts anew each
time, with fixtures of its own; those of wider scope live as long as the process, as in a usual run.

Exit code: 0, all were green; 1, at least one was red; 2, nothing was run.
"""

import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

BATCH: Final = 10
BUSY: Final = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    sum(range(10_000))\n"
"""Ends by itself, too, when whoever started it was killed."""


class Seen(NamedTuple):
    """What became of one run of one test."""

    test: str
    outcome: str
    """``passed``, ``failed`` or ``skipped``."""
    where: str
    """Of a failure: its line, and the first one of what it said."""
    seconds: float


class Repeating:
    """Pytest's plugin within a batch: each test several times, each run a line of a file."""

    def __init__(self, times: int, file: Path) -> None:
        self._times, self._file = times, file

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """All of them once, then all of them again."""
        items[:] = [again(each) for _ in range(self._times) for each in items]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Write down what became of it, at once: the process may not live to its end."""
        self._worst, self._where, began = "passed", "", time.monotonic()
        done = yield
        seen = Seen(item.nodeid, self._worst, self._where, time.monotonic() - began)
        with self._file.open("a") as file:
            file.write(json.dumps(seen) + "\n")
        return done

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Of setup, call or teardown; the first failure is the one that is told."""
        if report.outcome != "passed" and self._worst != "failed":
            self._worst, self._where = report.outcome, line_of(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported is red."""
        if report.failed:
            seen = Seen(report.nodeid, "failed", report.longreprtext.strip().splitlines()[-1], 0)
            with self._file.open("a") as file:
                file.write(json.dumps(seen) + "\n")


def again(item: pytest.Item) -> pytest.Item:
    """The same test once more: pytest tears nothing down between a test and itself."""
    made = copy.copy(item)
    made.stash, made._report_sections = pytest.Stash(), []  # noqa: SLF001 - of its run alone
    if isinstance(made, pytest.Function):
        made._initrequest()  # noqa: SLF001 - as pytest does for one that is run again
    return made


def line_of(report: pytest.TestReport) -> str:
    """Where it failed, and the first line of what it said."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None:
        return report.longreprtext.strip().splitlines()[-1] if report.longreprtext else ""
    return f"{crash.path}:{crash.lineno}: {crash.message.splitlines()[0]}"


def run_batch(tests: Sequence[str], times: int) -> list[Seen]:
    """Run them in a process of its own; a process that died counts as one red run of them."""
    with tempfile.TemporaryDirectory(prefix="flaky-") as name:
        file = Path(name) / "seen"
        file.touch()
        program = "import sys; from scripts.flaky import batch; sys.exit(batch(sys.argv[1:]))"
        given = [str(times), str(file), f"--basetemp={Path(name) / 'basetemp'}", *tests]
        done = subprocess.run(
            [sys.executable, "-c", program, *given],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        found = [Seen(*json.loads(line)) for line in file.read_text().splitlines()]
    expected = {
        pytest.ExitCode.OK,
        pytest.ExitCode.TESTS_FAILED,
        pytest.ExitCode.NO_TESTS_COLLECTED,
    }
    if done.returncode not in expected and not any(each.outcome == "failed" for each in found):
        last = (done.stdout.strip().splitlines() or ["it said nothing"])[-1]
        found.append(Seen(" ".join(tests), "failed", f"exit {done.returncode}: {last}", 0))
    return found


def batch(arguments: Sequence[str]) -> int:
    """The other side of ``run_batch``. What is named is run, whatever its markers are."""
    times, file, *rest = arguments
    given = ["-q", "-m", "", "-p", "no:cacheprovider", "-p", "no:xdist", *rest]
    return pytest.main(given, plugins=[Repeating(int(times), Path(file))])


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keep so many processors busy."""
    with ExitStack() as stack:
        for _ in range(loops):
            program = [sys.executable, "-S", "-c", BUSY, str(os.getpid())]
            stack.callback(_end, subprocess.Popen(program))
        yield


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


def told(found: Sequence[Seen], seconds: float) -> Iterator[str]:
    """The lines of the report."""
    red = [each for each in found if each.outcome == "failed"]
    ran = [each for each in found if each.outcome != "skipped"]
    skipped = len(found) - len(ran)
    slowest = max((each.seconds for each in ran), default=0.0)
    yield (
        f"{len(red)} red of {len(ran)}"
        + (f", {skipped} skipped" if skipped else "")
        + f"; {seconds:.0f} s, the slowest run {slowest:.1f} s"
    )
    # The message tells one failure from the next, and often has a number in it: the first is shown.
    first = {each.where.split(": ")[0]: each for each in reversed(red)}
    for place, number in Counter(each.where.split(": ")[0] for each in red).most_common():
        yield f"{number:5} × {first[place].test}"
        yield f"        {first[place].where}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run them and print the report."""
    parser = argparse.ArgumentParser(prog="python -m scripts.flaky", description=__doc__)
    parser.add_argument("tests", nargs="+", metavar="TEST")
    parser.add_argument("--times", type=int, default=200, help="how often each is run")
    parser.add_argument("--load", type=int, default=4, help="busy loops beside them")
    parser.add_argument("--at-once", type=int, default=2, help="processes with tests")
    given = parser.parse_args(arguments)
    sizes = [min(BATCH, given.times - done) for done in range(0, given.times, BATCH)]
    began = time.monotonic()
    with busy(given.load), ThreadPoolExecutor(given.at_once) as pool:
        batches = pool.map(lambda size: run_batch(given.tests, size), sizes)
        found = [each for batch in batches for each in batch]
    for line in told(found, time.monotonic() - began):
        print(line)
    if all(each.outcome == "skipped" for each in found):
        print("nothing was run")
        return 2
    return int(any(each.outcome == "failed" for each in found))


if __name__ == "__main__":
    sys.exit(main())
