"""How ``--help`` of a command looks: usage, text, and the flags by group, as wide as the terminal.

The parser brings the flags and their texts; usage and description are read from the command's
function, since the parser's own name no arguments and keep the line breaks of the source.
"""

import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from cyclopts import Parameter

from subagents.cli.command_table import commands, named, target_of

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

WIDTH_MAX: Final = 100
"""Longer lines are hard to read, however wide the terminal."""
LABEL_MAX: Final = 30
"""A longer label has its text on the next line."""
CHOICES_MAX: Final = 24
"""As long as this, the choices stand in the label."""
TITLES: Final = {"Parameters": "Options"}
PLACEHOLDERS: Final = {"STR": "TEXT", "INT": "N", "FLOAT": "N", "PATH": "FILE"}


class HelpPage:
    """What Cyclopts calls with the parts of a page."""

    def __init__(self) -> None:
        self._function: Callable[..., int] | None = None

    def render_usage(self, console: "Console", _options: "ConsoleOptions", usage: Any) -> None:
        """The line that says how to call it."""
        words = str(usage).replace("Usage:", "").split()
        name = named(words[1:3])
        self._function = next((target_of(each) for each in commands() if each.name == name), None)
        if self._function is None:
            _write(console, f"Usage: {' '.join(words)}")
            return
        arguments = " ".join(text for _, text in positionals(self._function))
        options = "[OPTIONS] " if "[OPTIONS]" in words else ""
        _write(console, f"Usage: subagents {name} {options}{arguments}".rstrip())

    def render_description(
        self, console: "Console", _options: "ConsoleOptions", _description: Any
    ) -> None:
        """The docstring, filled anew; indented lines stay as they are."""
        if self._function is not None:
            _write(console, "")
            _write(console, description(self._function, _width(console)))

    def __call__(
        self,
        console: "Console",
        options: "ConsoleOptions",  # noqa: ARG002  the parser's protocol names it
        panel: "HelpPanel",
    ) -> None:
        """One group of flags."""
        title, rows = self.group(panel)
        if not rows:
            return
        _write(console, "")
        _write(console, f"{title}:")
        width = min(LABEL_MAX, max(len(label) for label, _ in rows))
        for line in _columns(rows, width, _width(console)):
            _write(console, line)

    def group(self, panel: "HelpPanel") -> tuple[str, list[tuple[str, str]]]:
        """The title of a group of flags, and each flag with its text."""
        rows = [(self._label(each), _text(each)) for each in panel.entries]
        return TITLES.get(str(panel.title), str(panel.title)), rows

    def _label(self, entry: "HelpEntry") -> str:
        if entry.positional_label and self._function is not None:
            labels = dict(positionals(self._function))
            label = labels.get(entry.positional_label, entry.positional_label)
            return label.strip("[]")
        names = ", ".join((*entry.shorts, *entry.names))
        if not entry.metavar:
            return names
        choices = "|".join(entry.choices or ())
        if choices and len(choices) <= CHOICES_MAX:
            return f"{names} {choices}"
        return f"{names} {PLACEHOLDERS.get(entry.metavar, entry.metavar)}"


def positionals(function: Callable[..., int]) -> Iterator[tuple[str, str]]:
    """The arguments of a command: what the parser calls each, and how usage shows it.

    A placeholder given to several words (``*runs``) is shown as it is: it says whether one is
    needed, and how many may come.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    for each in inspect.signature(function).parameters.values():
        if each.kind is inspect.Parameter.KEYWORD_ONLY:
            continue
        declared = getattr(hints[each.name], "__metadata__", ())
        metavar = next((m.metavar for m in declared if isinstance(m, Parameter) and m.metavar), "")
        label = each.name.strip("_").upper()
        if each.kind is inspect.Parameter.VAR_POSITIONAL:
            yield label, metavar or f"{label}..."
        else:
            shown = metavar or label
            yield label, shown if each.default is inspect.Parameter.empty else f"[{shown}]"


def description(function: Callable[..., int], width: int) -> str:
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


def _text(entry: "HelpEntry") -> str:
    found = entry.description
    text = re.sub(r"\s+", " ", getattr(found, "plain", None) or _plain(found))
    choices = "|".join(entry.choices or ())
    if len(choices) > CHOICES_MAX:
        text = f"{text} One of: {', '.join(entry.choices or ())}."
    return text


def _plain(found: Any) -> str:
    """The text of what the parser made of a description."""
    primary = getattr(found, "primary_renderable", found)
    return str(primary or "")


def _width(console: "Console") -> int:
    return min(console.width, WIDTH_MAX)


def _write(console: "Console", text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
