"""Every command in one line, with the function that does it.

The functions are named by import strings and imported when they are called, so that ``--help`` and
``status`` start quickly.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Final

from subagents import extension
from subagents.extension import Command, everyday

CORE: Final = {
    "Hand over work": (
        everyday(
            "run",
            "runs.submission:run",
            "Run a task, wait for it and print its result",
            spawns=True,
        ),
        everyday("spawn", "runs.submission:spawn", "Start a run and print its id", spawns=True),
    ),
    "See what happens": (
        everyday("list", "show.run_list:list_", "List runs, newest first; -w watches them"),
        everyday("show", "show.show_commands:show", "Show everything about a run"),
        everyday("log", "show.log_command:log", "Show what a worker said and did"),
        everyday("why", "show.show_commands:why", "Explain why a run is in its current state"),
        Command("result", "show.show_commands:result", "Print the full result of a run"),
        Command("events", "show.events_command:events", "Stream the events of all runs"),
        Command("stats", "show.report_commands:stats", "Count runs, time, tokens and cost"),
    ),
    "Take part": (
        everyday("wait", "runs.receiving:wait", "Wait for runs and print their results"),
        everyday("answer", "runs.control_commands:answer", "Answer a worker's question"),
        everyday("cancel", "runs.control_commands:cancel", "Cancel runs and their children"),
        everyday("retry", "runs.control_commands:retry", "Start a run again"),
        Command("inbox", "runs.inbox_command:inbox", "Show messages and what needs a person"),
        Command("continue", "runs.session_commands:continue_", "Go on with a run's session"),
        Command("steer", "runs.control_commands:steer", "Send a message to a live worker"),
        Command("pause", "runs.control_commands:pause", "Pause runs"),
        Command("resume", "runs.control_commands:resume", "Resume paused runs"),
        Command("prioritize", "runs.control_commands:prioritize", "Change a run's priority"),
    ),
    "Set up": (
        Command("agents", "setup.agent_commands:agents", "List, show or suggest agents"),
        Command("config", "setup.config_commands:config", "Show, check or trust configuration"),
        Command("completion", "completion:completion", "Print shell completions"),
    ),
    "Keep it running": (
        Command("up", "setup.daemon_commands:up", "Start the daemon in the background"),
        Command("down", "setup.daemon_commands:down", "Stop the daemon; workers keep running"),
        Command("serve", "serving:serve", "Run the daemon in the foreground"),
    ),
    "Called by agent programs": (),
    "Called by workers": (
        Command("report", "workers.worker_commands:report", "Report that the task is complete"),
        Command("progress", "workers.worker_commands:progress", "Report progress"),
        Command("notify", "workers.worker_commands:notify", "Send a message to the requester"),
        Command("ask", "workers.worker_commands:ask", "Ask the requester and wait for the answer"),
        Command("worker", "workers.worker_commands:worker", "Run a Python function as a worker"),
    ),
}
"""The core's, by their heading in the overview; their functions are below ``subagents.cli``. Of a
heading without any all rows are extensions'."""
ALIASES: Final = {"logs": "log", "ls": "list", "ps": "list"}
"""Words that people type who know docker, kubectl or a shell."""
MEANT: Final = {
    "-n": "--limit N",
    "-o": "--json",
    "--background": "--detach, or: subagents spawn",
    "--budget": "--max-cost, --max-tokens or --max-time",
    "--failed": "--state failed",
    "--format": "--json, or --format '{label}' with names in braces",
    "--name": "--label",
    "--no-wait": "--detach, or: subagents spawn",
    "--output": "--json",
    "--running": "--state working",
    "--wait": "it waits, unless there is a --detach; later: subagents wait RUN",
    "--workdir": "--cwd DIR",
    "exec": "subagents run 'COMMAND'",
    "inspect": "subagents show RUN",
    "stop": "subagents cancel RUN ends a run; subagents down ends the daemon",
    "kill": "subagents cancel RUN",
    "tail": "subagents log RUN --follow",
    "top": "subagents list --watch",
    "rm": "subagents cancel RUN ends a run; ended runs are archived by themselves",
}
"""Words of other tools that are none here, and the way out; a flag where the command has it."""
RENAMED: Final = {
    "agents list": "agents",
    "agents show": "agents",
    "agents stats": "stats --attempts",
    "agents suggest": "agents --suggest",
    "alerts": "inbox --alerts",
    "attach": "continue",
    "attention": "inbox --attention",
    "config schema": "config --schema",
    "config show": "config",
    "config trust": "config --trust",
    "config validate": "config --check",
    "dismiss": "inbox --dismiss",
    **{f"export {form}": f"list --format {form}" for form in ("csv", "json", "jsonl")},
    "export": "list --format csv",
    "interrupt": "cancel --turn",
    "paths": "config --paths",
    "redeliver": "inbox --redeliver",
    "status": "list --now",
    "timeline": "why --verbose",
    "tree": "list --tree",
    "watch": "list --watch",
}
"""Commands of 0.2 and what stands for them; taken until 0.4."""


