"""Sends the spans of every run that ended, at least once, also over crashes and outages.

The journal is the queue. A cursor in a file says up to which event of the feed everything was
sent; from there on the feed is read in pages, and each run that is over by then is sent with its
whole tree position. So nothing is kept in memory, a receiver that is down costs nothing but time,
and after ``kill -9`` the next daemon continues where the last one was acknowledged. What is sent
twice has the same ids.

All of it happens on a thread of its own: a slow receiver delays nobody.

Why: docs/decisions/0022-spans-from-the-journal.md.
"""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import msgspec

from subagents.domain.lifecycle.transitions import TRANSITIONS
from subagents.domain.run.events import Event
from subagents.domain.run.run import OVER, Phase, Run
from subagents.domain.run.values import RunId, replace
from subagents.domain.trace.spans import Span, spans_of
from subagents.domain.trace.trace_ids import lineage
from subagents.errors import StoreUnavailable, SubagentsError
from subagents.ports import (
    Batch,
    ExportState,
    FeedEntry,
    Store,
    readable,
)

log = logging.getLogger(__name__)

CURSOR_FILE: Final = "telemetry-cursor.json"
FEED_PAGE: Final = 500
JOURNAL_PAGE: Final = 500
SPANS_AT_ONCE: Final = 512
"""In one request; receivers refuse bodies of a few megabytes."""
RETRY_FIRST_S: Final = 1.0
RETRY_S_MAX: Final = 60.0
STOP_S: Final = 3.0
"""A daemon that stops waits so long for its last spans; the next one sends the others."""

ENDS: Final[Mapping[Phase, frozenset[type]]] = {
    phase: frozenset(
        kind
        for (before, kind), after in TRANSITIONS.items()
        if phase in after and before not in OVER
    )
    for phase in OVER
}
"""Which events can have brought a run into the phase in which it is over."""


class ReceiverUnavailable(Exception):
    """The receiver did not take the spans now; the same ones can be sent again."""


class ReceiverRefused(Exception):
    """The receiver will never take these spans."""


class Sender(Protocol):
    """Hands spans to the receiver. Blocking."""

    @property
    def endpoint(self) -> str:
        """Where to, for people."""
        ...

    def send(self, spans: Sequence[Span]) -> None:
        """Return when the receiver has them; what it has under the same id it replaces.

        Raises:
            ReceiverUnavailable: Try again later.
            ReceiverRefused: Trying again is no use.
        """
        ...

    def close(self) -> None: ...


class Cursor(msgspec.Struct, frozen=True, rename="camel"):
    """The content of the file."""

    number: int
    """Everything up to this event of the feed was sent."""


