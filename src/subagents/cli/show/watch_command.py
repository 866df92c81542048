"""``list --watch``: a table of runs that is redrawn until all of them are over.

What needs a person stands first, then what failed: those rows never give way to others. Not the
whole screen: the table stays where it was when it ends.
"""

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from subagents.api.wire.run_answers import RunPage, RunRow, RunStatus
from subagents.api.wire.wire_struct import read
from subagents.cli import output
from subagents.cli.connection import connect
from subagents.cli.flags import refusal
from subagents.cli.runs import selectors
from subagents.cli.show.search_query import BOTH
from subagents.cli.show.watch_frame import HEADERS, Frame, place
from subagents.client.client import Client, Document, Query, persistently, segment
from subagents.errors import NotFound, UsageError
from subagents.text import iso, milliseconds_of, one_line, parse_duration

INTERVAL_MS_MIN: Final = 200
LINES_SPARE: Final = 4
"""Lines beside the rows: summary, header, what is folded, and the prompt afterwards."""
NEWEST: Final = 50
ROWS_PLAIN_MAX: Final = 200
"""The most rows where there is no terminal whose height counts."""


# -- what is looked at ---------------------------------------------------------------------------


class Watched:
    """Which runs are watched, and what is known of those that are over."""

    def __init__(
        self, client: Client, given: Sequence[str], search: Mapping[str, str] | None = None
    ) -> None:
        """Look the runs of these selectors up once; without any, all that fit the search.

        Raises:
            NotFound: One of them does not exist.
        """
        self._client = client
        self._trees = [each for each in given if each.startswith(selectors.TREE)]
        single = [each for each in given if each not in self._trees]
        self._all = not given
        self._search = {**(search or {})}
        self._began_ms = time.time() * 1000
        self._followed: dict[str, RunRow] = {}
        self._over: dict[str, RunStatus] = {}
        self._raw: dict[str, Document] = {}
        for selector in selectors.expand(client, single):
            found = read(client.get(selectors.path_of(selector, "/status")), RunRow)
            self._followed[found.run_id] = found

    def frame(self, rows_max: int) -> Frame:
        """The runs as they are now; those for which there is no room are counted only."""
        for row in self._rows():
            self._followed[row.run_id] = row
        for gone in [each for each in self._followed if each not in self._over]:
            # A list of what is at work does not name what has just ended.
            if self._followed[gone].outcome is None and self._all:
                self._look(gone)
        ordered = sorted(self._followed.values(), key=place)
        shown = [self._look(row.run_id) for row in ordered[:rows_max]]
        return Frame([each for each in shown if each is not None], ordered[rows_max:])

    def documents(self, frame: Frame) -> list[Document]:
        return [self._raw[row.run_id] for row in frame.shown]

    def _rows(self) -> Iterator[RunRow]:
        for tree in self._trees:
            yield from selectors.rows(self._client, tree)
        if self._all:
            yield from selectors.listed(self._client, selectors.AT_WORK | self._search)
            # What began and ended between two looks.
            query: Query = {**self._search, "limit": NEWEST}
            newest = read(self._client.get("/v1/runs", query), RunPage).runs
            yield from (
                row for row in newest if (milliseconds_of(row.created_at) or 0) >= self._began_ms
            )

    def _look(self, run_id: str) -> RunStatus | None:
        """The run's status; what is over does not change any more."""
        if run_id in self._over:
            return self._over[run_id]
        try:
            answer = self._client.get(f"/v1/runs/{segment(run_id)}/status")
        except NotFound:
            # Pruned while it was watched.
            self._followed.pop(run_id, None)
            return None
        found = read(answer, RunStatus)
        self._followed[run_id] = found
        self._raw[run_id] = answer
        if found.outcome is not None:
            self._over[run_id] = found
        return found


# -- where it is shown ---------------------------------------------------------------------------


class _Lines:
    """For pipes and files: a line for each run of which something is new."""

    def __init__(self) -> None:
        self._shown: dict[str, list[str]] = {}

    def show(self, frame: Frame) -> None:
        now_ms = time.time() * 1000
        at = time.strftime("%H:%M:%S")
        for row in frame.shown:
            cells = frame.cells(row, now_ms)
            # Time alone is no news.
            news = [*cells[:4], *cells[5:8], *cells[9:]]
            if self._shown.get(row.run_id) == news:
                continue
            self._shown[row.run_id] = news
            text = "  ".join(one_line(cell, chars_max=120) for cell in cells if cell)
            output.line(f"{at}  {text}")


def _table(frame: Frame) -> None:
    now_ms = time.time() * 1000
    rows = [frame.cells(row, now_ms) for row in frame.shown]
    columns = frame.columns(rows)
    headers = [HEADERS[index] for index in columns]
    state = headers.index("state")
    shown = [[row[index] for index in columns] for row in rows]
    output.table(headers, shown, styles={0: state, state: state})
    if frame.fold:
        output.note(frame.fold)


@contextmanager
def _screen(*, json: bool, watched: Watched) -> Iterator[Callable[[Frame], None]]:
    """What shows a frame; as JSON each is a document."""
    if json:
        yield lambda frame: output.record(
            {"takenAt": iso(round(time.time() * 1000)), "runs": watched.documents(frame)}
        )
    elif not output.is_tty():
        yield _Lines().show
    else:
        from subagents.cli.show.live_screen import LiveTable  # noqa: PLC0415  for terminals only

        with LiveTable() as table:
            yield table.show


def rows_max() -> int:
    """As many rows as the terminal shows together with what stands around them."""
    if not output.is_tty():
        return ROWS_PLAIN_MAX
    return max(shutil.get_terminal_size().lines - LINES_SPARE, 1)


def watch_runs(
    runs: Sequence[str], search: Mapping[str, str], *, interval: str, is_once: bool, json: bool
) -> None:
    """Show these runs until all of them have ended.

    Without any: all active runs that fit the search, and those spawned in the meantime.

    Args:
        runs: Selectors.
        search: See ``search_query``.
        interval: The time between two updates.
        is_once: Show them once.
        json: As documents, a line for each update.
    """
    if runs and search:
        raise UsageError(BOTH)
    pause_ms = parse_duration(interval, field="--interval")
    if pause_ms < INTERVAL_MS_MIN:
        raise refusal("--interval", f"must be {INTERVAL_MS_MIN}ms or more")
    with connect() as client:
        watched = persistently(lambda: Watched(client, runs, search))
        frame = persistently(lambda: watched.frame(rows_max()))
        if not frame.shown and not json:
            output.note(selectors.NONE_ACTIVE)
            return
        if is_once:
            if json:
                output.document({"runs": watched.documents(frame)})
            else:
                _table(frame)
            return
        with _screen(json=json, watched=watched) as show:
            show(frame)
            while not frame.is_over:
                sys.stdout.flush()
                time.sleep(pause_ms / 1000)
                # The height is asked for each time: a terminal may be made larger meanwhile.
                frame = persistently(lambda: watched.frame(rows_max()))
                show(frame)
