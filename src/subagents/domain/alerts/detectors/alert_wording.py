"""How a worker's words stand inside a sentence of ours: on one line, short, without secrets.

Source: 4-observability §4 ("Short, one line per cause").
"""

from typing import Final

from subagents.domain.redaction.redact import redact

TEXT_CHARS_MAX: Final = 160
"""Of an alert's whole text."""
QUOTE_CHARS_MAX: Final = 80
"""Of a worker's words in it."""
FIELD_CHARS_MAX: Final = 200
"""Of a worker's words in a field."""
_LOOKED_AT_CHARS: Final = 4_000
"""Secrets are taken out before the cut, so that half a key does not look like a word."""


def one_line(text: str) -> str:
    """``text`` with single spaces, and nothing that moves a cursor or turns the line around."""
    line = " ".join(text.split())
    return line if line.isprintable() else "".join(each for each in line if each.isprintable())


def shown(text: str, most: int = QUOTE_CHARS_MAX) -> str:
    """A worker's words, at most ``most`` characters of them."""
    return cut(redact(one_line(text[:_LOOKED_AT_CHARS])), most)


def cut(text: str, most: int) -> str:
    """At most ``most`` characters; what is missing shows as an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def shown_path(path: str) -> str:
    """A file's name as people say it: of an absolute path the end; a long one loses its head."""
    name = one_line(path[-_LOOKED_AT_CHARS:])
    if name.startswith(("/", "~")) or name[1:3] in {":\\", ":/"}:
        name = "/".join(name.replace("\\", "/").rstrip("/").split("/")[-2:])
    name = redact(name)
    return name if len(name) <= QUOTE_CHARS_MAX else f"…{name[1 - QUOTE_CHARS_MAX :]}"


def counted(number: int, what: str) -> str:
    """``1 error``, ``2 errors``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
