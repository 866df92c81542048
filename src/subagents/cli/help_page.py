"""How ``--help`` of a command looks: usage, text, and the flags by group."""

import inspect
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from subagents.cli.command_table import below, command_of, commands, is_group, selectors, target_of
from subagents.cli.flags import OPTIONS, WHOLE, Argument
from subagents.cli.parser import declared
from subagents.extension import Command, loaded

WIDTH_MAX: Final = 100
"""Longer lines are hard to read, however wide the terminal."""
LABEL_MAX: Final = 30
"""A longer label has its text on the next line."""
CHOICES_MAX: Final = 24
"""The longest choices that stand in the label."""
ARGUMENTS: Final = "Arguments"
PLACEHOLDERS: Final[dict[Any, str]] = {str: "TEXT", int: "N", float: "N", Path: "FILE"}

Rows = list[tuple[str, str]]
"""Each flag or word with its text."""


def page(name: str, *, is_whole: bool) -> str:
    """The page of a command; the whole of it has the flags that are rarely needed, too."""
    command = command_of(name)
    assert command is not None  # noqa: S101  who asks has found it
    width = min(shutil.get_terminal_size().columns, WIDTH_MAX)
    function, every = target_of(command), shown(command)
    arguments = [each for each in every if is_whole or each.is_everyday]
    lines = [usage(name, arguments), "", description(function, width)]
    for title, rows in groups_of(name, arguments).items():
        label = min(LABEL_MAX, max(len(each) for each, _ in rows))
        lines += ["", f"{title}:", *_columns(rows, label, width)]
    if more := len(every) - len(arguments):
        lines += ["", f"{more} more options: subagents {name} {WHOLE}"]
    return "\n".join([*lines, ""])


def shown(command: Command) -> list[Argument]:
    """The flags and words of a command that help shows."""
    return [each for each in declared(target_of(command)) if each.is_shown]


def usage(name: str, arguments: Sequence[Argument]) -> str:
    """The line that says how to call it."""
    options = ["[OPTIONS]"] if any(each.names for each in arguments) else []
    words = [placeholder(each) for each in arguments if not each.names]
    return " ".join(["Usage: subagents", name, *options, *words])


def groups_of(name: str, arguments: Sequence[Argument]) -> dict[str, Rows]:
    """The flags and words by their heading, in the order of the page."""
    found: dict[str, Rows] = {ARGUMENTS: [], "Commands": [], OPTIONS: []}
    if is_group(name):
        summaries = {each.name: each.summary for each in commands()}
        found["Commands"] = [(word, summaries[f"{name} {word}"]) for word in below(name)]
    for each in arguments:
        found.setdefault(each.group if each.names else ARGUMENTS, []).append(
            (label_of(each), text_of(each))
        )
    found[ARGUMENTS] += kinds_of(name)
    return {title: rows for title, rows in found.items() if rows}


def kinds_of(name: str) -> Rows:
    """What the one word of a command may name of an extension's, and what is done then."""
    kinds = [(*key.partition(" "), target) for key, target in selectors().items()]
    return [
        (f"{kind}NAME", (inspect.getdoc(loaded(target)) or "").partition("\n")[0])
        for of, _, kind, target in kinds
        if of == name
    ]


def placeholder(word: Argument) -> str:
    """A word as usage shows it.

    One given to several words (``*runs``) is shown as it is: it says whether one is needed, and
    how many may come.
    """
    metavar = word.metavar or word.label
    if word.is_list:
        return word.metavar or f"{metavar}..."
    return metavar if word.is_required else f"[{metavar}]"


def label_of(argument: Argument) -> str:
    """A flag as it is typed, with what stands for its value; a word as messages call it."""
    if not argument.names:
        return placeholder(argument).strip("[]")
    # Short ones first, as everywhere, whichever of them messages use.
    short = [each for each in argument.names if not each.startswith("--")]
    names = [*short, *(each for each in argument.names if each not in short), argument.opposite]
    value = value_of(argument)
    return ", ".join(filter(None, names)) + (f" {value}" if value else "")


def value_of(flag: Argument) -> str:
    """What stands for the value of a flag; empty = it takes none."""
    choices = "|".join(flag.choices)
    if choices and len(choices) <= CHOICES_MAX:
        return choices
    if flag.kind is bool:
        return ""
    return flag.metavar or ("CHOICE" if choices else PLACEHOLDERS.get(flag.kind, "TEXT"))


def text_of(argument: Argument) -> str:
    """What help says of it."""
    if len("|".join(argument.choices)) <= CHOICES_MAX:
        return argument.help
    return f"{argument.help} One of: {', '.join(argument.choices)}."


def description(function: Callable[..., object], width: int) -> str:
    """The docstring at ``width`` columns; what it says of arguments is in the panels."""
    text = (inspect.getdoc(function) or "").partition("\n\nArgs:")[0].replace("``", "`")
    return "\n\n".join(filled(paragraph, width) for paragraph in text.split("\n\n"))


def filled(paragraph: str, width: int) -> str:
    """A paragraph at ``width`` columns; one of indented lines, as examples are, unchanged."""
    if paragraph.startswith("  "):
        return paragraph
    return textwrap.fill(
        " ".join(paragraph.split()), width, break_on_hyphens=False, break_long_words=False
    )


def _columns(rows: list[tuple[str, str]], width: int, page: int) -> Iterator[str]:
    for label, text in rows:
        room = page - width - 4
        first, *rest = filled(text, room).splitlines() or [""]
        if len(label) > width:
            yield f"  {label}"
            yield f"  {'':{width}}  {first}"
        else:
            yield f"  {label:{width}}  {first}".rstrip()
        yield from (f"  {'':{width}}  {line}" for line in rest)
