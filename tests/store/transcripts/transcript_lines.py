"""Numbered lines for tests of transcripts, and the files they are in."""

from pathlib import Path

from subagents.domain.run.values import RunId, replace
from subagents.domain.run.worker_output import LineType
from subagents.domain.transcript.transcript_query import (
    Checkpoint,
    Line,
    LogPage,
    LogQuery,
)
from subagents.ports import TranscriptLog

RUN = RunId("r-0000000001")

MB = 1_000_000

TYPES = list(LineType)


def lines(begin: int, end: int, *, chars: int = 20) -> list[Line]:
    """Numbered from ``begin`` to ``end``, both included."""
    return [
        Line(
            seq=seq,
            ts=1000 + seq // 3,
            type=TYPES[seq % len(TYPES)],
            text=f"line {seq} ".ljust(chars, "."),
            attempt=1 + seq // 100,
        )
        for seq in range(begin, end + 1)
    ]


def checkpoint(seq: int, **fields: object) -> Checkpoint:
    return replace(Checkpoint(seq=seq, ts=1000 + seq // 3, positions={"1/out": seq * 7}), **fields)


def fill(log: TranscriptLog, last: int, *, batch: int = 10, bytes_max: int = MB) -> None:
    """Lines from behind what is there to ``last``."""
    for begin in range(log.resume(RUN).seq + 1, last + 1, batch):
        end = min(begin + batch - 1, last)
        log.append(RUN, lines(begin, end), checkpoint(end), bytes_max=bytes_max)


def numbers(page: LogPage) -> list[int]:
    return [line.seq for line in page.lines]


def everything(log: TranscriptLog) -> LogPage:
    return log.read(RUN, LogQuery(offset=0, limit=10_000_000))


def files(directory: Path) -> list[Path]:
    return sorted((directory / RUN).glob("*.jsonl"))
