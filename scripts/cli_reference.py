"""Every command with its flags, as the parser knows them: docs/reference/cli.md.

Drawn where the site is built (``scripts.docs_site``), and in no commit.
"""

import re
from collections.abc import Iterator
from typing import Final

from scripts.marked_pages import cell, drawn_anew

from subagents.cli.command_table import groups, is_only_group, target_of
from subagents.cli.help_page import description, groups_of, shown, usage
from subagents.cli.topics import text_of, topics
from subagents.extension import Command

PAGE: Final = "docs/reference/cli.md"
BEGIN: Final = "<!-- commands: drawn by `make site` from the parser -->"
END: Final = "<!-- end of commands -->"
WIDTH: Final = 10_000
"""A paragraph is one line: the page breaks it."""


def section(command: Command) -> Iterator[str]:
    """One command: usage, what it does, its flags."""
    arguments = [] if is_only_group(command.name) else shown(command)
    yield f"### {command.name}"
    called = usage(command.name, arguments).removeprefix("Usage: ")
    reads_its_own = " [OPTIONS]" if is_only_group(command.name) else ""
    yield f"```text\n{called}{reads_its_own}\n```"
    yield from paragraphs(description(target_of(command), WIDTH))
    lines: list[str] = []
    for title, rows in groups_of(command.name, arguments).items():
        lines += [f"| **{title}** | |"] if lines else [f"| {title} | |", "|---|---|"]
        lines += [f"| {cell(f'`{label}`')} | {cell(text)} |" for label, text in rows]
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
    for topic in topics():
        title, _, text = text_of(topic).partition("\n")
        parts += [f"### {title}", "```text\n" + text.strip("\n") + "\n```"]
    return drawn_anew(page, BEGIN, END, *parts)
