"""How a worker's words stand inside a sentence of ours: on one line, short, without secrets."""

from typing import Final

from subagents.domain.redaction.redact import redact
from subagents.text import cut, cut_start, one_line

TEXT_CHARS_MAX: Final = 160
"""The longest text of an alert."""
QUOTE_CHARS_MAX: Final = 80
"""The most that the text quotes of a worker's words."""
FIELD_CHARS_MAX: Final = 200
"""The most that one field holds of a worker's words."""
_LOOKED_AT_CHARS: Final = 4_000
"""Secrets are taken out before the cut, so that half a key does not look like a word."""


def shown(text: str, most: int = QUOTE_CHARS_MAX) -> str:
    """A worker's words, at most ``most`` characters of them."""
    return cut(redact(one_line(text[:_LOOKED_AT_CHARS], chars_max=None)), most)


def shown_path(path: str) -> str:
    """A file's name as people say it: of an absolute path the end; a long one loses its head."""
    name = one_line(path[-_LOOKED_AT_CHARS:], chars_max=None)
    if name.startswith(("/", "~")) or name[1:3] in {":\\", ":/"}:
        name = "/".join(name.replace("\\", "/").rstrip("/").split("/")[-2:])
    return cut_start(redact(name), QUOTE_CHARS_MAX)
