"""Screen parts that are redrawn: the tree on stderr, the table of ``watch`` on stdout."""

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, Self, TextIO

from subagents.cli.output import aligned, cells_wide, fitted, squeezed, styled, within
from subagents.cli.show import render
from subagents.cli.show.log_lines import SIGNS
from subagents.cli.show.log_lines import STYLES as LINE_STYLES
from subagents.cli.show.watch_frame import HEADERS, STALE_MS, Frame
from subagents.text import cut_start, harmless, one_line

if TYPE_CHECKING:
    from subagents.api.wire.log_answers import LogLine
    from subagents.api.wire.run_answers import RunNode

LINES_SPARE: Final = 2
NUMBERS: Final = frozenset({"time", "tokens", "cost", "children", "seen"})
RUN, STATE, SEEN, NOW = map(HEADERS.index, ("run", "state", "seen", "now"))
SPARED: Final = ("run", "now", "seen", "time", "children", "cost", "tokens", "agent")
"""Columns that give way on a narrow terminal, the last one first."""
_styled = partial(styled, is_terminal=True)

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
"""The cursor, which stands below what is drawn."""
REST_OF_LINE, REST_OF_SCREEN = "\x1b[K", "\x1b[J"
"""Both are erased."""


class _Redrawn:
    """A screen part that is redrawn in place and stays as it was last."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lines: Sequence[str] = ()

    def __enter__(self) -> Self:
        self._write(HIDE)
        return self

    def __exit__(self, *_: object) -> None:
        self._write(SHOW)

    @property
    def _size(self) -> os.terminal_size:
        own = os.get_terminal_size(self._out.fileno())
        # What the environment says counts more.
        return shutil.get_terminal_size((own.columns or 80, own.lines or 24))

    def _draw(self, lines: Sequence[str], *, above: Sequence[str] = ()) -> None:
        """Draw the lines, none wider than the screen, instead of those before; others above them.

        Of more than fit only the first are drawn: a cursor goes no further up than the screen.
        """
        up = f"\x1b[{len(self._lines)}A" if self._lines else ""
        self._lines = lines[: max(self._size.lines - 1, 1)]
        said = "".join(f"{each}\n" for each in above)
        text = "".join(f"{each}{REST_OF_LINE}\n" for each in self._lines)
        self._write(f"{up}\r{REST_OF_SCREEN * bool(said)}{said}{text}{REST_OF_SCREEN}")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


class LiveTrees(_Redrawn):
    """The trees of runs, on stderr."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def show(self, trees: "Sequence[RunNode]") -> None:
        """Draw the trees instead of those before; more lines than fit are counted, not drawn."""
        # The daemon is away for a moment: the last trees stay.
        if not trees:
            return
        width, height = self._size
        rows = render.tree_rows(trees, width)
        room, shown = max(3, height - LINES_SPARE), list[str]()
        for place, row in enumerate(rows):
            lines = row.lines(width, is_terminal=True)
            if len(shown) + len(lines) > room:
                more = within(f"… {len(rows) - place} more: subagents list --tree", width)
                shown.append(_styled(more, "dim"))
                break
            shown += lines
        self._draw(shown)

    def show_line(self, line: str) -> None:
        """Draw one line instead, about more runs than fit."""
        self._draw([within(harmless(line), self._size.columns)])

    def say(self, lines: "Sequence[LogLine]") -> None:
        """What a worker said, above the trees, which stay where they are."""
        said = []
        for line in lines:
            sign = "" if line.type == "text" else f"{SIGNS.get(line.type, '?')} "
            style = LINE_STYLES.get(line.type, "")
            said.append(_styled(f"{sign}{harmless(line.text)}", style))
        if said:
            self._draw(self._lines, above=said)

    def note(self, text: str) -> None:
        """A line for the person, above the trees."""
        self._draw(self._lines, above=[harmless(text)])

    @contextmanager
    def aside(self) -> Iterator[None]:
        """The screen without the trees, for somebody who types."""
        self.clear()
        self._write(SHOW)
        try:
            yield
        finally:
            self._write(HIDE)

    def clear(self) -> None:
        """Draw nothing until the next trees."""
        self._draw(())


class LiveTable(_Redrawn):
    """The table of ``watch``, on stdout; drawn when there is something new to draw."""

    def __init__(self) -> None:
        super().__init__(sys.stdout)

    def show(self, frame: Frame) -> None:
        """Draw this frame instead of the one before."""
        now_ms = time.time() * 1000
        room = self._size.columns
        rows = [
            [one_line(cell, chars_max=200) for cell in frame.cells(row, now_ms)]
            for row in frame.shown
        ]
        columns = frame.columns(rows)
        widths = [
            max(cells_wide(row[index]) for row in [list(HEADERS), *rows]) for index in columns
        ]
        wanted = map(HEADERS.index, SPARED)
        cut = [columns.index(each) for each in wanted if each in columns]
        given = squeezed(fitted(widths, cut, room), cut, room)
        right = {at for at, index in enumerate(columns) if HEADERS[index] in NUMBERS}
        titles = [HEADERS[index].upper() for index in columns]
        heads = dict.fromkeys(range(len(columns)), "bold")
        lines = [_styled(within(frame.summary, room), "bold"), aligned(titles, given, heads, right)]
        for row, texts in zip(frame.shown, rows, strict=True):
            words = dict.fromkeys((0, STATE), row.shown_state)
            if frame.is_below(row):
                # Of a path of labels the end says which run it is.
                texts[RUN] = cut_start(texts[RUN], given[columns.index(RUN)])
            if row.outcome is None and (row.last_activity_age_ms or 0) >= STALE_MS:
                words[SEEN] = "warn"
            cells = [texts[index] for index in columns]
            of_columns = {at: words[index] for at, index in enumerate(columns) if index in words}
            lines.append(aligned(cells, given, of_columns, right))
        if frame.fold:
            lines.append(_styled(within(frame.fold, room), "dim"))
        self._draw(lines)
