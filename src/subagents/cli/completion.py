"""What a shell offers when Tab is pressed: commands, flags, and what the running daemon knows.

The scripts that ``subagents completion`` prints call ``complete`` for each Tab. Names of commands
are known without any import. No daemon is started: where none runs, nothing of it is offered.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias

from subagents.cli.command_table import below, command_of, commands, named, parents
from subagents.cli.flags import Annotated, Argument, Parameter
from subagents.errors import SubagentsError
from subagents.text import one_line

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


BASH: Final = r"""# bash completion for subagents
_subagents() {
    local IFS=$'\n' words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    COMPREPLY=($("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null | cut -f1))
}
complete -o default -F _subagents subagents
"""
ZSH: Final = r"""#compdef subagents
# zsh completion for subagents
_subagents() {
    local line
    local -a found
    for line in ${(f)"$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
        found+=("${line%%$'\t'*}:${line#*$'\t'}")
    done
    if (( $#found )); then _describe subagents found; else _files; fi
}
if [ "$funcstack[1]" = "_subagents" ]; then _subagents; else compdef _subagents subagents; fi
"""
FISH: Final = r"""# fish completion for subagents
function __subagents_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] __complete $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c subagents -f -a '(__subagents_complete)'
"""
SCRIPTS: Final = {"bash": BASH, "zsh": ZSH, "fish": FISH}
LOADED_BY: Final = {
    "bash": 'eval "$(subagents completion bash)"    in ~/.bashrc',
    "zsh": 'eval "$(subagents completion zsh)"     in ~/.zshrc, after compinit',
    "fish": "subagents completion fish | source     in ~/.config/fish/config.fish",
}


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="bash, zsh or fish.")], /
) -> None:
    """Print a script that completes commands, flags, runs, agents and tags. Changes no file.

    Runs, agents and tags come from the daemon if it is running; none is started for them.

    For example:

        eval "$(subagents completion bash)"    # add this to ~/.bashrc

        eval "$(subagents completion zsh)"     # to ~/.zshrc, after compinit

        subagents completion fish | source     # to ~/.config/fish/config.fish
    """
    sys.stdout.write(SCRIPTS[shell])
    if sys.stdout.isatty():
        sys.stderr.write(f"\nTo load it in every shell: {LOADED_BY[shell]}\n")


def complete(words: Sequence[str]) -> list[str]:
    """What can stand in place of the last word after ``subagents``, which is being typed.

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
    begins_others = name in parents() and len(before) == 1 and not last.startswith("-")
    if command_of(name) is None or begins_others:
        yield from _command_words(name, before)
    else:
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
        yield "all", "every command"
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


def _declared(name: str) -> list[Argument]:
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


def _asked(path: str, query: dict[str, str | int]) -> Any:
    """An answer of the daemon that runs; without any field where none does."""
    from subagents.cli.connection import paths, session, worker_socket  # noqa: PLC0415
    from subagents.cli.reading import Answer  # noqa: PLC0415
    from subagents.client.client import Client  # noqa: PLC0415

    socket = worker_socket() or paths().socket
    try:
        # Not by ``connect``, which starts a daemon: Tab only looks.
        with Client(socket, session=session(), timeout_s=TIMEOUT_S) as client:
            return Answer(client.get(path, query))
    except (SubagentsError, OSError):
        return Answer({})


def _rows() -> list[Any]:
    return _asked("/v1/runs", {"archived": 1, "limit": RUNS_MAX}).runs or []


def runs() -> Iterator[Offer]:
    """Labels and ids of the newest runs."""
    found = _rows()
    if found:
        yield "last", "the newest run of your session"
    for each in found:
        yield each.label or "", f"{each.run_status or ''} ({each.agent_id or ''})"
    for each in found:
        yield each.run_id, f"{each.label or ''} {each.run_status or ''}"


def labels() -> Iterator[Offer]:
    """Labels of the newest runs."""
    yield from ((each.label or "", each.run_status or "") for each in _rows())


def tags() -> Iterator[Offer]:
    """Tags of the newest runs."""
    yield from ((tag, "") for each in _rows() for tag in each.tags or ())


def agents() -> Iterator[Offer]:
    """The agents configured for this directory."""
    try:
        cwd = os.getcwd()  # noqa: PTH109
    except OSError:  # it was deleted
        return
    for each in _asked("/v1/agents", {"cwd": cwd}).agents or ():
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
