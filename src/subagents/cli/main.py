"""The command ``subagents``: finds the command, runs it, and turns what went wrong into exit codes.

The overview is printed from the table of commands without any parser, so that it starts quickly.
"""

import contextlib
import re
import sys
from collections.abc import Sequence
from typing import Final

from subagents.cli.command_table import (
    ALIASES,
    BEFORE_PARSER,
    below,
    commands,
    groups,
    is_only_group,
    named,
    parents,
    spawns,
    target_of,
)
from subagents.cli.ending import reporting
from subagents.errors import (
    EXIT_OK,
    NotFound,
    UsageError,
)
from subagents.extension import Command
from subagents.version import __version__

HELP_FLAGS: Final = {"--help", "-h"}
COLOR: Final = "--color"
COLUMNS: Final = 80
VIEW_FLAGS: Final = ("--json", "--jq", "--format")
COLORS: Final = ("auto", "always", "never")
COMPLETE: Final = "__complete"
"""What the scripts of ``subagents completion`` call; nobody types it."""
MAP: Final = "map"
SPEAKING: Final = {"continue"}
"""Commands whose message can be ``-``: stdin."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Without the program's name; None = this process's.

    Returns:
        The exit code. What went wrong was said on stderr, or with ``--json`` as an error document
        on stdout.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == [COMPLETE]:
        return reporting(lambda: _complete(arguments[1:]), as_json=False)
    as_json = _wants_json(arguments)
    with contextlib.suppress(AttributeError):
        # A worker's text in a terminal without UTF-8 is shown escaped, not refused.
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    return reporting(lambda: _dispatch(_without_view(_without_color(arguments))), as_json=as_json)


def _complete(words: list[str]) -> int:
    from subagents.cli.completion import complete  # noqa: PLC0415

    sys.stdout.write("".join(f"{each}\n" for each in complete(words)))
    return EXIT_OK


def _dispatch(arguments: list[str]) -> int:
    simple = _without_parser(arguments)
    if simple is not None:
        return simple
    arguments = [ALIASES.get(arguments[0], arguments[0]), *arguments[1:]]
    from subagents.cli.quick_start import command_of  # noqa: PLC0415  the overview needs none of it

    command = command_of(arguments)
    return _parsed(arguments) if command is None else command()


def _without_color(arguments: list[str]) -> list[str]:
    """Take ``--color WHEN`` out of the arguments before ``--``, and obey it.

    Raises:
        UsageError: It is none of the three words.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, rest = arguments[:end], arguments[end:]
    place = next((i for i, each in enumerate(options) if each.partition("=")[0] == COLOR), None)
    if place is None:
        return arguments
    _, is_one_word, when = options[place].partition("=")
    words = 1 if is_one_word else 2
    when = when if is_one_word else "".join(options[place + 1 : place + 2])
    if when not in COLORS:
        raise UsageError(
            f"{COLOR} must be {', '.join(COLORS[:-1])} or {COLORS[-1]}, not {when!r}",
            details={"field": COLOR},
        )
    from subagents.cli import output  # noqa: PLC0415  the overview needs none of it

    output.set_colour(when)
    return [*options[:place], *options[place + words :], *rest]


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
    takes_a_command = spawns(arguments)
    flags = (view.JSON,) if takes_a_command else view.FLAGS
    kept, wanted = view.taken_from(arguments, flags, is_separable=not takes_a_command)
    if wanted is not None:
        output.set_view(wanted)
    return kept


def _without_parser(arguments: list[str]) -> int | None:
    """The overview, the version and the help topics; None for everything else."""
    match arguments:
        case [] | ["help"]:
            sys.stdout.write(overview())
        case [flag] if flag in HELP_FLAGS:
            sys.stdout.write(overview())
        case ["--version" | "-V"]:
            sys.stdout.write(f"subagents {__version__}\n")
        case [word, *rest] if word == BEFORE_PARSER and (
            not rest or rest[0] not in {*HELP_FLAGS, *below(word)}
        ):
            from subagents.cli.bridge.mcp_front import serve  # noqa: PLC0415

            return serve(rest)
        case [parent] if is_only_group(parent):
            sys.stdout.write(overview_of(parent))
        case [parent, flag] if is_only_group(parent) and flag in HELP_FLAGS:
            sys.stdout.write(overview_of(parent))
        case ["help", parent] if is_only_group(parent):
            sys.stdout.write(overview_of(parent))
        case ["help", *words]:
            return _help(words)
        case _:
            return None
    return EXIT_OK


