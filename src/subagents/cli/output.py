"""What goes to the terminal and how: data on stdout, everything else on stderr.

Every command imports this module: what only a terminal, a wide character or a view of a document
needs is imported for them.
"""

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from subagents.cli.flags import flag_names
from subagents.errors import SubagentsError, UsageError
from subagents.text import counted, harmless, one_line

if TYPE_CHECKING:
    from subagents.cli import view

CELL_CHARS_MAX: Final = 72
GAP: Final = 2
READABLE_CELLS: Final = 16
"""The least of a text that still tells what it is."""
SQUEEZED_CELLS: Final = 10  # of it, before other columns are left out
WRAPPED_CELLS_MIN: Final = 20
_JSON_HARMFUL: Final = r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
STYLES: Final = {
    "ok": "green",
    "passed": "green",
    "working": "cyan",
    "needs you": "yellow",
    "running": "cyan",
    "spawning": "cyan",
    "verifying": "cyan",
    "partial": "yellow",
    "retry_wait": "yellow",
    "blocked": "yellow",
    "paused": "yellow",
    "warn": "yellow",
    "question": "yellow",
    "waiting": "dim",
    "queued": "dim",
    "error": "red",
    "failed": "red",
    "fail": "red",
    "timeout": "red",
    "lost": "red",
    "blocker": "red",
    "undelivered": "red",
    "unread": "yellow",
    "stuck": "yellow",
    "failure_loop": "yellow",
    "same_path": "yellow",
    "api_error": "yellow",
    "budget_alert": "yellow",
    "cancelled": "magenta",
}


_when = "auto"
"""``--color``."""
_view: "view.View | None" = None
"""``--json=FIELDS``, ``--jq`` or ``--format``."""


def set_colour(when: str) -> None:
    """Obey ``--color`` (auto, always or never): it is stronger than NO_COLOR and FORCE_COLOR."""
    global _when  # noqa: PLW0603  one command line, one process
    _when = when


def set_view(wanted: "view.View") -> None:
    """Print only this of every JSON document, but for what says that something went wrong."""
    global _view  # noqa: PLW0603  one command line, one process
    _view = wanted


def is_tty() -> bool:
    """Whether stdout is a terminal that takes more than plain lines."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def columns() -> int | None:
    """The width that lines on stdout are cut to; None = it is no terminal, and they stay whole."""
    if not is_tty():
        return None
    import shutil  # noqa: PLC0415

    return shutil.get_terminal_size().columns


def hanging(head: str, text: str, *, mark: str = "", word: str = "") -> None:
    """A line of data; on a terminal its words go on below each other, behind ``head``.

    ``mark`` stands before ``head``, in the colour of ``word``.
    """
    import textwrap  # noqa: PLC0415

    width = columns()
    indent = cells_wide(mark) + cells_wide(head)
    room = None if width is None else max(width - indent, WRAPPED_CELLS_MIN)
    parts = [text] if room is None else textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    styled_line(f"{head}{parts[0]}", mark, word)
    for part in parts[1:]:
        line(f"{' ' * indent}{part}")


def within(text: str, room: int | None) -> str:
    """``text``, or as much of it as ``room`` terminal cells take, with ``…`` at its end."""
    if room is None or cells_wide(text) <= room:
        return text
    kept, taken = [], 1
    for char in text:
        taken += cells_wide(char)
        if taken > room:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "…"


def is_coloured(*, is_terminal: bool) -> bool:
    """Whether a stream takes colours: ``--color``, else NO_COLOR, FORCE_COLOR, else a terminal."""
    if _when != "auto":
        return _when == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return is_terminal or os.environ.get("FORCE_COLOR", "") not in {"", "0"}


def data(text: str) -> None:
    """Write a worker's text to stdout: as it is into a pipe, harmless on a terminal."""
    written = shown(text)
    sys.stdout.write(written if written.endswith("\n") else f"{written}\n")


def shown(text: str) -> str:
    """A worker's text, or a part of it, as stdout bears it."""
    return harmless(text) if sys.stdout.isatty() else text


