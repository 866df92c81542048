"""What a shell offers when Tab is pressed: commands, flags, and what the running daemon knows.

The scripts of ``subagents completion`` call this for each Tab. Names of commands are known without
any import. No daemon is started: where none runs, nothing of it is offered.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, get_args

import msgspec

from subagents.cli.command_table import below, commands, named, parents, target_of
from subagents.errors import SubagentsError
from subagents.text import one_line

RUNS_MAX: Final = 200
TIMEOUT_S: Final = 1.0
WORDS_MAX: Final = 40
PLAIN: Final = re.compile(r"[\w.,@/+-]+")
"""What needs no quotes in any shell; nothing else is offered."""
SHELLS: Final = ("bash", "zsh", "fish")
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
    if not name or (name in parents() and name not in {each.name for each in commands()}):
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
    from subagents.cli.help_page import positionals  # noqa: PLC0415

    if name == "completion":
        yield from ((shell, "") for shell in SHELLS)
        return
    function = next(target_of(each) for each in commands() if each.name == name)
    labels = {label for label, _ in positionals(function)}
    if name == "agents show":
        yield from agents()
    elif labels & {"RUN", "RUNS"}:
        yield from runs()


def _declared(name: str) -> Iterator[tuple[tuple[str, ...], object, str, str]]:
    """Names, type, placeholder and text of each flag."""
    from subagents.cli.parser import application  # noqa: PLC0415

    command = application()
    for word in name.split():
        command = command[word]
    for each in command.assemble_argument_collection():
        if each.show:
            yield each.names, each.hint, each.parameter.metavar or "", each.parameter.help or ""


def _flags(name: str) -> Iterator[Offer]:
    for names, _, _, text in _declared(name):
        yield from ((each, text) for each in names if each.startswith("--"))


def _choices(name: str, flag: str) -> list[str] | None:
    """The words that a flag takes; none of them where it takes any; None = it takes no value."""
    from typing import Literal, get_origin  # noqa: PLC0415

    for names, kind, _, _ in _declared(name):
        if flag not in names:
            continue
        kinds = [kind, *get_args(kind)]
        if bool in kinds:
            return None
        return [str(w) for each in kinds if get_origin(each) is Literal for w in get_args(each)]
    return []


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
