"""The command ``subagents``: finds the command, runs it, and turns what went wrong into exit codes.

Commands are named by import strings and imported when they are called, so that ``--help`` and
``status`` start quickly; the overview is printed from the table here without any parser.
"""

import contextlib
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from subagents.cli.ending import reporting
from subagents.errors import (
    EXIT_OK,
    NotFound,
    UsageError,
)
from subagents.version import __version__

if TYPE_CHECKING:
    from cyclopts import App


class Command(NamedTuple):
    """One command; its function is imported when it is called."""

    name: str
    function: str
    """``module:function``, below ``subagents.cli``."""
    summary: str

    @property
    def target(self) -> str:
        return f"subagents.cli.{self.function}"


GROUPS: Final[dict[str, tuple[Command, ...]]] = {
    "Delegate": (
        Command("run", "runs.run_commands:run", "Run a task, wait for it and print its result"),
        Command("spawn", "runs.run_commands:spawn", "Start a run and print its id"),
        Command("plan run", "runs.run_commands:plan", "Start all runs of a file, or none"),
        Command("continue", "runs.session_commands:continue_", "Continue an ended run's session"),
        Command("attach", "runs.attach:attach", "Follow a session and type into it"),
        Command("wait", "runs.wait_commands:wait", "Wait for runs and print their results"),
        Command("inbox", "runs.wait_commands:inbox", "Show new messages and mark them as read"),
        Command("answer", "runs.control_commands:answer", "Answer a worker's question"),
    ),
    "Look": (
        Command("list", "show.show_commands:list_", "List runs, newest first"),
        Command("tree", "show.show_commands:tree", "Show runs and the runs they spawned"),
        Command("status", "show.status_command:status", "Show what runs are doing now"),
        Command("watch", "show.watch_command:watch", "Watch runs live until they end"),
        Command("show", "show.show_commands:show", "Show everything about a run"),
        Command("result", "show.show_commands:result", "Print the full result of a run"),
        Command("log", "show.log_command:log", "Show what a worker said and did"),
        Command("timeline", "show.show_commands:timeline", "List every event of a run"),
        Command("events", "show.events_command:events", "Stream the events of all runs"),
        Command("why", "show.show_commands:why", "Explain why a run is in its current state"),
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
        Command("resume", "runs.control_commands:resume", "Resume paused runs"),
        Command("cancel", "runs.control_commands:cancel", "Cancel runs and their children"),
        Command("retry", "runs.control_commands:retry", "Start a run again"),
        Command("redeliver", "runs.control_commands:redeliver", "Offer a result once more"),
        Command("dismiss", "runs.control_commands:dismiss", "Take an escalation off attention"),
    ),
    "Set up": (
        Command("demo", "demo.demo:demo", "See a small fleet at work; needs no API key"),
        Command("init", "setup.init_command:init", "Create a subagents.toml for this machine"),
        Command("doctor", "setup.doctor:doctor", "Check the installation and suggest fixes"),
        Command("config show", "setup.config_commands:show", "Show the effective configuration"),
        Command("config validate", "setup.config_commands:validate", "Check configuration files"),
        Command("config trust", "setup.config_commands:trust", "Trust a project's file"),
        Command("config schema", "setup.config_commands:schema", "Print the JSON Schema"),
        Command("secret set", "setup.secret_commands:set_", "Store a secret in the keyring"),
        Command("secret check", "setup.secret_commands:check", "Check that a secret is there"),
        Command("secret delete", "setup.secret_commands:delete", "Delete one of the keyring's"),
        Command("serve", "setup.daemon_commands:serve", "Run the daemon in the foreground"),
        Command("up", "setup.daemon_commands:up", "Start the daemon in the background"),
        Command("down", "setup.daemon_commands:down", "Stop the daemon; workers keep running"),
        Command("db check", "setup.database_commands:check", "Check the database"),
        Command("db backup", "setup.database_commands:backup", "Back up the database"),
        Command("db repair", "setup.database_commands:repair", "Rebuild a damaged database"),
        Command("service install", "setup.service_commands:install", "Install a systemd service"),
        Command("service uninstall", "setup.service_commands:uninstall", "Remove the service"),
        Command("mcp", "bridge.mcp_command:mcp", "Serve MCP on stdin and stdout"),
    ),
    "For agent programs": (
        Command("mcp install", "install.mcp_install:install", "Register with an agent program"),
        Command("mcp uninstall", "install.mcp_install:uninstall", "Remove the registration"),
        Command("mcp config", "install.mcp_install:config", "Print the entry for any MCP client"),
        Command("mcp plugin", "install.mcp_install:plugin", "Print the Claude Code plugin's path"),
        Command("hook stop", "install.claude_hook:stop", "Claude Code's hook at a turn's end"),
        Command(
            "hook session-start",
            "install.claude_hook:session_start",
            "Claude Code's hook at a start",
        ),
    ),
    "For workers": (
        Command("report", "runs.worker_commands:report", "Report that the task is complete"),
        Command("progress", "runs.worker_commands:progress", "Report progress"),
        Command("notify", "runs.worker_commands:notify", "Send a message to the requester"),
        Command("ask", "runs.worker_commands:ask", "Ask the requester and wait for the answer"),
    ),
}
PARENTS: Final = {
    "plan": "Start many runs at once",
    "agents": "Look at the configured agents",
    "secret": "Keep secrets for workers: `--env NAME=secret:NAME`",
    "config": "Look at the configuration and trust project files",
    "db": "Check and back up the database",
    "hook": "Commands that Claude Code's hooks run",
    "service": "Run the daemon as a systemd user service",
    "mcp": "Serve MCP on stdin and stdout, and register with MCP clients",
}
INSTALL_COMPLETION: Final = "--install-completion"
HELP_FLAGS: Final = {"--help", "-h"}
SPAWNING: Final = {"run", "spawn"}
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
    as_json = _wants_json(arguments)
    with contextlib.suppress(AttributeError):
        # A worker's text in a terminal without UTF-8 is shown escaped, not refused.
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    return reporting(lambda: _dispatch(arguments), as_json=as_json)