def line(text: str = "") -> None:
    """One line of data. In a pipe, too, it is there at once: the next may be minutes away."""
    sys.stdout.write(f"{harmless(text)}\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """One line for the person, on stderr."""
    sys.stderr.write(f"{harmless(text)}\n")
    sys.stderr.flush()


def spoken(text: str) -> str:
    """A text of the daemon in the words of this command line: flags for names of the API."""
    text = re.sub(r"\b[a-z]\w*(?:: \w+)? \((--[\w-]+(?: \w+)?)\)", r"\1", text)
    text = re.sub(r"\bsessions_([a-z]+)", r"subagents \1", text)
    if not re.search(_NAME, text):
        return text
    paths = sorted(flag_names().items(), key=lambda row: -row[0].count("."))
    flags = {path.rpartition(".")[2]: flag for path, flag in paths}
    return re.sub(_NAME, lambda found: flags.get(found[0], found[0]), text)


_NAME: Final = r"""(?<![\w"'./-])[a-z]+[A-Z]\w*"""


def warnings(found: Iterable[tuple[str, str]]) -> None:
    """Each text once, on stderr, with the first name that it is about and how many others."""
    about: dict[str, list[str]] = {}
    for name, text in found:
        about.setdefault(text, []).append(name)
    for text, (first, *others) in about.items():
        besides = f" (and {counted(len(others), 'other')})" if others else ""
        note(f"warning: {first}{besides}: {spoken(text)}")


def document(value: object) -> None:
    """One JSON document on stdout: indented on a terminal, one line in a pipe.

    Or what ``--json=FIELDS``, ``--jq`` or ``--format`` want of it.
    """
    _viewed(value, is_indented=sys.stdout.isatty())


def record(value: object) -> None:
    """One of many JSON documents, on one line; none must have the fields of all."""
    _viewed(value, is_indented=False, is_one_of_many=True)


def _viewed(value: object, *, is_indented: bool, is_one_of_many: bool = False) -> None:
    if _view is None:
        _json(value, is_indented=is_indented)
        return
    import json  # noqa: PLC0415

    from subagents.cli import view  # noqa: PLC0415

    read = json.loads(value) if isinstance(value, bytes) else value
    for each in view.shown(read, _view, is_one_of_many=is_one_of_many):
        if isinstance(each, str):
            line(each)
        else:
            _json(each, is_indented=is_indented)


def _json(value: object, *, is_indented: bool) -> None:
    # Bytes are a document as the daemon wrote it, which need not be read to be printed.
    raw = value if isinstance(value, bytes) else None
    if raw is None or is_indented:
        from msgspec import json  # noqa: PLC0415

        raw = json.encode(value) if raw is None else raw
        raw = json.format(raw, indent=2) if is_indented else raw
    sys.stdout.write(f"{harmless_json(raw)}\n")


def harmless_json(raw: bytes) -> str:
    """JSON of which no terminal makes anything: JSON escapes only the controls below 32.

    C1 controls, too, move a cursor, and bidirectional ones show text in another order than it is.
    """
    if raw.isascii() and b"\x7f" not in raw:
        return raw.decode()
    return re.sub(_JSON_HARMFUL, lambda found: f"\\u{ord(found[0]):04x}", raw.decode())


def failure(error: SubagentsError, *, as_json: bool) -> None:
    """Say what went wrong: the error document on stdout, or message and hint on stderr."""
    if as_json:
        # Whole, whatever `--json=FIELDS` asks for: what went wrong has no such fields.
        _json(error.to_wire(), is_indented=sys.stdout.isatty())
        return
    note(f"subagents: {spoken(error.message)}")
    if error.hint:
        note(f"  hint: {spoken(error.hint)}")


def styled(text: str, word: str, *, is_terminal: bool | None = None) -> str:
    """``text`` in the colour of a phase, outcome or kind; plain without a colour terminal.

    ``is_terminal`` says whether it is for one; None = it is for stdout.
    """
    codes = {
        "green": "32",
        "cyan": "36",
        "yellow": "33",
        "red": "31",
        "magenta": "35",
        "dim": "2",
        "bold": "1",
    }
    style = STYLES.get(word, word)
    is_terminal = is_tty() if is_terminal is None else is_terminal
    if style not in codes or not is_coloured(is_terminal=is_terminal):
        return text
    return f"\x1b[{codes[style]}m{text}\x1b[0m"


def styled_line(text: str, head: str, word: str) -> None:
    """A line of data that begins with ``head`` in the colour of ``word``."""
    sys.stdout.write(f"{styled(harmless(head), word)}{harmless(text)}\n")


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    styles: Mapping[int, int] | None = None,
    cut: Sequence[int] | None = None,
    why: Sequence[int] = (),
    printed: Callable[[], None] | None = None,
) -> None:
    """Rows under headers: as wide as a terminal at most, aligned columns otherwise.

    Args:
        headers: One word each.
        rows: As many cells as headers.
        styles: Column → the column whose word gives it its colour.
        cut: The columns whose texts may be cut where the terminal is too narrow, the most
            important first; the last of several is left out where nothing of it could be read.
            None = the last column. The others are whole on every terminal.
        why: Those of them that one acts on: what would be cut stands whole below its row.
        printed: Called after each row; what it raises ends the table.
    """
    # The last one in full: nothing stands behind it, and in a pipe it is cut nowhere.
    clean = [
        [*(one_line(cell, CELL_CHARS_MAX) for cell in cells), one_line(last)]
        for *cells, last in rows
    ]
    widths = [
        max(cells_wide(row[column]) for row in [list(headers), *clean])
        for column in range(len(headers))
    ]
    titles = [header.upper() for header in headers]
    heads: dict[int, str] = {}
    cut = cut or (len(headers) - 1,)
    if (room := columns()) is not None:
        widths = fitted(widths, cut, room)
        for column in why:
            if squeezed(widths, cut, room) != widths:
                widths[column] = 0
        widths = squeezed(widths, cut, room)
        heads = dict.fromkeys(range(len(headers)), "bold")
    sys.stdout.write(f"{aligned(titles, widths, heads)}\n")
    for row in clean:
        words = {column: row[source] for column, source in (styles or {}).items()}
        below = [each for each in why if cells_wide(row[each]) > widths[each]]
        cells = ["" if each in below else cell for each, cell in enumerate(row)]
        sys.stdout.write(f"{aligned(cells, widths, words)}\n")
        if below:
            hanging("    ", " · ".join(row[each] for each in below))
        if printed:
            printed()


def aligned(
    row: Sequence[str],
    widths: Sequence[int],
    words: Mapping[int, str],
    right: Collection[int] = (),
) -> str:
    """Cells below each other, cut to their widths, coloured by words where colours are taken.

    Those of the columns ``right`` end below each other.
    """
    cells = []
    for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
        if width:
            text = within(cell, width)
            shown = styled(text, words[column]) if column in words else text
            gap = " " * (width - cells_wide(text))
            cells.append(gap + shown if column in right else shown + gap)
    return (" " * GAP).join(cells).rstrip()


def cells_wide(text: str) -> int:
    """Terminal cells that ``text`` takes."""
    if text.isascii():
        return len(text)
    import unicodedata  # noqa: PLC0415

    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def fitted(widths: Sequence[int], cut: Sequence[int], room: int) -> list[int]:
    """The widths that columns get, 0 for one that is left out.

    Args:
        widths: What each would like, in terminal cells.
        cut: See ``table``.
        room: Of the terminal, with ``GAP`` cells between two columns.
    """
    given = list(widths)
    # Each first gets the least that can be read; what is left over goes to the most important.
    for left, column in enumerate(cut):
        least = READABLE_CELLS * 3 // 4 if left else READABLE_CELLS
        given[column] = min(given[column], least)

    def spare() -> int:
        shown = [width for width in given if width]
        return room - sum(shown) - GAP * (len(shown) - 1)

    # The least important goes first; the first of them is never left out.
    for column in reversed(cut[1:]):
        if spare() < 0:
            given[column] = 0
    short = [column for column in cut if 0 < given[column] < widths[column]]
    while short and spare() > 0:
        # The first of them gets what cannot be shared evenly.
        share = -(-spare() // len(short))
        given[short[0]] += min(share, widths[short[0]] - given[short[0]])
        short = [*short[1:], *([short[0]] if given[short[0]] < widths[short[0]] else [])]
    return given


def squeezed(widths: Sequence[int], cut: Sequence[int], room: int) -> list[int]:
    """The widths where a row would not fit: of ``cut`` the widest is reduced as long as it can be
    read, then of the others the last is left out, but not the first two: half a number misleads.
    """
    given = list(widths)
    while sum(given) + GAP * (sum(width > 0 for width in given) - 1) > room:
        long = max(cut, key=given.__getitem__)
        rest = [column for column in range(1, len(given)) if given[column] and column not in cut]
        if given[long] <= SQUEEZED_CELLS and len(rest) > 1:
            given[rest[-1]] = 0
        elif given[long] > 1:
            given[long] -= 1
        else:
            break
    return given


def is_confirmed(question: str, *, yes: bool, flag: str = "--yes") -> bool:
    """Ask on a terminal; elsewhere ``--yes`` must have been given.

    Raises:
        UsageError: Nobody can be asked and the flag is missing; nothing was done.
    """
    if yes:
        return True
    # Asked on stderr, since stdout may be a pipe.
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{question} There is no terminal to ask on.", hint=f"confirm with {flag}")
    sys.stderr.write(f"{harmless(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