class SpanExport:
    """One sender and how far it has come.

    Args:
        store: Where runs and their journals are read.
        sender: Where they go.
        file: Holds the cursor; without it, export begins with what ends from now on.
        describe: The description of an agent by its id.
        content: Whether tasks and results are sent, too.
        retry_first_s: Before the first repetition; doubled up to ``RETRY_S_MAX``.
    """

    def __init__(
        self,
        *,
        store: Store,
        sender: Sender,
        file: Path,
        describe: Callable[[str], str | None] = lambda _agent_id: None,
        content: bool = False,
        retry_first_s: float = RETRY_FIRST_S,
    ) -> None:
        self._store = store
        self._sender = sender
        self._file = file
        self._describe = describe
        self._content = content
        self._retry_first_s = retry_first_s
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._abandoned = threading.Event()
        self._thread: threading.Thread | None = None
        self._number = 0
        self._saved = -1
        self._state = ExportState(endpoint=sender.endpoint)

    @property
    def state(self) -> ExportState:
        """How it is going; may be read from any thread."""
        return self._state

    # -- life ------------------------------------------------------------------------------

    def start(self) -> None:
        """Go on from the cursor; the store must be open.

        Raises:
            StoreUnavailable: It cannot be read.
            OSError: The cursor cannot be written.
        """
        known = _read(self._file)
        newest = self._store.newest_number()
        if known is None:
            self._number = newest
        else:
            # A database that was put back from a backup has given out fewer numbers.
            self._number = min(known.number, newest)
        self._save()
        self._wake.set()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._thread.start()

    def on_commit(self, batch: Batch) -> None:
        """Hear of a durable batch; returns at once."""
        if any(run.phase in OVER for run in batch.runs.values()):
            self._wake.set()

    def stop(self) -> None:
        """Send what has ended, for at most ``STOP_S``; the cursor keeps the rest. Idempotent."""
        self._stopping.set()
        self._wake.set()
        if self._state.last_error is not None:
            self._sender.close()  # it would not get through in this time either
        if self._thread is not None:
            self._thread.join(STOP_S)
            self._thread = None
        self._abandoned.set()
        self._sender.close()

    def _run(self) -> None:
        pause_s = self._retry_first_s
        while True:
            self._wake.wait()
            self._wake.clear()
            try:
                self.catch_up()
                pause_s = self._retry_first_s
            except (ReceiverUnavailable, StoreUnavailable, OSError) as error:
                self._failed(error, pause_s)
                if self._stopping.wait(pause_s):
                    return
                pause_s = min(pause_s * 2, RETRY_S_MAX)
                self._wake.set()
            except Exception as error:
                if self._abandoned.is_set():
                    return
                # A mistake of ours must be seen, and must not end the export for good.
                log.exception("the export of spans broke")
                self._state = replace(self._state, last_error=repr(error))
                if self._stopping.wait(RETRY_S_MAX):
                    return
                self._wake.set()
            if self._stopping.is_set() and not self._wake.is_set():
                return

    def _failed(self, error: Exception, pause_s: float) -> None:
        if self._state.last_error is None:
            # Once per outage: a receiver that is down for a day must not fill the log.
            log.warning(
                "spans cannot be sent to %s, trying again in %g s: %s",
                self._sender.endpoint,
                pause_s,
                error,
            )
        self._state = replace(self._state, last_error=str(error))

    # -- the work --------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Send every run that is over by now and was not yet; then move the cursor.

        Raises:
            ReceiverUnavailable: The cursor stays before the page that could not be sent.
            StoreUnavailable: So it does.
        """
        while page := self._store.feed(after=self._number, limit=FEED_PAGE):
            self._send_all(self._ended(page))
            self._number = page[-1].number
            if len(page) < FEED_PAGE:
                break
            self._save()
        self._save()
        if self._state.last_error is not None:
            log.info("spans are sent to %s again", self._sender.endpoint)
            self._state = replace(self._state, last_error=None)

    def _ended(self, page: Iterable[FeedEntry]) -> Iterator[Run]:
        """Each run of which the page holds the end."""
        seen: set[RunId] = set()
        kinds = frozenset().union(*ENDS.values())
        for each in page:
            entry = each.entry
            if entry.run_id in seen or type(entry.event) not in kinds:
                continue
            run = readable(self._store, entry.run_id)
            if run is not None and type(entry.event) in ENDS.get(run.phase, ()):
                seen.add(run.id)
                yield run

    def _send_all(self, runs: Iterable[Run]) -> None:
        waiting: list[Span] = []
        for run in runs:
            waiting += self._spans(run)
            while len(waiting) >= SPANS_AT_ONCE:
                self._send(waiting[:SPANS_AT_ONCE])
                del waiting[:SPANS_AT_ONCE]
        if waiting:
            self._send(waiting)

    def _spans(self, run: Run) -> list[Span]:
        try:
            return spans_of(
                run,
                self._journal(run.id),
                lineage(run, partial(readable, self._store)),
                description=self._describe(run.resolved.agent_id),
                content=self._content,
            )
        except StoreUnavailable:
            raise
        except (SubagentsError, msgspec.ValidationError, KeyError, ValueError):
            # One run that cannot be exported must not keep back all others.
            log.exception("run %s has no spans", run.id)
            return []

    def _journal(self, run_id: RunId) -> Iterator[Event]:
        seq = 0
        while page := self._store.journal(run_id, after_seq=seq, limit=JOURNAL_PAGE):
            yield from (entry.event for entry in page)
            seq = page[-1].seq

    def _send(self, spans: Sequence[Span]) -> None:
        try:
            self._sender.send(spans)
        except ReceiverRefused as error:
            log.warning("%s refused %s spans: %s", self._sender.endpoint, len(spans), error)
            self._state = replace(self._state, refused=self._state.refused + len(spans))
            return
        self._state = replace(
            self._state,
            sent=self._state.sent + len(spans),
            last_sent_ms=time.time_ns() // 1_000_000,
        )

    def _save(self) -> None:
        if self._number == self._saved or self._abandoned.is_set():
            return
        _write(self._file, Cursor(number=self._number))
        self._saved = self._number


class NoExport:
    """Without an endpoint: what ends now is never sent, also when there is an endpoint later."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @property
    def state(self) -> None:
        """Nothing is sent."""
        return

    def start(self) -> None:
        """Forget how far an earlier export came."""
        self._file.unlink(missing_ok=True)

    def on_commit(self, batch: Batch) -> None:
        """Nobody hears of it."""

    def stop(self) -> None:
        """There is nothing to stop."""


# -- the file -----------------------------------------------------------------------------------


def _read(file: Path) -> Cursor | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Cursor)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        log.warning("%s cannot be read, spans begin with what ends now: %s", file, error)
        return None


def _write(file: Path, cursor: Cursor) -> None:
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(draft, flags, 0o600), "wb") as opened:
        opened.write(msgspec.json.encode(cursor))
        opened.flush()
        os.fsync(opened.fileno())
    draft.replace(file)