@cache
def _core() -> Mapping[str, Command]:
    return {each.name: each for rows in CORE.values() for each in rows}


@cache
def groups() -> Mapping[str, tuple[Command, ...]]:
    """All commands by their heading in the overview; below each those of extensions come last."""
    found = {heading: [*rows] for heading, rows in CORE.items()}
    for each in extension.found().used:
        for heading, rows in each.commands.items():
            found.setdefault(heading, []).extend(rows)
    return {heading: tuple(rows) for heading, rows in found.items() if rows}


@cache
def parents() -> Mapping[str, str]:
    """First words of several commands, and what those are about."""
    grouped = (each.name.split()[0] for each in commands() if " " in each.name)
    found = dict.fromkeys(grouped, "What an extension adds")
    for each in extension.found().used:
        found.update(each.parents)
    return found


def commands() -> list[Command]:
    """All, in the order of the overview."""
    return [each for group in groups().values() for each in group]


def meant(word: str) -> str | None:
    """What to do instead of a command or flag that is none; None = it is not known."""
    given_up = (each.retired for each in extension.found().used)
    return next((each[word] for each in given_up if word in each), MEANT.get(word))


def is_group(name: str) -> bool:
    """Whether ``name`` is the first word of several commands."""
    return name not in _core() and name in parents()


def is_only_group(name: str) -> bool:
    """Whether it does nothing by itself that the parser would have to read."""
    row = command_of(name)
    return is_group(name) and (row is None or row.reads_itself)


def below(parent: str) -> list[str]:
    """The names of the commands below ``config``, ``db``, …"""
    named = [each.name for each in commands() if each.name.startswith(f"{parent} ")]
    return [name.split()[1] for name in named]


def renamed() -> Mapping[str, str]:
    """Commands of earlier versions, and what stands for each now."""
    more = (each.renamed for each in extension.found().used)
    return {**RENAMED, **{name: now for each in more for name, now in each.items()}}


def current(words: list[str]) -> tuple[list[str], str]:
    """The words with the present name of a command that was renamed, and what says so."""
    first = words[0] if words else ""
    # Of a command of the core none of an extension's is another name.
    known = RENAMED if first in _core() or first in RENAMED else renamed()
    for count in (2, 1):
        name = " ".join(words[:count])
        if name in known:
            now, rest = known[name].split(), words[count:]
            said = f"subagents {name} is: subagents {known[name]}"
            if not now[-1].endswith(":"):
                return [*now, *rest], said
            place = _first_word(now[0], rest)
            named = "".join(rest[place : place + 1])
            return [*now[:-1], *rest[:place], now[-1] + named, *rest[place + 1 :]], f"{said}NAME"
    return words, ""


def _first_word(name: str, line: list[str]) -> int:
    """The place of the first word that is no flag, and no flag's value."""
    from subagents.cli.parser import declared  # noqa: PLC0415  seldom needed

    flags = [each for each in declared(target_of(_core()[name])) if each.kind is not bool]
    before = {"--jq", "--format", *(flag for each in flags for flag in each.names)}
    places = range(len(line))
    words = (i for i in places if line[i][0:1] != "-" and (not i or line[i - 1] not in before))
    return next(words, len(line))


def named(words: list[str]) -> str:
    """The name of the command or group that ``words`` begin with; empty = there is none."""
    first = [ALIASES.get(word, word) for word in words[:1]]
    candidates = (" ".join([*first, *words[1:2]]), *first)
    for name in candidates:
        # Extensions add no second word to a command of the core alone: they need not be read.
        if name in _core():
            return name
    known = {each.name for each in commands()} | {*parents()}
    return next((name for name in candidates if name in known), "")


def command_of(name: str) -> Command | None:
    """The command of this name; None = there is none, or it is a group that does nothing."""
    return _core().get(name) or next((each for each in commands() if each.name == name), None)


def selectors() -> Mapping[str, str]:
    """What commands are where their one word is of a kind: ``wait plan:``, and a function."""
    return {key: to for each in extension.found().used for key, to in each.selectors.items()}


def selected(name: str, call: "partial[int | None]") -> "partial[int | None]":
    """The call, of the function of an extension whose selector its words are."""
    from subagents.cli.parser import VARIABLE  # noqa: PLC0415  read with the line, by now

    words = [str(each).partition(":") for each in call.args]
    kinds = {kind if rest and kind.isalpha() else "" for kind, _, rest in words}
    kind = kinds.pop() if len(kinds) == 1 else ""
    place = selectors().get(f"{name} {kind}:") if kind else None
    target = extension.loaded(place) if place else None
    if target is None or (len(words) > 1 and not target.__code__.co_flags & VARIABLE):
        return call
    return partial(target, *(rest for _, _, rest in words), **call.keywords)


def target_of(command: Command) -> Callable[..., int | None]:
    """Import a command's function; what it returns is the exit code, None = success."""
    is_core = command.name in _core()
    return extension.loaded(f"subagents.cli.{command.function}" if is_core else command.function)
