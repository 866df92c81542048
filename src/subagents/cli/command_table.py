"""Every command in one line, with the function that does it.

The functions are named by import strings and imported when they are called, so that ``--help`` and
``status`` start quickly.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Final, NamedTuple


class Command(NamedTuple):
    """One command; its function is imported when it is called."""

    name: str
    function: str
    """``module:function``, below ``subagents.cli``."""
    summary: str
    spawns: bool = False
    """It takes ``SpawnFlags``, and so the flags of a contract, whose order counts."""

    @property
    def target(self) -> str:
        return f"subagents.cli.{self.function}"


GROUPS: Final[dict[str, tuple[Command, ...]]] = {
    "Delegate": (
        Command(
            "run", "runs.run_commands:run", "Run a task, wait for it and print its result", True
        ),
        Command("spawn", "runs.run_commands:spawn", "Start a run and print its id", True),
        Command("plan run", "runs.plan_commands:run", "Start all runs of a file, or none"),
        Command(
            "plan dry-run",
            "runs.plan_expansion_commands:dry_run",
            "Show what a plan would start, and start nothing",
        ),
        Command("plan list", "runs.plan_commands:list_", "List plans, newest first"),
        Command("plan show", "runs.plan_commands:show", "Show how a plan stands"),
        Command("plan wait", "runs.plan_commands:wait", "Wait for a plan, print its results"),
        Command("plan cancel", "runs.plan_commands:cancel", "Cancel what is left of a plan"),
        Command("plan retry", "runs.plan_commands:retry", "Start what failed of a plan again"),
        Command("plan schema", "runs.plan_expansion_commands:schema", "Print a plan's JSON Schema"),
        Command(
            "schedule add",
            "schedules.schedule_commands:add",
            "Start a task or plan at its times",
            spawns=True,
        ),
        Command("schedule list", "schedules.schedule_commands:list_", "List schedules"),
        Command("schedule show", "schedules.schedule_commands:show", "Show a schedule's times"),
        Command("schedule run-now", "schedules.schedule_commands:run_now", "Start its work now"),
        Command("schedule pause", "schedules.schedule_commands:pause", "Let it start nothing"),
        Command("schedule resume", "schedules.schedule_commands:resume", "Let it go on"),
        Command("schedule remove", "schedules.schedule_commands:remove", "Remove a schedule"),
        Command(
            "map", "runs.plan_expansion_commands:map_", "Run a task for each of many items", True
        ),
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
        Command("alerts", "show.alerts_command:alerts", "List past alerts and what became of each"),
        Command("why", "show.show_commands:why", "Explain why a run is in its current state"),
        Command("stats", "show.report_commands:stats", "Count runs, time, tokens and cost"),
        Command("export", "show.report_commands:export", "Print runs as CSV or JSON"),
        Command("ui", "web.ui_commands:ui", "Open the web page"),
        Command("ui sessions", "web.ui_commands:sessions", "List browsers that are logged in"),
        Command("ui revoke", "web.ui_commands:revoke", "Log browsers out"),
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
        Command("demo", "demo.demo:demo", "See a small fleet at work; needs no API key"),
        Command("init", "setup.init_command:init", "Create a subagents.toml for this machine"),
        Command(
            "import claude-agents",
            "setup.import_commands:claude_agents",
            "Add Claude Code's subagents to subagents.toml",
        ),
        Command(
            "import openclaw",
            "setup.import_commands:openclaw",
            "Add the agents of an openclaw.json to subagents.toml",
        ),
        Command("doctor", "setup.doctor:doctor", "Check the installation and suggest fixes"),
        Command("support-bundle", "setup.support_bundle:bundle", "Pack what a bug report needs"),
        Command("version", "setup.version_command:version", "Show the versions of all parts"),
        Command("paths", "setup.paths_command:paths_", "Show every directory and file in use"),
        Command("completion", "setup.completion_command:completion", "Print shell completions"),
        Command("config show", "setup.config_commands:show", "Show the effective configuration"),
        Command("config validate", "setup.config_commands:validate", "Check configuration files"),
        Command("config trust", "setup.config_commands:trust", "Trust a project's file"),
        Command("config schema", "setup.config_commands:schema", "Print the JSON Schema"),
        Command("secret set", "setup.secret_commands:set_", "Store a secret in the keyring"),
        Command("secret check", "setup.secret_commands:check", "Check that a secret is there"),
        Command("secret delete", "setup.secret_commands:delete", "Delete one of the keyring's"),
        Command(
            "notifications test",
            "setup.notification_commands:send_test",
            "Send a real notification and say what came back",
        ),
        Command(
            "threads test",
            "setup.thread_commands:send_test",
            "Write into the chat room and say what came back",
        ),
        Command("serve", "setup.daemon_commands:serve", "Run the daemon in the foreground"),
        Command("up", "setup.daemon_commands:up", "Start the daemon in the background"),
        Command("down", "setup.daemon_commands:down", "Stop the daemon; workers keep running"),
        Command("db check", "setup.database_commands:check", "Check the database"),
        Command("db backup", "setup.database_commands:backup", "Back up the database"),
        Command("db restore", "setup.database_commands:restore", "Go back to a backup"),
        Command("db repair", "setup.database_commands:repair", "Rebuild a damaged database"),
        Command("service install", "setup.service_commands:install", "Install a systemd service"),
        Command("service uninstall", "setup.service_commands:uninstall", "Remove the service"),
        Command("cluster init", "cluster.membership_commands:init", "Make a cluster"),
        Command("cluster token", "cluster.membership_commands:token", "Print a token to join by"),
        Command("cluster join", "cluster.membership_commands:join", "Join a cluster"),
        Command("cluster leave", "cluster.membership_commands:leave", "Leave the cluster"),
        Command("cluster status", "cluster.node_commands:status", "List the nodes"),
        Command("cluster drain", "cluster.node_commands:drain", "Let others take over from a node"),
        Command("cluster undrain", "cluster.node_commands:undrain", "Take the node back"),
        Command("mcp", "bridge.mcp_command:mcp", "Serve MCP on stdin and stdout"),
    ),
    "For agent programs": (
        Command("mcp install", "install.mcp_install:install", "Register with an agent program"),
        Command("mcp uninstall", "install.mcp_install:uninstall", "Remove the registration"),
        Command("mcp config", "install.mcp_install:config", "Print the entry for any MCP client"),
        Command("mcp plugin", "install.mcp_install:plugin", "Print the Claude Code plugin's path"),
        Command("mcp skill", "install.mcp_install:skill", "Print a skill that teaches delegating"),
        Command("hook stop", "install.claude_hook:stop", "Claude Code's hook at a turn's end"),
        Command(
            "hook session-start",
            "install.claude_hook:session_start",
            "Claude Code's hook at a start",
        ),
    ),
    "For workers": (
        Command("report", "workers.worker_commands:report", "Report that the task is complete"),
        Command("progress", "workers.worker_commands:progress", "Report progress"),
        Command("notify", "workers.worker_commands:notify", "Send a message to the requester"),
        Command("ask", "workers.worker_commands:ask", "Ask the requester and wait for the answer"),
        Command("worker", "workers.worker_commands:worker", "Run a Python function as a worker"),
    ),
}
PARENTS: Final = {
    "plan": "Start many runs at once",
    "schedule": "Start work at its times: every night, every 15 minutes",
    "agents": "Look at the configured agents",
    "secret": "Keep secrets for workers: `--env NAME=secret:NAME`",
    "threads": "Talk to sessions in the threads of a chat room",
    "notifications": "Tell a person when a run needs them, failed, or all are done",
    "config": "Look at the configuration and trust project files",
    "db": "Check, back up and restore the database",
    "import": "Take over agents that were defined for another program",
    "hook": "Commands that Claude Code's hooks run",
    "cluster": "Work on several machines that share a PostgreSQL database",
    "service": "Run the daemon as a systemd user service",
    "ui": "Open the web page, and see who is logged in",
    "mcp": "Serve MCP on stdin and stdout, and register with MCP clients",
}
BEFORE_PARSER: Final = "mcp"
"""Every session of every client starts it: the parser would double its time to start."""
ALIASES: Final = {"logs": "log", "ls": "list", "ps": "list"}
"""What people type who know docker, kubectl or a shell."""


def commands() -> list[Command]:
    """All, in the order of the overview."""
    return [each for group in GROUPS.values() for each in group]


def is_only_group(name: str) -> bool:
    """Whether the parser knows ``name`` as a group that does nothing by itself."""
    return name in PARENTS and (name == BEFORE_PARSER or name not in {c.name for c in commands()})


def below(parent: str) -> list[str]:
    """The names of the commands below ``config``, ``db``, …"""
    named = [each.name for each in commands() if each.name.startswith(f"{parent} ")]
    return [name.split()[1] for name in named]


def named(words: list[str]) -> str:
    """The name of the command or group that ``words`` begin with; empty = there is none."""
    known = {each.name for each in commands()} | set(PARENTS)
    first = [ALIASES.get(word, word) for word in words[:1]]
    for name in (" ".join([*first, *words[1:2]]), *first):
        if name in known:
            return name
    return ""


def spawns(words: list[str]) -> bool:
    """Whether the command that ``words`` begin with takes ``SpawnFlags``."""
    name = named(words)
    return any(each.spawns for each in commands() if each.name == name)


def target_of(command: Command) -> Callable[..., int]:
    """Import a command's function."""
    module, _, name = command.target.partition(":")
    found: Callable[..., int] = getattr(import_module(module), name)
    return found