def _dispatch(arguments: list[str]) -> int:
    simple = _without_parser(arguments)
    return simple if simple is not None else _parsed(arguments)


def _without_parser(arguments: list[str]) -> int | None:
    """The overview, the version and the help topics; None for everything else."""
    match arguments:
        case [] | ["help"]:
            sys.stdout.write(overview())
        case [flag] if flag in HELP_FLAGS:
            sys.stdout.write(overview())
        case ["--version" | "-V"]:
            sys.stdout.write(f"subagents {__version__}\n")
        case ["mcp", *rest] if not rest or rest[0] not in {*HELP_FLAGS, *_below("mcp")}:
            # Every session of every client starts it: the parser would double its time to start.
            from subagents.cli.bridge.mcp_front import serve  # noqa: PLC0415

            return serve(rest)
        case [parent] if parent in PARENTS:
            sys.stdout.write(overview_of(parent))
        case [parent, flag] if parent in PARENTS and flag in HELP_FLAGS:
            sys.stdout.write(overview_of(parent))
        case ["help", parent] if parent in PARENTS:
            sys.stdout.write(overview_of(parent))
        case ["help", topic]:
            return _help(topic)
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
    for group, commands in GROUPS.items():
        lines += ["", f"{group}:"]
        lines += [f"  {each.name:<18} {each.summary}" for each in commands]
    from subagents.cli.topics import TOPICS  # noqa: PLC0415

    lines += [
        "",
        "Examples:",
        "  subagents run 'wc -l README.md'        the result on stdout, the rest on stderr",
        "  subagents demo                         a tour in 15 seconds",
        "",
        "Help for a command: subagents COMMAND --help",
        f"Help topics: subagents help {' | '.join(TOPICS)}",
        "Shell completion: subagents --install-completion",
        "",
    ]
    return "\n".join(lines)


def overview_of(parent: str) -> str:
    """The commands below ``config``, ``db``, …"""
    own = [each for each in _commands() if each.name == parent]
    alone = f"subagents {parent} [OPTIONS], or " if own else ""
    usage = f"Usage: {alone}subagents {parent} COMMAND [OPTIONS]"
    lines = [usage, "", f"{PARENTS[parent]}.", ""]
    lines += [line for each in own for line in _text_of(each)]
    lines += [
        f"  {each.name.split()[1]:<13} {each.summary}"
        for each in _commands()
        if each.name.startswith(f"{parent} ")
    ]
    return "\n".join([*lines, "", f"Help for a command: subagents {parent} COMMAND --help", ""])


def _text_of(command: Command) -> list[str]:
    """What a command that is a group, too, says of itself."""
    import inspect  # noqa: PLC0415

    text = inspect.getdoc(target_of(command)) or ""
    return [*text.partition("\n\nArgs:")[0].splitlines(), ""]


def _help(topic: str) -> int:
    from subagents.cli.topics import TOPICS, text_of  # noqa: PLC0415

    if topic in TOPICS:
        sys.stdout.write(text_of(topic))
        return EXIT_OK
    if any(topic in each.name.split() for each in _commands()):
        return _parsed([topic, "--help"])
    raise NotFound(
        f"there is no help topic {topic!r}",
        hint=f"topics: {', '.join(TOPICS)}; commands: subagents --help",
    )


