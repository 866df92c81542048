"""The blocking half of recording: from output to lines on the disk, for many runs at once.

See docs/decisions/0019.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from subagents import extension
from subagents.domain.alerts import detectors
from subagents.domain.redaction.redact import redact
from subagents.domain.redaction.redact_events import Redactors, redact_output
from subagents.domain.run.alert import Alert
from subagents.domain.run.events import AttemptStarted, Resumed
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import (
    LINE_CHARS_MAX,
    THINKING_CHARS_MAX,
    LineType,
    OutputBatch,
    OutputItem,
    ToolUse,
)
from subagents.domain.text.event_words import journal_line
from subagents.domain.transcript.transcript_query import Checkpoint, Line
from subagents.errors import StoreUnavailable
from subagents.ports import Store, TranscriptLog
from subagents.text import shortened

log = logging.getLogger(__name__)

JOURNAL_PAGE: Final = 500
MEGABYTE: Final = 1_000_000


class Pieces(NamedTuple):
    """What one attempt said together."""

    attempt: int
    at_ms: int
    after_seq: int
    """Events of the run up to here came before."""
    output: OutputBatch


@dataclass(slots=True)
class Page:
    """One run's share of the work; written by one thread at a time."""

    run: Run
    pieces: Sequence[Pieces]
    checkpoint: Checkpoint
    secrets: tuple[str, ...]
    is_read: bool
    """The checkpoint is known; else the log is asked for it."""
    at_ms: int
    """Now."""
    looks: bool = False
    """The clock itself may be news."""
    ends: bool = False
    """The attempt is over: alerts that were gathered are raised now, not when their time comes."""
    lines: list[Line] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    lost: int = 0
    """Lines that could not be written before: the next that can say so."""
    is_done: bool = False
    """All of it was dealt with: kept, or lost for good."""
    is_kept: bool = True
    """False: the lines could not be written, and are lost."""