def overview() -> str:
    """Every command in one line each."""
    lines = [
        "Usage: subagents COMMAND [OPTIONS]",
        "",
        "One local service that any agent can call and any agent can work for.",
    ]
    width = max(len(each.name) for members in groups().values() for each in members)
    for group, members in groups().items():
        lines += ["", f"{group}:"]
        lines += [f"  {each.name:<{width}}  {each.summary}" for each in members]
    from subagents.cli.topics import topics  # noqa: PLC0415

    lines += [
        "",
        "Examples:",
        "  subagents run 'wc -l README.md'     the result on stdout, the rest on stderr",
        "  subagents demo                      a tour in 15 seconds",
        "",
        "Every command takes --help, and --color auto|always|never; with --json, as well",
        "--json=FIELD,…, --jq EXPRESSION and --format '{field} {other}'.",
        f"Help topics (subagents help TOPIC): {', '.join(topics()[:4])},",
        f"  {', '.join(topics()[4:])}",
        "",
    ]
    return "\n".join(lines)


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
    from subagents.cli.topics import text_of, topics  # noqa: PLC0415

    if len(words) == 1 and words[0] in topics():
        sys.stdout.write(text_of(words[0]))
        return EXIT_OK
    if (name := named(words)) and len(name.split()) == len(words):
        return _parsed([*name.split(), "--help"])
    topic = " ".join(words)
    known = [*topics(), *parents(), *(each.name for each in commands())]
    raise NotFound(
        f"there is no help topic or command {topic!r}{_guess(topic, known)}",
        hint=f"topics: {', '.join(topics())}; commands: subagents --help",
    )


def _parsed(arguments: list[str]) -> int:
    """Let Cyclopts find the command and read its flags."""
    _check_text(arguments)
    _check_command(arguments)
    if spawns(arguments):
        arguments = spawn_arguments(arguments)
    elif arguments[0] in SPEAKING and "--" not in arguments and "-" in arguments[1:]:
        # The parser takes it for an option.
        words = [word for word in arguments if word != "-"]
        arguments = [*words, "--", "-"]
    from cyclopts import CycloptsError  # noqa: PLC0415  70 ms

    from subagents.cli.parser import application  # noqa: PLC0415

    try:
        code = application()(arguments)
    except CycloptsError as error:
        raise UsageError(_message(error), hint=_help_command(arguments)) from error
    return code if isinstance(code, int) else EXIT_OK


def _check_text(arguments: Sequence[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            shown = argument.encode(errors="backslashreplace").decode()[:80]
            raise UsageError(f"not valid UTF-8: {shown}", details={"field": shown}) from error


def _check_command(arguments: Sequence[str]) -> None:
    """Refuse an unknown command here: the parser would import every command to do so."""
    word, *rest = arguments
    names = sorted({each.name.split()[0] for each in commands()})
    if word not in names:
        raise UsageError(
            f"there is no command {word!r}{_guess(word, names)}", hint="subagents --help"
        )
    if word in parents() and rest and not rest[0].startswith("-"):
        inner = below(word)
        if rest[0] not in inner:
            raise UsageError(
                f"there is no command {word} {rest[0]!r}{_guess(rest[0], inner)}",
                hint=f"subagents {word} {' | '.join(inner)}",
            )


def _guess(word: str, known: Sequence[str]) -> str:
    import difflib  # noqa: PLC0415

    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def spawn_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command that takes ``SpawnFlags``, as the parser takes them.

    The contract flags, whose order counts, become one option; ``-`` for stdin goes behind the
    ``--`` where it is not taken for an option.

    Raises:
        UsageError: A contract flag is wrong; it is named.
    """
    from msgspec import json  # noqa: PLC0415

    from subagents.cli.runs import contract_flags  # noqa: PLC0415

    rest, artifacts = contract_flags.extract(arguments)
    end = rest.index("--") if "--" in rest else len(rest)
    length = len(named(rest).split())
    name, options, words = rest[:length], rest[length:end], rest[end + 1 :]
    # A flag's value may be `-`, too (`--tag -`), but never the task's only word after others.
    if name == [MAP]:  # whose task is never stdin
        pass
    elif options[-1:] == ["-"] and not words:
        options, words = options[:-1], ["-"]
    elif options[:1] == ["-"] and not words:
        options, words = options[1:], ["-"]
    if artifacts:
        options = ["--contract-flags", json.encode(artifacts).decode(), *options]
    tail = ["--", *words] if words or end < len(rest) else []
    return [*name, *options, *tail]


_NOT_CONVERTED: Final = (
    r'Invalid value for (?P<flag>\S+): unable to convert (?P<value>".*") into (?P<kind>int|float)\.'
)
_NO_ARGUMENT: Final = r'Command ".+" parameter (?P<flag>-\S+) requires an argument\.'


def _message(error: Exception) -> str:
    """The parser's message without its markup of several lines, and without words of Python."""
    text = " ".join(str(error).split()) or type(error).__name__
    if (found := re.fullmatch(_NOT_CONVERTED, text)) is not None:
        kind = "a whole number" if found["kind"] == "int" else "a number"
        return f"{found['flag']} must be {kind}, not {found['value']}"
    if (found := re.fullmatch(_NO_ARGUMENT, text)) is not None:
        return f"{found['flag']} needs a value"
    return text


def _help_command(arguments: Sequence[str]) -> str:
    words = [word for word in arguments[:2] if not word.startswith("-")]
    name = named(words)
    return f"subagents {name} --help" if name else "subagents --help"


def _wants_json(arguments: Sequence[str]) -> bool:
    """Whether ``--json`` stands before any ``--``; asked before the arguments are parsed."""
    for argument in arguments:
        if argument == "--":
            return False
        if argument == "--json" or argument.startswith("--json="):
            return True
    return False


if __name__ == "__main__":
    sys.exit(main())
