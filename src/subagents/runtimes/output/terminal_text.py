"""What programs write to terminals and pipes, as text for people and databases.

Everything here works on blocks of many lines: looking once whether a block holds an escape
sequence at all is what makes a million plain lines cheap.
"""

import re
from typing import Final

from subagents.domain.redaction.redact import redact
from subagents.domain.run.worker_output import LINE_CHARS_MAX, LineType, OutputItem

ESCAPE: Final = "\x1b"
_ESCAPES: Final = re.compile(
    "\x1b(?:"
    r"\[[0-?]{0,64}+[ -/]{0,8}+[@-~]"  # colours, cursor
    "|[\\]PX^_][^\x07\x1b\n]{0,4096}+(?:\x07|\x1b\\\\)"  # titles, links
    r"|[ -/]{0,8}+[0-Z\\^-~]"  # character sets, modes
    ")?"  # one that is cut or unknown loses its first character
)
_RETURNS: Final = re.compile(r"(?<!\r)\r++(?=\n|\Z)")

_ERROR_WORDS: Final = (
    *("error", "exception", "traceback", "fatal", "panic", "critical", "segfault", "err!"),
    *("segmentation fault", "core dumped", "command not found", "permission denied"),
    *("no such file or directory", "failed", "failure"),
)
_ERROR: Final = re.compile(
    r"(?<!\b0 )(?<!\bno )(?:errors?|exception|traceback|fatal|panic(?:ked)?|critical|segfault"
    r"|segmentation fault|core dumped|command not found|permission denied"
    r"|no such file or directory|failed|failure)\b|\berr!",
    re.IGNORECASE,
)
"""A word for an error, also at the end of a name (``ValueError``); not in ``0 errors``, ``no
error``, ``erroneous``."""

CUT_CHARS: Final = LINE_CHARS_MAX - 80
"""What is kept of a line that is too long; its note fits behind it."""


def plain(text: str) -> str:
    """``text`` without escape sequences, NULs and what was overwritten on its line."""
    if ESCAPE in text:
        text = _ESCAPES.sub("", text)
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if "\r" in text:
        text = _RETURNS.sub("", text)
        # Of a progress bar its last state, as a terminal shows it.
        text = "\n".join(line.rpartition("\r")[2] for line in text.split("\n"))
    return text


def clean(text: str) -> str:
    """Text for people and databases: NUL replaced, trailing newlines stripped."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").rstrip("\n")


def line_items(block: bytes, *, is_stderr: bool) -> list[OutputItem]:
    """Whole lines of plain text as items; blank ones are left out.

    On stderr those that look like errors are such. The last one may lack its newline.
    """
    text = plain(block.decode("utf-8", "replace"))
    lines = text.split("\n")
    if len(text) > LINE_CHARS_MAX:
        lines = [line if len(line) <= LINE_CHARS_MAX else shortened(line) for line in lines]
    may_err = is_stderr and may_hold_error(text)
    return [
        OutputItem(
            type=LineType.ERROR if may_err and looks_like_error(line) else LineType.TEXT,
            text=line,
            is_stderr=is_stderr,
        )
        for line in lines
        if line and not line.isspace()
    ]


def shortened(text: str) -> str:
    """``text``, cut with a note when it is longer than a line of a transcript.

    Redacted before it is cut: half a secret is no secret by its shape.
    """
    if len(text) <= LINE_CHARS_MAX:
        return text
    kept = redact(text[: 2 * LINE_CHARS_MAX])[:CUT_CHARS]
    return f"{kept}… ({len(text) - len(kept):,} more characters)"


def cut_line_item(data: bytes, *, is_stderr: bool) -> OutputItem:
    """What a line says whose end is not waited for; ``data`` is enough of its beginning."""
    kept = redact(plain(data.decode("utf-8", "replace"))[: 2 * LINE_CHARS_MAX])[:CUT_CHARS]
    is_error = is_stderr and looks_like_error(kept)
    note = "… (more than 1 MiB in one line; the rest is left out)"
    kind = LineType.ERROR if is_error else LineType.TEXT
    return OutputItem(type=kind, text=kept + note, is_stderr=is_stderr)


def looks_like_error(line: str) -> bool:
    """Whether a line of standard error reports an error, by its words."""
    return may_hold_error(line) and _ERROR.search(line) is not None


def may_hold_error(text: str) -> bool:
    """A quick look: False = no line of ``text`` looks like an error."""
    lower = text.lower()
    return any(word in lower for word in _ERROR_WORDS)
