"""Every command in one line, with the function that does it.

The functions are named by import strings and imported when they are called, so that ``--help`` and
``status`` start quickly.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from subagents import extension
from subagents.extension import Command

CORE: Final = {
    "Delegate": (
        Command("run", "runs.submission:run", "Run a task, wait for it and print its result", True),
        Command("spawn", "runs.submission:spawn", "Start a run and print its id", True),
        Command("continue", "runs.session_commands:continue_", "Continue an ended run's session"),
        Command("attach", "runs.attach:attach", "Follow a session and type into it"),
        Command("wait", "runs.receiving:wait", "Wait for runs and print their results"),
        Command("inbox", "runs.receiving:inbox", "Show new messages and mark them as read"),
        Command("answer", "runs.control_commands:answer", "Answer a worker's question"),
    ),
    "Look": (
        Command("list", "show.run_list:list_", "List runs, newest first"),
        Command("tree", "show.show_commands:tree", "Show runs and the runs they spawned"),
        Command("status", "show.run_status:status", "Show what runs are doing now"),
        Command("watch", "show.watch_command:watch", "Watch runs live until they end"),
        Command("show", "show.show_commands:show", "Show everything about a run"),
        Command("result", "show.show_commands:result", "Print the full result of a run"),
        Command("log", "show.log_command:log", "Show what a worker said and did"),
        Command("timeline", "show.show_commands:timeline", "List every event of a run"),
        Command("events", "show.events_command:events", "Stream the events of all runs"),
        Command("alerts", "show.alerts_command:alerts", "List past alerts and what became of each"),
        Command("why", "show.show_commands:why", "Explain why a run is in its current state"),
        Command("stats", "show.report_commands:stats", "Count runs, time, tokens and cost"),
        Command("export", "show.report_commands:export", "Print runs as CSV or JSON"),
        Command("attention", "show.show_commands:attention", "List what needs a person"),
        Command("agents list", "setup.agent_commands:list_", "List the configured agents"),
        Command("agents show", "setup.agent_commands:show", "Show an agent's card and record"),
        Command("agents stats", "setup.agent_commands:stats", "Show how attempts ended"),
        Command("agents suggest", "setup.agent_commands:suggest", "Suggest agents for a task"),
    ),
    "Act": (
        Command("steer", "runs.control_commands:steer", "Send a message to a live worker"),
        Command("interrupt", "runs.session_commands:interrupt", "End a turn, keep the session"),
        Command("pause", "runs.control_commands:pause", "Pause runs"),
        Command(
            "prioritize", "runs.control_commands:prioritize", "Change a run's place in the queue"
        ),
        Command("resume", "runs.control_commands:resume", "Resume paused runs"),
        Command("cancel", "runs.control_commands:cancel", "Cancel runs and their children"),
        Command("retry", "runs.control_commands:retry", "Start a run again"),
        Command("redeliver", "runs.control_commands:redeliver", "Offer a result once more"),
        Command("dismiss", "runs.control_commands:dismiss", "Take an escalation off attention"),
    ),
    "Set up": (
        Command("init", "setup.init_command:init", "Create a subagents.toml for this machine"),
        Command("version", "setup.version_command:version", "Show the versions of all parts"),
        Command("paths", "setup.paths_command:paths_", "Show every directory and file in use"),
        Command("completion", "completion:completion", "Print shell completions"),
        Command("config show", "setup.config_commands:show", "Show the effective configuration"),
        Command("config validate", "setup.config_commands:validate", "Check configuration files"),
        Command("config trust", "setup.config_commands:trust", "Trust a project's file"),
        Command("config schema", "setup.config_commands:schema", "Print the JSON Schema"),
        Command("secret set", "setup.secret_commands:set_", "Store a secret in the keyring"),
        Command("secret check", "setup.secret_commands:check", "Check that a secret is there"),
        Command("secret delete", "setup.secret_commands:delete", "Delete one of the keyring's"),
        Command("serve", "serving:serve", "Run the daemon in the foreground"),
        Command("up", "setup.daemon_commands:up", "Start the daemon in the background"),
        Command("down", "setup.daemon_commands:down", "Stop the daemon; workers keep running"),
        Command("mcp", "bridge.mcp_command:mcp", "Serve MCP on stdin and stdout"),
    ),
    "For agent programs": (),
    "For workers": (
        Command("report", "workers.worker_commands:report", "Report that the task is complete"),
        Command("progress", "workers.worker_commands:progress", "Report progress"),
        Command("notify", "workers.worker_commands:notify", "Send a message to the requester"),
        Command("ask", "workers.worker_commands:ask", "Ask the requester and wait for the answer"),
        Command("worker", "workers.worker_commands:worker", "Run a Python function as a worker"),
    ),
}
"""The core's, by their heading in the overview; their functions are below ``subagents.cli``."""
CORE_PARENTS: Final = {
    "agents": "Look at the configured agents",
    "secret": "Keep secrets for workers: `--env NAME=secret:NAME`",
    "config": "Look at the configuration and trust project files",
    "mcp": "Serve MCP on stdin and stdout, and register with MCP clients",
}
BEFORE_PARSER: Final = "mcp"
"""The command that every session of every client starts; it reads its few words itself."""
ALIASES: Final = {"logs": "log", "ls": "list", "ps": "list"}
"""Words that people type who know docker, kubectl or a shell."""


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
    more = (each.parents for each in extension.found().used)
    return {**CORE_PARENTS, **{name: text for each in more for name, text in each.items()}}


def commands() -> list[Command]:
    """All, in the order of the overview."""
    return [each for group in groups().values() for each in group]


def is_group(name: str) -> bool:
    """Whether ``name`` is the first word of several commands."""
    return name in (CORE_PARENTS if name in _core() else parents())


def is_only_group(name: str) -> bool:
    """Whether it does nothing by itself that the parser would have to read."""
    return is_group(name) and (name == BEFORE_PARSER or command_of(name) is None)


def below(parent: str) -> list[str]:
    """The names of the commands below ``config``, ``db``, …"""
    named = [each.name for each in commands() if each.name.startswith(f"{parent} ")]
    return [name.split()[1] for name in named]


def named(words: list[str]) -> str:
    """The name of the command or group that ``words`` begin with; empty = there is none."""
    first = [ALIASES.get(word, word) for word in words[:1]]
    candidates = (" ".join([*first, *words[1:2]]), *first)
    for name in candidates:
        # Extensions add no second word to a command of the core alone: they need not be read.
        if name in _core() and name not in CORE_PARENTS:
            return name
    known = {each.name for each in commands()} | {*parents()}
    return next((name for name in candidates if name in known), "")


def command_of(name: str) -> Command | None:
    """The command of this name; None = there is none, or it is a group that does nothing."""
    return _core().get(name) or next((each for each in commands() if each.name == name), None)


def target_of(command: Command) -> Callable[..., int | None]:
    """Import a command's function; what it returns is the exit code, None = success."""
    is_core = command.name in _core()
    return extension.loaded(f"subagents.cli.{command.function}" if is_core else command.function)
