"""The errors and the journal's events, from their classes: docs/reference/errors.md and journal.md.

    python -m scripts.code_tables [--check]    the errors

The events are drawn where the site is built (``scripts.docs_site``), and in no commit.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from scripts.marked_pages import cell, drawn_anew, update

from subagents.api.calls.call import status_of
from subagents.api.server.openapi import field_docs
from subagents.domain.run.events import EVENT_TYPES
from subagents.errors import SubagentsError

ERRORS: Final = "docs/reference/errors.md"
ERRORS_BEGIN: Final = "<!-- errors: written by `make docs` from src/subagents/errors.py -->"
ERRORS_END: Final = "<!-- end of errors -->"
JOURNAL: Final = "docs/reference/journal.md"
JOURNAL_BEGIN: Final = (
    "<!-- events: drawn by `make site` from src/subagents/domain/run/events.py -->"
)
JOURNAL_END: Final = "<!-- end of events -->"


def errors(page: str) -> str:
    """``page`` with a row for each class of error."""
    lines = ["| code | class | HTTP | exit code | again? | meaning |", "|---|---|---|---|---|---|"]
    for each in _kinds(SubagentsError):
        bare = each.__new__(each)
        again = "yes" if each.retryable else ""
        codes = f"{status_of(bare)} | {each.exit_code} | {again}"
        lines.append(f"| `{each.code}` | `{each.__name__}` | {codes} | {_meaning(each)} |")
    return drawn_anew(page, ERRORS_BEGIN, ERRORS_END, "\n".join(lines))


def journal(page: str) -> str:
    """``page`` with a section for each event."""
    parts: list[str] = []
    for each in EVENT_TYPES:
        parts += [f"### {each.__name__}", _meaning(each, escaped=False)]
        rows = list(_fields(each))
        if rows:
            parts.append("\n".join(["| field | type | |", "|---|---|---|", *rows]))
    return drawn_anew(page, JOURNAL_BEGIN, JOURNAL_END, *parts)


def _kinds(kind: type[SubagentsError]) -> Iterator[type[SubagentsError]]:
    """The public ones, in the order of the code."""
    for each in kind.__subclasses__():
        if each.__module__ == kind.__module__:
            yield each
            yield from _kinds(each)


def _meaning(kind: type, *, escaped: bool = True) -> str:
    first = (inspect.getdoc(kind) or "").split("\n\n")[0].replace("``", "`")
    return cell(first) if escaped else " ".join(first.split())


def _fields(kind: type[msgspec.Struct]) -> Iterator[str]:
    texts = field_docs(kind)
    for field in msgspec.structs.fields(kind):
        if field.name != "at_ms":
            text = texts.get(field.encode_name, "").replace("``", "`")
            yield f"| `{field.encode_name}` | {cell(_type(field.type))} | {cell(text)} |"


def _type(found: Any) -> str:
    shown = found.__name__ if isinstance(found, type) else str(found)
    bare = re.sub(r"\b(?:[a-z_]+\.)+", "", shown)
    bare = re.sub(r"\bOptional\[(\w+)\]", r"\1 | None", bare)
    return "`" + bare.replace("NoneType", "None") + "`"


if __name__ == "__main__":
    sys.exit(update(sys.argv[1:], ERRORS, errors))
