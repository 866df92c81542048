"""The live tree on stderr; the only module of the waiting commands that needs Rich.

Source: 5-surfaces §2 (``run`` shows the live tree).
"""

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Literal, Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from subagents.cli import render
from subagents.cli.output import STYLES, harmless
from subagents.cli.views import Node

FRAMES_PER_SECOND: Final = 5
LINES_SPARE: Final = 2


class LiveTrees:
    """A screen part that is redrawn in place and stays as it was last."""

    def __init__(self) -> None:
        colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
        self._console = Console(stderr=True, highlight=False, color_system=colours)
        self._live = Live(
            console=self._console,
            refresh_per_second=FRAMES_PER_SECOND,
            redirect_stdout=False,
            transient=False,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def show(self, trees: Sequence[Node]) -> None:
        """Draw the trees instead of those before; more lines than fit are counted, not drawn."""
        if not trees:
            return
        lines = render.aligned([line for tree in trees for line in render.tree_lines(tree)])
        room = max(3, self._console.height - LINES_SPARE)
        shown = [drawn(line) for line in lines[:room]]
        if len(lines) > room:
            shown.append(Text(f"… {len(lines) - room} more: subagents tree", style="dim"))
        self._live.update(Group(*shown))


def drawn(line: render.TreeLine) -> Text:
    """One line in the colour of its state, cut where the terminal ends."""
    style = STYLES.get(line.state, "")
    text = Text(harmless(line.indent), no_wrap=True, overflow="ellipsis", style="")
    text.append(f"{render.icon(line.state)} ", style=style)
    text.append(f"{harmless(line.name)}  {harmless(line.text)}", style="dim" * (style == "dim"))
    return text
