"""The command ``subagents``: finds the command, runs it, and turns what went wrong into exit codes.

The overview is printed from the table of commands without any parser, so that it starts quickly.
"""

import contextlib
import sys
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from subagents.cli.command_table import (
    below,
    command_of,
    commands,
    current,
    groups,
    is_group,
    is_only_group,
    meant,
    named,
    parents,
    selected,
    target_of,
)
from subagents.cli.ending import reporting
from subagents.cli.flags import WHOLE
from subagents.errors import EXIT_OK, NotFound, UsageError
from subagents.extension import Command
from subagents.text import camel
from subagents.version import __version__

HELP_FLAGS: Final = {"--help", "-h", WHOLE}
COLOR: Final = "--color"
COLUMNS: Final = 80
VIEW_FLAGS: Final = ("--json", "--jq", "--format")
COLORS: Final = ("auto", "always", "never")
COMPLETE: Final = "__complete"
"""The word by which the scripts of ``subagents completion`` call us."""
SPEAKING: Final = {"continue"}
"""Commands whose words are a message, which may have what looks like ``--jq`` or ``--format``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, without the program's name; None = this process's.

    Returns:
        The exit code. What went wrong is on stderr, or with ``--json`` as an error document
        on stdout.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == [COMPLETE]:
        return reporting(lambda: _complete(arguments[1:]), as_json=False)
    as_json = _wants_json(arguments)
    with contextlib.suppress(AttributeError):
        # Without UTF-8 a worker's text is shown escaped, and what is piped in is refused in words.
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        sys.stdin.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    return reporting(lambda: _dispatch(_without_view(_up_to_date(arguments))), as_json=as_json)


def _up_to_date(arguments: list[str]) -> list[str]:
    """The arguments without ``--color``, and with the name that a command has now."""
    words = _without_color(arguments)
    now, said = current(words)
    if said and sys.stderr.isatty():
        from subagents.cli import output  # noqa: PLC0415  the overview needs none of it

        output.note(said)
    return now


def _complete(words: list[str]) -> int:
    from subagents.cli.completion import complete  # noqa: PLC0415

    sys.stdout.write("".join(f"{each}\n" for each in complete(words)))
    return EXIT_OK


def _options(arguments: list[str]) -> list[str]:
    """What stands before ``--``: behind it are words, whatever they look like."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _without_color(arguments: list[str]) -> list[str]:
    """Take ``--color WHEN`` out of the arguments, and obey it.

    Raises:
        UsageError: It is none of the three words.
    """
    options = _options(arguments)
    place = next((i for i, each in enumerate(options) if each.partition("=")[0] == COLOR), None)
    if place is None:
        return arguments
    _, is_one_word, when = options[place].partition("=")
    words = 1 if is_one_word else 2
    when = when if is_one_word else "".join(options[place + 1 : place + 2])
    if when not in COLORS:
        words_allowed = f"{', '.join(COLORS[:-1])} or {COLORS[-1]}"
        raise UsageError(f"{COLOR} must be {words_allowed}, not {when!r}", details={"field": COLOR})
    from subagents.cli import output  # noqa: PLC0415  the overview needs none of it

    output.set_colour(when)
    return [*arguments[:place], *arguments[place + words :]]


def _without_view(arguments: list[str]) -> list[str]:
    """Take ``--json=FIELDS``, ``--jq`` and ``--format`` out of the arguments, and obey them.

    Raises:
        UsageError: A value is missing, or two of the three are given.
    """
    command = arguments[0] if arguments else ""
    if command in SPEAKING or not any(each.startswith(VIEW_FLAGS) for each in arguments):
        return arguments
    from subagents.cli import output, view  # noqa: PLC0415  the overview needs none of it

    # `run docker ps --format X` is a command with a flag of its own: the parser says what to do.
    row = command_of(named(arguments))
    takes_a_command = row is not None and row.spawns
    flags = (view.JSON,) if takes_a_command else view.FLAGS
    kept, wanted = view.taken_from(arguments, flags, is_separable=not takes_a_command)
    if wanted is not None:
        output.set_view(wanted)
    return kept


def _dispatch(arguments: list[str]) -> int:
    """Print the overview, the version or a help topic, or call the command."""
    match arguments:
        case [] | ["help" | "--help" | "-h"]:
            sys.stdout.write(overview())
        case ["help", "all"] | ["--help-all"]:
            sys.stdout.write(overview_of_all())
        case ["--version" | "-V"]:
            sys.stdout.write(f"subagents {__version__}\n")
        case [word, *rest] if (
            (row := command_of(word)) is not None
            and row.reads_itself
            and (not rest or rest[0] not in {*HELP_FLAGS, *below(word)})
        ):
            return target_of(row)(rest) or EXIT_OK
        case [name] | [name, "--help" | "-h" | "--help-all"] | ["help", name] if is_only_group(
            name
        ):
            sys.stdout.write(overview_of(name))
        case ["help", *words]:
            return _help(words)
        case _:
            return _called(arguments)
    return EXIT_OK


def overview() -> str:
    """What one needs in the first week: a line for each command, and for each group of some."""
    from subagents.cli.topics import topics  # noqa: PLC0415  most command lines need none of it

    lines = [
        "Usage: subagents COMMAND [OPTIONS]",
        "",
        "One local service that any agent can call and any agent can work for.",
        *_table(_everyday()),
        "",
        "Examples:",
        "  subagents run 'wc -l README.md'     the result on stdout, the rest on stderr",
        "  subagents demo                      a tour in 15 seconds",
        "",
        "Every command:   subagents help all",
        "About a command: subagents COMMAND --help",
        f"About a topic:   subagents help {' | '.join(topics()[:4])}",
        f"                   | {' | '.join(topics()[4:])}",
        "",
    ]
    return "\n".join(lines)