def _below(parent: str) -> list[str]:
    """The names of the commands below ``config``, ``db``, …"""
    named = [each.name for each in _commands() if each.name.startswith(f"{parent} ")]
    return [name.split()[1] for name in named]


def _commands() -> list[Command]:
    return [each for commands in GROUPS.values() for each in commands]


def _parsed(arguments: list[str]) -> int:
    """Let Cyclopts find the command and read its flags."""
    _check_text(arguments)
    _check_command(arguments)
    if arguments[0] in SPAWNING:
        arguments = spawn_arguments(arguments)
    elif arguments[0] in SPEAKING and "--" not in arguments and "-" in arguments[1:]:
        # The parser takes it for an option.
        words = [word for word in arguments if word != "-"]
        arguments = [*words, "--", "-"]
    from cyclopts import CycloptsError  # noqa: PLC0415  70 ms

    try:
        with_completion = arguments[0] == INSTALL_COMPLETION
        code = application(with_completion=with_completion)(arguments)
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
    if word == INSTALL_COMPLETION:
        return
    names = sorted({each.name.split()[0] for each in _commands()})
    if word not in names:
        raise UsageError(
            f"there is no command {word!r}{_guess(word, names)}", hint="subagents --help"
        )
    if word in PARENTS and rest and not rest[0].startswith("-"):
        below = _below(word)
        if rest[0] not in below:
            raise UsageError(
                f"there is no command {word} {rest[0]!r}{_guess(rest[0], below)}",
                hint=f"subagents {word} {' | '.join(below)}",
            )


def _guess(word: str, known: Sequence[str]) -> str:
    import difflib  # noqa: PLC0415

    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def spawn_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments of ``run`` and ``spawn`` as the parser takes them.

    The contract flags, whose order counts, become one option; ``-`` for stdin goes behind the
    ``--`` where it is not taken for an option.

    Raises:
        UsageError: A contract flag is wrong; it is named.
    """
    from msgspec import json  # noqa: PLC0415

    from subagents.cli.runs import contract_flags  # noqa: PLC0415

    rest, artifacts = contract_flags.extract(arguments)
    end = rest.index("--") if "--" in rest else len(rest)
    options, words = rest[:end], rest[end + 1 :]
    if artifacts:
        option = ["--contract-flags", json.encode(artifacts).decode()]
        options = [options[0], *option, *options[1:]]
    # A flag's value may be `-`, too (`--tag -`), but never the task's only word after others.
    if options[-1:] == ["-"] and not words:
        options, words = options[:-1], ["-"]
    elif len(options) > 1 and options[1] == "-" and not words:
        options, words = [options[0], *options[2:]], ["-"]
    return [*options, "--", *words] if words or end < len(rest) else options


def _message(error: Exception) -> str:
    """The parser's message without its markup of several lines."""
    return " ".join(str(error).split()) or type(error).__name__


def _help_command(arguments: Sequence[str]) -> str:
    words = [word for word in arguments[:2] if not word.startswith("-")]
    known = {each.name for each in _commands()} | set(PARENTS)
    named = " ".join(words)
    if named not in known:
        named = words[0] if words and words[0] in known else ""
    return f"subagents {named} --help" if named else "subagents --help"


def application(*, with_completion: bool = False) -> "App":
    """The parser with all commands, none of them imported."""
    from cyclopts import App, Parameter  # noqa: PLC0415

    def new(name: str, help_: str) -> App:
        return App(
            name=name,
            help=help_,
            version=__version__,
            version_flags=["--version"] if name == "subagents" else [],
            help_format="plaintext",
            result_action="return_value",
            exit_on_error=False,
            print_error=False,
            suppress_keyboard_interrupt=False,
            default_parameter=Parameter(negative=(), show_default=False),
        )

    app = new("subagents", "One local service that any agent can call and any agent can work for.")
    parents = {name: new(name, summary) for name, summary in PARENTS.items()}
    for parent in parents.values():
        app.command(parent)
    for each in _commands():
        if each.name in parents:
            continue  # read without the parser
        parent_name, _, name = each.name.rpartition(" ")
        parent = parents[parent_name] if parent_name else app
        parent.command(each.target, name=name)
    if with_completion:
        app.register_install_completion_command(INSTALL_COMPLETION)
    return app


def _wants_json(arguments: Sequence[str]) -> bool:
    """Whether ``--json`` stands before any ``--``; asked before the arguments are parsed."""
    for argument in arguments:
        if argument == "--":
            return False
        if argument == "--json":
            return True
    return False


def target_of(command: Command) -> Callable[..., int]:
    """Import a command's function."""
    module, _, name = command.target.partition(":")
    found: Callable[..., int] = getattr(import_module(module), name)
    return found


if __name__ == "__main__":
    sys.exit(main())
