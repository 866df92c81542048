"""Screen parts that are redrawn: the tree on stderr, the table of ``watch`` on stdout.

The only module of these commands that needs Rich.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from subagents.cli.output import GAP, STYLES, cells_wide, fitted, is_coloured
from subagents.cli.show import render
from subagents.cli.show.log_lines import SIGNS
from subagents.cli.show.log_lines import STYLES as LINE_STYLES
from subagents.cli.show.watch_frame import HEADERS, STALE_MS, Frame
from subagents.text import cut_start, harmless, one_line

if TYPE_CHECKING:
    from subagents.api.wire.log_answers import LogLine
    from subagents.api.wire.run_answers import RunNode

FRAMES_PER_SECOND: Final = 5
LINES_SPARE: Final = 2
NUMBERS: Final = frozenset({"time", "tokens", "cost", "children", "seen"})
STATE: Final = HEADERS.index("state")
SEEN: Final = HEADERS.index("seen")
RUN: Final = HEADERS.index("run")
NOW: Final = HEADERS.index("now")


class _Redrawn:
    """A screen part that is redrawn in place and stays as it was last."""

    def __init__(self, *, stderr: bool) -> None:
        colours: Literal["auto"] | None = "auto" if is_coloured(is_terminal=True) else None
        self._console = Console(stderr=stderr, highlight=False, color_system=colours)
        self._live = Live(
            console=self._console,
            # The table is drawn by whoever has something new to draw, the tree by a thread.
            auto_refresh=stderr,
            refresh_per_second=FRAMES_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=not stderr,
            transient=False,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


class LiveTrees(_Redrawn):
    """The trees of runs, on stderr."""

    def __init__(self) -> None:
        super().__init__(stderr=True)

    def show(self, trees: "Sequence[RunNode]") -> None:
        """Draw the trees instead of those before; more lines than fit are counted, not drawn."""
        # The daemon is away for a moment: the last trees stay.
        if not trees:
            return
        lines = render.tree_rows(trees, self._console.width)
        room = max(3, self._console.height - LINES_SPARE)
        shown = [drawn(line) for line in lines[:room]]
        if len(lines) > room:
            shown.append(Text(f"… {len(lines) - room} more: subagents list --tree", style="dim"))
        self._live.update(Group(*shown))

    def show_line(self, line: str) -> None:
        """Draw one line instead, about more runs than fit."""
        self._live.update(Text(harmless(line), no_wrap=True, overflow="ellipsis"))

    def say(self, lines: "Sequence[LogLine]") -> None:
        """What a worker said, above the trees, which stay where they are."""
        for line in lines:
            sign = "" if line.type == "text" else f"{SIGNS.get(line.type, '?')} "
            style = LINE_STYLES.get(line.type, "")
            self._console.print(Text(f"{sign}{harmless(line.text)}", style=style))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """The screen without the trees, for somebody who types."""
        self.clear()
        self._live.stop()
        try:
            yield
        finally:
            self._live.start()

    def clear(self) -> None:
        """Draw nothing until the next trees."""
        self._live.update(Group(), refresh=True)


def drawn(line: render.TreeRow) -> Text:
    """One line in the colour of its state, cut where the terminal ends."""
    style = STYLES.get(line.state, "")
    text = Text(harmless(line.indent), no_wrap=True, overflow="ellipsis", style="")
    text.append(f"{render.icon(line.state)} ", style=style)
    text.append(harmless(line.text), style="dim" * (style == "dim"))
    return text


class LiveTable(_Redrawn):
    """The table of ``watch``, on stdout; drawn when there is something new to draw."""

    def __init__(self) -> None:
        super().__init__(stderr=False)

    def show(self, frame: Frame) -> None:
        """Draw this frame instead of the one before."""
        now_ms = time.time() * 1000
        table = Table(box=None, padding=(0, GAP, 0, 0), header_style="bold", pad_edge=False)
        rows = [
            [one_line(cell, chars_max=200) for cell in frame.cells(row, now_ms)]
            for row in frame.shown
        ]
        columns = frame.columns(rows)
        widths = [
            max(cells_wide(row[index]) for row in [list(HEADERS), *rows]) for index in columns
        ]
        cut = (columns.index(RUN), columns.index(NOW))
        given = dict(zip(columns, fitted(widths, cut, self._console.width), strict=True))
        columns = [index for index in columns if given[index]]
        for index in columns:
            table.add_column(
                HEADERS[index].upper(),
                no_wrap=True,
                overflow="ellipsis",
                width=given[index],
                justify="right" if HEADERS[index] in NUMBERS else "left",
            )
        for row, texts in zip(frame.shown, rows, strict=True):
            # Of a path of labels the end says which run it is.
            is_path = frame.is_below(row)
            name = cut_start(texts[RUN], given[RUN]) if is_path else texts[RUN]
            cells = [Text(text) for text in (*texts[:RUN], name, *texts[RUN + 1 :])]
            for index in (0, STATE):
                cells[index].stylize(STYLES.get(row.shown_state, ""))
            if row.outcome is None and (row.last_activity_age_ms or 0) >= STALE_MS:
                cells[SEEN].stylize("yellow")
            table.add_row(*(cells[index] for index in columns))
        parts: list[Text | Table] = [Text(frame.summary, style="bold"), table]
        if frame.fold:
            parts.append(Text(frame.fold, style="dim"))
        self._live.update(Group(*parts), refresh=True)
