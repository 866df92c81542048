"""(h): a million lines of one worker: keeping them, finding some, and who has to wait meanwhile.

The same texts are kept as a transcript and as a plain file, and looked for with ``log --grep``'s
code and with GNU ``grep``, in turn. The searches run on a thread beside an event loop that wants
to wake up every 2 ms, as the daemon's does when it is busy: how late it wakes, its callers wait.
"""

import asyncio
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.table import percentiles
from subagents.domain.redaction.redact import Redactor
from subagents.domain.run.values import RunId
from subagents.domain.run.worker_output import LineType
from subagents.domain.transcript.transcript_query import Checkpoint, Line, LogQuery
from subagents.store.transcripts.transcript_files import TranscriptFiles

RUN: Final = RunId("r-0000000001")
BATCH: Final = 2_000
"""As many as a worker's output is decoded in one go."""
BYTES_MAX: Final = 1_000_000_000
"""So that all of them are kept."""
TICK_S: Final = 0.002

SEARCHES: Final = {
    "rare": "needle42",
    "often": "error",
    "caseless": "(?i)ERROR",
    "number": r"\d{4}ms$",
    "words": r"\w+ \w+ 77",
    "either": "quick|needle",
    "begins": "^99",
    "digits": r"\d",
}
_WORDS: Final = """
    the quick brown fox jumps over lazy dog compile error warning src/module.py line test passed
    0x3f INFO DEBUG request handled in ms id=
"""


def batches(lines: int) -> Iterator[list[str]]:
    """The texts of so many lines, the same every time."""
    chance, words = random.Random(1), _WORDS.split()
    for begin in range(0, lines, BATCH):
        texts = [
            f"{number} {' '.join(chance.choices(words, k=10))} {chance.randint(1, 9999)}ms"
            for number in range(begin, min(begin + BATCH, lines))
        ]
        if begin % (lines // 2 or 1) < BATCH:
            texts[-1] += " needle42"
        yield texts


def _fill(log: TranscriptFiles, plain: Path, lines: int) -> float:
    """Seconds that keeping them took."""
    took, seq = 0.0, 0
    with plain.open("w") as file:
        for texts in batches(lines):
            file.write("\n".join(texts) + "\n")
            batch = [
                Line(seq=seq + number, ts=seq + number, type=LineType.TEXT, text=text, attempt=1)
                for number, text in enumerate(texts, 1)
            ]
            seq += len(texts)
            began = time.perf_counter()
            log.append(RUN, batch, Checkpoint(seq=seq, ts=seq), bytes_max=BYTES_MAX)
            took += time.perf_counter() - began
    return took


def _grep(pattern: str, plain: Path) -> tuple[float, int]:
    program = shutil.which("grep") or "grep"
    began = time.perf_counter()
    done = subprocess.run(
        [program, "-cP", pattern, str(plain)],
        capture_output=True,
        text=True,
        check=False,
        env={"LC_ALL": "C.UTF-8"},
    )
    return time.perf_counter() - began, int(done.stdout)


async def _search(log: TranscriptFiles, pattern: str) -> tuple[float, int, list[float]]:
    """Seconds, how many lines, and how late the loop woke up meanwhile."""
    late: list[float] = []

    async def wake() -> None:
        while True:
            due = time.perf_counter() + TICK_S
            await asyncio.sleep(TICK_S)
            late.append(time.perf_counter() - due)

    waking = asyncio.create_task(wake())
    began = time.perf_counter()
    page = await asyncio.to_thread(log.read, RUN, LogQuery(grep=pattern))
    took = time.perf_counter() - began
    await asyncio.sleep(2 * TICK_S)  # it woke up at least once
    waking.cancel()
    return took, page.total_lines, late


def _redacting() -> float:
    """Megabytes a second, of processor."""
    texts = next(batches(BATCH))
    size = sum(map(len, texts)) / 1e6
    best = 0.0
    for _ in range(20):
        began = time.process_time()
        for _ in range(5):
            Redactor().fold(texts)
        best = max(best, 5 * size / (time.process_time() - began))
    return best


def measure(here: Path, *, lines: int) -> dict[str, float]:
    """One sample of everything; the two greps must find the same number of lines."""
    here.mkdir()
    plain = here / "plain"
    log = TranscriptFiles(here / "transcripts")
    sample = {"append_s": _fill(log, plain, lines)}
    began = time.perf_counter()
    log.read(RUN, LogQuery())
    sample["newest_ms"] = (time.perf_counter() - began) * 1000
    late: list[float] = []
    for name, pattern in SEARCHES.items():
        theirs, expected = _grep(pattern, plain)
        ours, found, waited = asyncio.run(_search(log, pattern))
        assert found == expected, f"{pattern}: {found}, not {expected}"
        late += waited
        sample |= {f"{name}_s": ours, f"{name}_ratio": ours / theirs}
    return {
        **sample,
        "late_p99": percentiles(late).p99_ms,
        "redact_mb_per_s": _redacting(),
    }
