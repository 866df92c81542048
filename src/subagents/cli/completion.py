"""What a shell offers when Tab is pressed: commands, flags, and what the running daemon knows.

The scripts of ``subagents completion`` call this for each Tab. Names of commands are known without
any import. No daemon is started: where none runs, nothing of it is offered.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from subagents.cli.command_table import below, command_of, commands, named, parents
from subagents.errors import SubagentsError
from subagents.text import one_line

if TYPE_CHECKING:
    from subagents.cli.flags import Argument

RUNS_MAX: Final = 200
TIMEOUT_S: Final = 1.0
WORDS_MAX: Final = 40
PLAIN: Final = re.compile(r"[\w.,@/+-]+")
"""What needs no quotes in any shell; nothing else is offered."""
COLOR_FLAG: Final = ("--color", "set when to use colours")
VIEW_FLAGS: Final = (
    ("--json=", "print only these fields"),
    ("--jq", "filter the JSON document"),
    ("--format", "print each row like this: '{runId} {label}'"),
)

Offer: TypeAlias = tuple[str, str]
"""A word and what it is."""


class _Row(msgspec.Struct, rename="camel"):
    run_id: str
    label: str = ""
    run_status: str = ""
    agent_id: str = ""
    tags: list[str] = []


class _Rows(msgspec.Struct):
    runs: list[_Row] = []


class _Agent(msgspec.Struct):
    id: str
    description: str | None = None


class _Agents(msgspec.Struct):
    agents: list[_Agent] = []


def complete(words: Sequence[str]) -> list[str]:
    """What can stand in place of the last word.

    Args:
        words: Those after ``subagents``; the last one is being typed, perhaps empty.

    Returns:
        A line for each: the word, a tab and what it is. Empty: the shell may offer files.
    """
    *before, last = words or [""]
    if "--" in before:
        return []
    offers = {
        word: one_line(text, WORDS_MAX)
        for word, text in _offers([*before], last)
        if word.startswith(last) and PLAIN.fullmatch(word)
    }
    return [f"{word}\t{text}" for word, text in offers.items()]


def _offers(before: list[str], last: str) -> Iterator[Offer]:
    if before[:1] == ["help"]:
        yield from _help_words(before[1:])
        return
    name = named(before)
    if command_of(name) is None:
        yield from _command_words(name, before)
        return
    if name in parents() and len(before) == 1 and not last.startswith("-"):
        yield from _command_words(name, before)
        return
    yield from _arguments(name, before, last)


def _command_words(parent: str, before: Sequence[str]) -> Iterator[Offer]:
    if parent:
        summaries = {each.name: each.summary for each in commands()}
        for word in below(parent) if len(before) == 1 else ():
            yield word, summaries[f"{parent} {word}"]
    elif not before:
        for each in commands():
            word, *inner = each.name.split()
            yield word, parents().get(word, "") if inner else each.summary
        yield "help", "Show help for a command or topic"


def _help_words(before: Sequence[str]) -> Iterator[Offer]:
    from subagents.cli.topics import topics  # noqa: PLC0415

    if not before:
        yield from _command_words("", ())
        yield from ((topic, "topic") for topic in topics())
    elif before[0] in parents():
        yield from _command_words(before[0], before)


def _arguments(name: str, before: Sequence[str], last: str) -> Iterator[Offer]:
    """The values of the flag before, the flags, or what the command takes."""
    before_last = before[-1]
    if before_last == COLOR_FLAG[0]:
        yield from ((word, "") for word in ("auto", "always", "never"))
    elif before_last.startswith("-") and before_last in VALUES_OF:
        yield from VALUES_OF[before_last]()
    elif before_last.startswith("-") and (choices := _choices(name, before_last)) is not None:
        yield from ((word, "") for word in choices)
    elif last.startswith("-"):
        yield from _flags(name)
        yield COLOR_FLAG
        if "--json" in dict(_flags(name)):
            yield from VIEW_FLAGS
        yield "--help", "show this command's help"
    else:
        yield from _values(name)


def _values(name: str) -> Iterator[Offer]:
    words = [each for each in _declared(name) if not each.names]
    yield from ((choice, "") for each in words for choice in each.choices)
    if name == "agents show":
        yield from agents()
    elif {"RUN", "RUNS"} & {each.label for each in words}:
        yield from runs()


def _declared(name: str) -> "list[Argument]":
    from subagents.cli.help_page import shown  # noqa: PLC0415  most completions are of words

    command = command_of(name)
    return [] if command is None else shown(command)


def _flags(name: str) -> Iterator[Offer]:
    for each in _declared(name):
        for flag in (*each.names, each.opposite):
            if flag.startswith("--"):
                yield flag, each.help


def _choices(name: str, flag: str) -> Sequence[str] | None:
    """The words that a flag takes; none of them where it takes any; None = it takes no value."""
    for each in _declared(name):
        if flag in (*each.names, each.opposite):
            return None if each.kind is bool else each.choices
    return ()


def _asked(path: str, query: dict[str, str | int]) -> bytes:
    """An answer of the daemon that runs; an empty object where none does."""
    from subagents.cli.connection import paths, session, worker_socket  # noqa: PLC0415
    from subagents.client.client import Client  # noqa: PLC0415

    try:
        with Client(
            worker_socket() or paths().socket, session=session(), timeout_s=TIMEOUT_S
        ) as client:
            return msgspec.json.encode(client.get(path, query))
    except (SubagentsError, OSError):
        return b"{}"


def _rows() -> list[_Row]:
    return msgspec.json.decode(
        _asked("/v1/runs", {"archived": 1, "limit": RUNS_MAX}), type=_Rows
    ).runs


def runs() -> Iterator[Offer]:
    """Labels and ids of the newest runs."""
    found = _rows()
    if found:
        yield "last", "the newest run of your session"
    for each in found:
        yield each.label, f"{each.run_status} ({each.agent_id})"
    for each in found:
        yield each.run_id, f"{each.label} {each.run_status}"


def labels() -> Iterator[Offer]:
    """Labels of the newest runs."""
    yield from ((each.label, each.run_status) for each in _rows())


def tags() -> Iterator[Offer]:
    """Tags of the newest runs."""
    yield from ((tag, "") for each in _rows() for tag in each.tags)


def agents() -> Iterator[Offer]:
    """The agents configured for this directory."""
    try:
        answer = _asked("/v1/agents", {"cwd": os.getcwd()})  # noqa: PTH109  may be gone: OSError
    except OSError:
        return
    for each in msgspec.json.decode(answer, type=_Agents).agents:
        yield each.id, each.description or ""


VALUES_OF: Final[dict[str, Callable[[], Iterator[Offer]]]] = {
    "--agent": agents,
    "-a": agents,
    "--judge": agents,
    "--probe": agents,
    "--after": runs,
    "--label": labels,
    "-l": labels,
    "--tag": tags,
}
