"""Reports to others what happened to runs: at least once, over crashes and outages.

The journal is the queue. A cursor in a file says up to which event of the feed everything was
sent; from there on the feed is read in pages. So nothing is kept in memory, a receiver that is
down costs nothing but time, and after ``kill -9`` the next daemon continues where the last one was
acknowledged.
"""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from subagents.domain.run.values import RunId, replace
from subagents.durable_files import replace_file
from subagents.errors import StoreUnavailable
from subagents.ports import Audience, Batch, ExportState, FeedEntry, Store

log = logging.getLogger(__name__)

FEED_PAGE: Final = 500
ENDED_MAX: Final = 1_000
"""How many ends are remembered: more than one page of the journal can have."""
LOOK_S: Final = 60.0
"""How often a node of a cluster looks at what others wrote: or it would take all of that for news
when it takes their runs over, and hear of none that went to them."""
RETRY_S_MAX: Final = 60.0
STOP_S: Final = 3.0
"""A daemon that stops waits so long for what is still to send; the next one sends the rest."""


class ReceiverUnavailable(Exception):
    """The receiver did not take it now; the same can be sent again."""


class ReceiverRefused(Exception):
    """The receiver will never take this."""


class Cursor(msgspec.Struct, frozen=True, rename="camel"):
    """The content of the file."""

    number: int
    """Everything up to this event of the feed was sent."""


class Export(ABC):
    """Sends on a thread of its own, and repeats until it was taken; see ``ports.Exporter``.

    Args:
        what: What is sent, in the plural, for people.
        endpoint: Where to, for people.
        store: Where runs and their journals are read.
    """

    audience = Audience.PEOPLE
    """See ``ports.Exporter``."""
    retry_first_s = 1.0
    """The pause before the first repetition; doubled up to ``RETRY_S_MAX``."""
    look_s: float | None = None
    """How often it looks without being woken, in seconds; None = never."""

    def __init__(self, *, what: str, endpoint: str, store: Store) -> None:
        self._what = what
        self._store = store
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._abandoned = threading.Event()
        self._thread: threading.Thread | None = None
        self._state = ExportState(endpoint=endpoint)

    # -- what each one does in its own way -------------------------------------------------

    @abstractmethod
    def _concerns(self, batch: Batch) -> bool:
        """Whether there may be something to send; quick, and called on the loop."""

    @abstractmethod
    def catch_up(self) -> None:
        """Send all there is to send.

        Raises:
            ReceiverUnavailable: It is called again after a pause.
            StoreUnavailable: So it is.
        """

    def _close(self) -> None:  # noqa: B027 - not all hold something
        """Give up connections; called more than once."""

    @property
    def state(self) -> ExportState:
        """How it is going; may be read from any thread."""
        return self._state

    # -- life ------------------------------------------------------------------------------

    def start(self) -> None:
        """Send what is left from before; the store must be open."""
        self._wake.set()
        self._thread = threading.Thread(target=self._run, name=f"export {self._what}", daemon=True)
        self._thread.start()

    def on_commit(self, batch: Batch) -> None:
        """Note a durable batch; returns at once."""
        if self._concerns(batch):
            self._wake.set()

    def stop(self) -> None:
        """Send what has ended, for at most ``STOP_S``; the cursor keeps the rest. Idempotent."""
        self._stopping.set()
        self._wake.set()
        if self._state.last_error is not None:
            self._close()  # it would not get through in this time either
        if self._thread is not None:
            self._thread.join(STOP_S)
            self._thread = None
        self._abandoned.set()
        self._close()

    def _run(self) -> None:
        pause_s = self.retry_first_s
        while True:
            self._wake.wait(self.look_s)
            # Before the look at the store: a batch that comes meanwhile makes one more round.
            self._wake.clear()
            try:
                self.catch_up()
                pause_s = self.retry_first_s
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
                log.exception("the export of %s broke", self._what)
                self._state = replace(self._state, last_error=repr(error))
                if self._stopping.wait(RETRY_S_MAX):
                    return
                self._wake.set()
            if self._stopping.is_set() and not self._wake.is_set():
                return

    def _failed(self, error: Exception, pause_s: float) -> None:
        if self._state.last_error is None:
            # Once per outage: a receiver that is down for a day must not fill the log.
            text = "%s cannot be sent to %s, trying again in %g s: %s"
            log.warning(text, self._what, self._state.endpoint, pause_s, error)
        self._state = replace(self._state, last_error=str(error))

    def _sent(self, number: int = 1) -> None:
        self._state = replace(
            self._state,
            sent=self._state.sent + number,
            last_sent_ms=time.time_ns() // 1_000_000,
        )

    def _refused(self, why: str, number: int = 1) -> None:
        log.warning("%s", why)
        self._state = replace(self._state, refused=self._state.refused + number)

    def _taken(self) -> None:
        """All that there was is sent: an outage is over."""
        if self._state.last_error is not None:
            log.info("%s are sent to %s again", self._what, self._state.endpoint)
            self._state = replace(self._state, last_error=None)


class JournalExport(Export):
    """One receiver, and how far it has come in the feed.

    Args:
        what: What is sent, in the plural, for people.
        endpoint: Where to, for people.
        store: Where runs and their journals are read.
        file: Holds the cursor; without it, sending begins with what happens from now on.
    """

    def __init__(self, *, what: str, endpoint: str, store: Store, file: Path) -> None:
        super().__init__(what=what, endpoint=endpoint, store=store)
        self.is_ours: Callable[[RunId], bool] = lambda _run_id: True
        """Whether this node reports about a run: in a cluster its owner does."""
        self._file = file
        self._number = 0
        self._saved = -1
        self._ends_told: dict[RunId, None] = {}
        """Runs whose end was reported, the newest last: it can become known with several events."""

    @abstractmethod
    def _send_page(self, page: Sequence[FeedEntry]) -> None:
        """Send what is to be said of these events.

        Raises:
            ReceiverUnavailable: It is asked again with the same events, or those behind
                ``_number`` when that was moved meanwhile.
        """

    def _remember_end(self, run_id: RunId) -> None:
        self._ends_told[run_id] = None
        if len(self._ends_told) > ENDED_MAX:
            del self._ends_told[next(iter(self._ends_told))]

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
        super().start()

    def catch_up(self) -> None:
        """Send what has happened behind the cursor; then move it.

        Raises:
            ReceiverUnavailable: The cursor stays before the page that could not be sent.
            StoreUnavailable: So it does.
        """
        while page := self._store.feed(after=self._number, limit=FEED_PAGE):
            if own := [each for each in page if self.is_ours(each.entry.run_id)]:
                self._send_page(own)
            self._number = page[-1].number
            if len(page) < FEED_PAGE:
                break
            self._save()
        self._save()
        self._taken()

    def _save(self) -> None:
        if self._number == self._saved or self._abandoned.is_set():
            return
        replace_file(self._file, msgspec.json.encode(Cursor(number=self._number)))
        self._saved = self._number


def _read(file: Path) -> Cursor | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Cursor)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        log.warning("%s cannot be read, sending begins with what happens now: %s", file, error)
        return None