def overview_of_all() -> str:
    """Every command in one line each."""
    rows = {
        heading: [(each.name, each.summary) for each in members]
        for heading, members in groups().items()
    }
    lines = [
        "Usage: subagents COMMAND [OPTIONS]",
        *_table(rows),
        "",
        "Every command takes --help, and --color auto|always|never; with --json, as well",
        "--json=FIELD,…, --jq EXPRESSION and --format '{field} {other}'.",
        "",
    ]
    return "\n".join(lines)


def _everyday() -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for heading, members in groups().items():
        for each in members:
            word, _, is_below = each.name.partition(" ")
            row = (word, parents()[word] if is_below else each.summary)
            if each.is_everyday and row not in found.setdefault(heading, []):
                found[heading].append(row)
    return {heading: rows for heading, rows in found.items() if rows}


def _table(groups: dict[str, list[tuple[str, str]]]) -> list[str]:
    """Names and what each is for, below their headings."""
    width = max(len(name) for rows in groups.values() for name, _ in rows)
    lines = []
    for heading, rows in groups.items():
        lines += ["", f"{heading}:", *(f"  {name:<{width}}  {text}" for name, text in rows)]
    return lines


def overview_of(parent: str) -> str:
    """The commands below ``config``, ``db``, …"""
    own = [each for each in commands() if each.name == parent]
    alone = f"subagents {parent} [OPTIONS], or " if own else ""
    usage = f"Usage: {alone}subagents {parent} COMMAND [OPTIONS]"
    lines = [usage, "", f"{parents()[parent]}.", ""]
    lines += [line for each in own for line in _text_of(each)]
    lines += [
        f"  {each.name.split()[1]:<13} {each.summary}"
        for each in commands()
        if each.name.startswith(f"{parent} ")
    ]
    return "\n".join([*lines, "", f"Help for a command: subagents {parent} COMMAND --help", ""])


def _text_of(command: Command) -> list[str]:
    """What a command that is a group, too, says of itself."""
    from subagents.cli.help_page import description  # noqa: PLC0415

    return [*description(target_of(command), COLUMNS).splitlines(), ""]


def _help(words: list[str]) -> int:
    from subagents.cli.parser import near  # noqa: PLC0415  the overview needs none of it
    from subagents.cli.topics import text_of, topics  # noqa: PLC0415

    if len(words) == 1 and words[0] in topics():
        sys.stdout.write(text_of(words[0]))
        return EXIT_OK
    words = [*takewhile(lambda word: word[:1] != "-" and word[-1:] != ":", current(words)[0])]
    if (name := named(words)) and len(name.split()) == len(words):
        sys.stdout.write(_page(name, is_whole=False))
        return EXIT_OK
    topic = " ".join(words)
    known = ["all", *topics(), *parents(), *(each.name for each in commands())]
    raise NotFound(
        f"there is no help topic or command {topic!r}{near(topic, known)}",
        hint=f"topics: {', '.join(topics())}; commands: subagents help all",
    )


def _page(name: str, *, is_whole: bool) -> str:
    from subagents.cli.help_page import page  # noqa: PLC0415  only who asks needs it

    return overview_of(name) if is_only_group(name) else page(name, is_whole=is_whole)


def _called(arguments: list[str]) -> int:
    """Find the command, and do what it is called with."""
    _check_text(arguments)
    name = named(arguments)
    row, line = command_of(name), arguments[len(name.split()) :]
    # A word behind a group that is a command, too (`mcp`), was meant to be one of its commands.
    if row is None or (line and not line[0].startswith("-") and is_group(name)):
        raise _unknown(name, line)
    if asked := HELP_FLAGS & {*_options(line)}:
        sys.stdout.write(_page(name, is_whole=WHOLE in asked))
        return EXIT_OK
    from subagents.cli.parser import declared, parse  # noqa: PLC0415  the overview needs none

    try:
        call = parse(target_of(row), line, meant)
    except UsageError as error:
        error.hint = error.hint or f"subagents {name} --help"
        raise
    try:
        return selected(row.name, call)() or EXIT_OK
    except UsageError as error:
        # The daemon calls a field by its name in JSON; whoever typed it knows the flag.
        flags = {camel(each.attribute): each.names for each in declared(target_of(row))}
        names = flags.get(field := str(error.details.get("field")))
        if names and error.message.startswith(f"{field} "):
            error.message = names[0] + error.message.removeprefix(field)
            error.details = {**error.details, "field": names[0]}
        raise


def _check_text(arguments: Sequence[str]) -> None:
    # Bytes that are not UTF-8 come as surrogates, which no request could carry.
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            shown = argument.encode(errors="backslashreplace").decode()[:80]
            raise UsageError(f"not valid UTF-8: {shown}", details={"field": shown}) from error


def _unknown(name: str, line: Sequence[str]) -> UsageError:
    """That there is no such command, below ``name`` or at all."""
    from subagents.cli.parser import near  # noqa: PLC0415  the overview needs none of it

    word = line[0]
    full = f"{name} {word}".strip()
    if said := meant(full):
        raise UsageError(f"there is no command {full!r}", hint=said)
    known = below(name) if name else sorted({each.name.split()[0] for each in commands()})
    return UsageError(
        f"there is no command {f'{name} ' if name else ''}{word!r}{near(word, known)}",
        hint=f"subagents {name} {' | '.join(known)}" if name else "subagents help all",
    )


def _wants_json(arguments: list[str]) -> bool:
    """Whether there is a ``--json``, also on a line that the parser will refuse."""
    return any(each == "--json" or each.startswith("--json=") for each in _options(arguments))


if __name__ == "__main__":
    sys.exit(main())