class TranscriptWriter:
    """Blocking; called off the loop."""

    def __init__(self, store: Store, transcripts: TranscriptLog) -> None:
        self._store = store
        self._transcripts = transcripts

    def write(self, pages: Iterable[Page]) -> None:
        """Prepare every page, and keep those without alerts: alerts are made durable first."""
        for page in pages:
            before, was_read = page.checkpoint, page.is_read
            try:
                self._prepare(page)
            except StoreUnavailable:
                raise
            except Exception:
                # What one run says must not keep the others, nor its own end, waiting.
                log.exception("what %s said cannot be recorded", page.run.id)
                page.checkpoint, page.is_read = before, was_read
                page.is_kept, page.is_done = False, True
                page.alerts.clear()
                continue
            if page.alerts:
                continue
            if page.checkpoint is not before:
                self.keep([page])
            page.is_done = True

    def keep(self, pages: Iterable[Page]) -> None:
        """Write what was prepared; what fails is logged and lost."""
        for page in pages:
            run, lines = page.run, page.lines
            try:
                self._transcripts.append(
                    run.id,
                    lines,
                    page.checkpoint,
                    bytes_max=int(run.resolved.max_transcript_mb * MEGABYTE),
                )
            except OSError as error:
                log.warning("%s lines of %s could not be kept: %s", len(lines), run.id, error)
                # Lines that were lost need no numbers: those that follow leave no gap.
                page.checkpoint = replace(page.checkpoint, seq=page.checkpoint.seq - len(lines))
                # The line that says how many were lost before is no worker's, and does not count.
                page.lost += len(lines) - (page.lost > 0)
                page.is_kept = False
            else:
                page.lost = 0
            page.is_done = True

    def _prepare(self, page: Page) -> None:
        was_read = page.is_read
        if not was_read:
            try:
                page.checkpoint = self._transcripts.resume(page.run.id)
            except OSError as error:
                log.warning("the transcript of %s starts over: %s", page.run.id, error)
            page.is_read = True
        if page.lost and page.pieces:
            hole = OutputItem(type=LineType.ERROR, text=f"{page.lost} lines could not be kept here")
            _number(page, (hole,), page.pieces[0].attempt, page.pieces[0].at_ms)
        for pieces in page.pieces:
            self._add_journal(page, until=pieces.after_seq)
            self._add_pieces(page, pieces)
        self._add_journal(page, until=page.run.seq)
        watch = page.checkpoint.watch
        if not was_read and page.run.phase is Phase.RUNNING and not watch.is_silence_told:
            # What was said while nobody read is not known yet: silence begins with the reading.
            watch = replace(watch, last_at_ms=page.at_ms)
            page.checkpoint = replace(page.checkpoint, watch=watch)
        if page.ends:
            watch, alerts = detectors.ended(page.checkpoint.watch)
            page.alerts += alerts
            if alerts:
                page.checkpoint = replace(page.checkpoint, watch=watch)
        if page.looks:
            known, rules = page.checkpoint.watch, page.run.resolved.alerts
            watch, alerts = detectors.elapsed(known, now_ms=page.at_ms, rules=rules)
            page.alerts += alerts
            if watch is not known:
                page.checkpoint = replace(page.checkpoint, watch=watch)

    def _add_journal(self, page: Page, *, until: int) -> None:
        """Lines of the events since the last ones, up to number ``until``."""
        run = page.run
        while until > page.checkpoint.journal_seq:
            known = page.checkpoint.journal_seq
            most = min(until - known, JOURNAL_PAGE)
            entries = self._store.journal(run.id, after_seq=known, limit=most)
            if not entries:
                return
            for entry in entries:
                number = max(page.checkpoint.watch.attempt, 1)
                if isinstance(entry.event, AttemptStarted):
                    number = entry.event.attempt
                    before = page.checkpoint.watch
                    watch = detectors.begin(before, attempt=number, at_ms=entry.at_ms)
                    page.checkpoint = replace(page.checkpoint, watch=watch)
                elif isinstance(entry.event, Resumed):
                    watch = replace(page.checkpoint.watch, last_at_ms=entry.at_ms)
                    page.checkpoint = replace(page.checkpoint, watch=watch)
                line = journal_line(run, entry.seq, entry.event)
                if line is not None:
                    clean = replace(line, text=redact(line.text, page.secrets))
                    _number(page, (clean,), number, entry.at_ms)
            page.checkpoint = replace(page.checkpoint, journal_seq=entries[-1].seq)

    def _add_pieces(self, page: Page, pieces: Pieces) -> None:
        before = page.checkpoint
        redactors = Redactors(before.redactor, before.redactor_stderr)
        items, redactors = redact_output(pieces.output.items, redactors, page.secrets)
        watch, alerts = detectors.observe(
            before.watch,
            items,
            at_ms=pieces.at_ms,
            rules=page.run.resolved.alerts,
            findings_of=findings_of,
        )
        positions = {f"{pieces.attempt}/{name}": at for name, at in pieces.output.positions.items()}
        page.alerts += alerts
        page.checkpoint = replace(
            before,
            watch=watch,
            redactor=redactors.stdout,
            redactor_stderr=redactors.stderr,
            positions={**before.positions, **positions},
        )
        _number(page, items, pieces.attempt, pieces.at_ms)


def findings_of(tool: ToolUse) -> list[detectors.Finding]:
    """What extensions find in a tool that ended."""
    return [each for _, found in extension.made("detectors", tool) for each in found]


def _number(page: Page, items: Iterable[OutputItem], attempt: int, at_ms: int) -> None:
    """Make the lines of these pieces; the checkpoint stands behind them."""
    seq, ts = page.checkpoint.seq, max(page.checkpoint.ts, at_ms)
    for each in items:
        if each.text:
            seq += 1
            text = _shown(each.type, each.text)
            page.lines.append(Line(seq=seq, ts=ts, type=each.type, text=text, attempt=attempt))
    page.checkpoint = replace(page.checkpoint, seq=seq, ts=ts)


def _shown(kind: LineType, text: str) -> str:
    """Not longer than a line may be."""
    most = THINKING_CHARS_MAX if kind is LineType.THINKING else LINE_CHARS_MAX
    return shortened(text, most)
