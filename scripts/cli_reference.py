"""Every command with its flags, as the parser knows them: docs/reference/cli.md.

Drawn where the site is built (``scripts.docs_site``), and in no commit.
"""

import contextlib
import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from scripts.marked_pages import cell, drawn_anew

from subagents.cli.command_table import groups, parents, target_of
from subagents.cli.help_page import HelpPage, description, positionals
from subagents.cli.parser import application
from subagents.cli.topics import TOPICS, text_of
from subagents.extension import Command

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

PAGE: Final = "docs/reference/cli.md"
BEGIN: Final = "<!-- commands: drawn by `make site` from the parser -->"
END: Final = "<!-- end of commands -->"
WIDTH: Final = 10_000
"""A paragraph is one line: the page breaks it."""


class Collected(HelpPage):
    """Keeps what the parser says of a command's flags, instead of printing it."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[tuple[str, list[tuple[str, str]]]] = []

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        """One group of flags."""
        del console, options
        self.groups.append(self.group(panel))

    def render_description(
        self, console: "Console", _options: "ConsoleOptions", _description: Any
    ) -> None:
        """It is read from the function."""


def groups_of(command: Command) -> list[tuple[str, list[tuple[str, str]]]]:
    """The groups of a command's ``--help``, each with its flags and their texts."""
    if command.name in parents():
        return []  # read without the parser: it has no flags
    page = Collected()
    with contextlib.redirect_stdout(io.StringIO()):
        application(page)([*command.name.split(), "--help"])
    return [(title, rows) for title, rows in page.groups if rows]


def section(command: Command) -> Iterator[str]:
    """One command: usage, what it does, its flags."""
    function, groups = target_of(command), groups_of(command)
    is_read_by_parser = command.name not in parents()
    words = [shown for _, shown in positionals(function)] if is_read_by_parser else []
    has_options = not is_read_by_parser or any(
        label.startswith("-") for _, rows in groups for label, _ in rows
    )
    yield f"### {command.name}"
    usage = ["subagents", command.name, *(["[OPTIONS]"] if has_options else []), *words]
    yield "\n".join(["```text", " ".join(usage), "```"])
    yield from paragraphs(description(function, WIDTH))
    lines: list[str] = []
    for title, rows in groups:
        known = [(label, text) for label, text in rows if label not in ("--help, -h", "-h, --help")]
        if known:
            lines += [f"| **{title}** | |"] if lines else [f"| {title} | |", "|---|---|"]
            lines += [f"| {cell(f'`{label}`')} | {cell(text)} |" for label, text in known]
    if lines:
        yield "\n".join(lines)


def paragraphs(text: str) -> Iterator[str]:
    """As Markdown: what is indented, as examples are, in one block of code."""
    for is_code, part in _parts(text):
        yield f"```shell\n{part}\n```" if is_code else re.sub(r"<([a-z])", r"\\<\1", part)


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    code: list[str] = []
    for each in text.split("\n\n"):
        if each.startswith("  "):
            code += [re.sub(r"^ {4}", "", line) for line in each.splitlines()]
            continue
        if code:
            yield True, "\n".join(code)
            code = []
        yield False, each
    if code:
        yield True, "\n".join(code)


def drawn(page: str) -> str:
    """``page`` with the commands and topics of today."""
    parts: list[str] = []
    for group, commands in groups().items():
        parts.append(f"## {group}")
        for command in commands:
            parts += section(command)
    parts.append("## Help topics")
    for topic in TOPICS:
        title, _, text = text_of(topic).partition("\n")
        parts += [f"### {title}", "```text\n" + text.strip("\n") + "\n```"]
    return drawn_anew(page, BEGIN, END, *parts)
