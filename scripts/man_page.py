"""Write the manual page from the declaration of the commands: docs/subagents.1, which is installed.

    python -m scripts.man_page [--check]

``--check`` changes nothing and exits with 1 when it is out of date.
"""

import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from subagents.cli import command_table, help_page
from subagents.cli.topics import text_of, topics
from subagents.extension import Command

PAGE: Final = Path("docs/subagents.1")
SECTIONS: Final = {
    "exit-codes": "EXIT STATUS",
    "environment": "ENVIRONMENT",
    "selectors": "SELECTORS",
    "durations": "DURATIONS",
}


def page() -> str:
    """The whole page, as roff."""
    lines = [
        '.TH SUBAGENTS 1 "" subagents "User commands"',
        ".SH NAME",
        "subagents \\- hand tasks to agents and commands, and get checked results back",
        ".SH SYNOPSIS",
        ".B subagents",
        "COMMAND [OPTIONS] [ARGUMENTS]",
        ".SH DESCRIPTION",
        "One local service that any agent can call and any agent can work for. It keeps work",
        "through crashes, reports it as done only when its declared contract has passed, and hands",
        "each result over exactly once. The first command that needs the daemon starts it.",
    ]
    for group, commands in command_table.groups().items():
        lines.append(f".SH {quoted(group.upper())}")
        for command in commands:
            lines += command_of(command)
    for topic, title in SECTIONS.items():
        _, _, text = text_of(topic).partition("\n")
        lines += [
            f".SH {quoted(title)}",
            ".nf",
            *map(escaped, text.strip("\n").splitlines()),
            ".fi",
        ]
    more = ", ".join(f"subagents help {each}" for each in topics() if each not in SECTIONS)
    lines += [
        ".SH FILES",
        ".TP",
        escaped("~/.config/subagents/subagents.toml"),
        "Configuration of the user; see",
        ".B subagents config --origin",
        ".TP",
        escaped("~/.local/state/subagents/"),
        "The database, the workers' files and the daemon's log. All of it is below",
        ".B $SUBAGENTS_HOME",
        "where that is set.",
        ".SH SEE ALSO",
        escaped(f"{more}, subagents COMMAND --help"),
    ]
    return "\n".join(lines) + "\n"


def command_of(command: Command) -> Iterator[str]:
    """One command: its usage, what it does, its options."""
    arguments = [] if command_table.is_only_group(command.name) else help_page.shown(command)
    words = [each.label for each in arguments if not each.names]
    yield f".SS {quoted(' '.join(['subagents', command.name, *words]))}"
    text = inspect.getdoc(command_table.target_of(command)) or command.summary
    described = re.split(r"\n\n(?:For example|Args|Raises|Returns):", text)[0]
    for number, paragraph in enumerate(described.split("\n\n")):
        yield from ([".PP"] if number else [])
        yield escaped(" ".join(paragraph.split()))
    rows = [(help_page.label_of(each), help_page.text_of(each)) for each in arguments if each.help]
    for label, text in (*rows, *help_page.kinds_of(command.name)):
        yield ".TP"
        yield f".B {quoted(label)}"
        yield escaped(text)


def escaped(text: str) -> str:
    """Text as roff prints it: no escapes, no requests, hyphens that can be copied."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


def quoted(text: str) -> str:
    """One argument of a request."""
    return '"' + escaped(text).replace('"', '""') + '"'


def run(arguments: Sequence[str]) -> int:
    """Write the page, or compare it; returns the exit code."""
    new = page()
    old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if "--check" in arguments and new != old:
        sys.stderr.write(f"{PAGE} is out of date: run `make docs`\n")
        return 1
    if new != old:
        PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
