"""Runtime ``claude-code``: Claude Code's command line over stream-json.

A turn is one process, ``claude -p --input-format stream-json``. Its session has an id that we
choose, so that a crash before the first line loses nothing; a further turn is ``--resume``. Our
tools come over the stdio bridge, which finds the worker's token in its ancestors' environment: no
secret is in a file or an argument. The instructions, the MCP configuration and the prompt are
files or lines of its input, so that no process list shows them.
See docs/runtimes/claude-code.md.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from subagents.domain.run.access import Access, AccessLevel, Keeper
from subagents.domain.run.spec import Abilities
from subagents.errors import UsageError
from subagents.extensions.claude import claude_scope
from subagents.extensions.claude.claude_options import (
    NAME,
    ClaudeOptions,
    find_program,
    parse_options,
)
from subagents.extensions.claude.claude_state import (
    ClaudeState,
    ClaudeStep,
    accepted,
    first_step,
    interruption,
    session_uuid,
    user_message,
)
from subagents.extensions.claude.claude_turn import finished, step_of
from subagents.extensions.conversation import conversation
from subagents.extensions.conversation.dialect import (
    SERVER,
    InputLine,
    Invocation,
    Opening,
    Permissions,
    ProgramPlaces,
    servers_unkept,
)
from subagents.extensions.conversation.program_version import has_option
from subagents.ports import Runtime, UsualProvider
from subagents.runtimes.runtime_plugins import RuntimeHost

SERVERS: Final = "mcp.json"
"""The file with our MCP server, in the attempt's directory."""
INSTRUCTIONS: Final = "instructions"
"""The file with what is appended to the system prompt."""
PROMPT_SNAPSHOT: Final = "--system-prompt-snapshot"
"""Whether a session keeps the system prompt of its first launch; newer programs do by default."""
EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")

ALWAYS: Final[Mapping[str, str]] = {
    # "idle" is how a turn says that it is over (claude_turn).
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
    # A session begins without the tools of a server that is still starting.
    "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "20000",
    # The memory of a project is the user's, and what wakes up later finds no process.
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_CRON": "1",
    "DISABLE_AUTOUPDATER": "1",
}
"""Variables that are set unless the agent's ``env`` says otherwise."""
BRING_SERVERS: Final = ("--mcp-config", "--plugin-dir", "--chrome", "--ide")
"""Arguments that bring MCP servers beside ``--strict-mcp-config``."""
FOREGROUND: Final = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"


class ClaudeDialect:
    """See ``Dialect``."""

    asks_first = False
    name = NAME
    abilities = Abilities(
        survives_daemon=True,
        steer=True,
        resume=True,
        scope_tools=True,
        interrupt=True,
        usage=True,
        model=True,
    )
    passes = (
        *("ANTHROPIC_*", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_*"),
        *("CLAUDE_CODE_SKIP_BEDROCK_AUTH", "CLAUDE_CODE_SKIP_VERTEX_AUTH"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    )
    usual_provider = UsualProvider(
        "anthropic",
        ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_*"),
    )

    def check(self, options: Mapping[str, object]) -> None:
        """See ``Dialect.check``."""
        parse_options(options)

    def check_servers(self, options: Mapping[str, object]) -> None:
        """See ``ports.Serving.check_servers``."""
        given = parse_options(options)
        others = [each for each in given.args if each.partition("=")[0] in BRING_SERVERS]
        if not given.strict_mcp_config:
            others.append("strict_mcp_config = false")
        if others:
            why = f"{', '.join(others)} in runtime_options brings others"
            raise servers_unkept("Claude Code", why, "remove that, or mcp_servers")

    def check_scope(
        self, options: Mapping[str, object], tools: tuple[str, ...] | None, deny: tuple[str, ...]
    ) -> None:
        """See ``Dialect.check_scope``."""
        claude_scope.check(parse_options(options), tools, deny)

    def access_of(
        self, options: Mapping[str, object], configured: AccessLevel | None
    ) -> AccessLevel:
        """See ``Restrained.access_of``: a planner changes nothing."""
        if parse_options(options).permission_mode == "plan":
            return AccessLevel.READ
        return configured or AccessLevel.FULL

    def kept_by_tools(
        self, options: Mapping[str, object], access: Access
    ) -> tuple[str, ...] | None:
        """Without a shell its mode keeps its edits to the working directory."""
        del options
        return claude_scope.KEPT_WITHOUT[access.level]

    def places(self, options: Mapping[str, object], env: Mapping[str, str]) -> ProgramPlaces:
        """See ``Restrained.places``."""
        del options
        return claude_scope.places(env)

    def invocation(self, opening: Opening, *, directory: str, path: str) -> Invocation:
        """See ``Dialect.invocation``."""
        options = parse_options(opening.options)
        if options.permission_mode == "bypassPermissions":
            _check_bypass(options)
        files = {
            SERVERS: msgspec.json.encode({"mcpServers": _servers(opening)}),
            INSTRUCTIONS: opening.system_prompt.encode("utf-8", "replace"),
        }
        found = find_program(options, cwd=opening.cwd, path=path)
        argv = [
            found,
            *("-p", "--input-format=stream-json", "--output-format=stream-json", "--verbose"),
            *_session(opening, found),
            *_scope(opening, options),
            f"--mcp-config={Path(directory, SERVERS)}",
            *(["--strict-mcp-config"] if options.strict_mcp_config else []),
            f"--setting-sources={','.join(options.setting_sources)}",
            *_limits(options),
            *_thinking(opening.thinking),
            *options.args,
        ]
        if opening.system_prompt:
            argv.append(f"--append-system-prompt-file={Path(directory, INSTRUCTIONS)}")
        if opening.model:
            argv.append(f"--model={opening.model}")
        return Invocation(tuple(argv), env=_env(options, opening.cwd), files=files)

    def begin(self, opening: Opening) -> ClaudeStep:
        """See ``Dialect.begin``."""
        return first_step(opening, asks=_asks(opening))

    def read_line(self, state: ClaudeState, line: bytes, *, now_ms: int | None) -> ClaudeStep:
        """See ``Dialect.read_line``."""
        return step_of(state, line, now_ms=now_ms)

    def permissions(self, state: ClaudeState) -> Mapping[str, Permissions]:
        """See ``Asks.permissions``."""
        return state.permissions

    def steer(self, state: ClaudeState, message: str, *, key: str) -> InputLine | None:
        """See ``Dialect.steer``."""
        return None if state.is_over else user_message(state, message, key=key)

    def accepted(self, state: ClaudeState, key: str) -> bool | None:
        """See ``Dialect.accepted``."""
        return accepted(state, key)

    def interrupt(self, state: ClaudeState, *, key: str) -> InputLine | None:
        """See ``Dialect.interrupt``."""
        return None if state.is_over else interruption(key)

    def awaits(self, state: ClaudeState) -> str | None:
        """See ``Awaiting.awaits``."""
        has_begun = state.session_id is not None or state.commands or state.has_result
        return None if has_begun or state.is_over else "its first event"

    def is_done(self, state: ClaudeState) -> bool:
        """See ``Dialect.is_done``."""
        return state.is_over

    def finish(self, state: ClaudeState) -> ClaudeStep:
        """See ``Dialect.finish``."""
        return finished(state)


def _servers(opening: Opening) -> dict[str, object]:
    return {
        name: {"type": "stdio", "command": command, "args": arguments, "alwaysLoad": name == SERVER}
        for name, (command, *arguments) in opening.servers.items()
    }


def _session(opening: Opening, program: str) -> list[str]:
    """``=`` binds the value to its argument, whatever it begins with."""
    if opening.session_id is None:
        return [f"--session-id={session_uuid(opening)}"]
    # Else a run that goes on in a session would work under the instructions of the one before it.
    is_kept = has_option(program, PROMPT_SNAPSHOT)
    return [f"--resume={opening.session_id}", *([f"{PROMPT_SNAPSHOT}=off"] if is_kept else [])]


def _scope(opening: Opening, options: ClaudeOptions) -> list[str]:
    access = opening.access
    by_tools = access is not None and access.kept_by is Keeper.TOOLS
    is_near = by_tools and access is not None and access.level is AccessLevel.WRITE
    asks = _asks(opening)
    flags = claude_scope.flags(
        options, opening.tools, opening.tools_deny, is_near=is_near, asks=asks
    )
    # In this mode edits below the working directory need no question, and others have no answer.
    found = [f"--permission-mode={'acceptEdits' if is_near else options.permission_mode}"]
    if asks:
        found = ["--permission-mode=default", "--permission-prompt-tool=stdio"]
    if flags.tools is not None:
        found.append(f"--tools={','.join(flags.tools)}")
    if flags.allowed:
        found.append(f"--allowedTools={','.join(flags.allowed)}")
    if flags.disallowed:
        found.append(f"--disallowedTools={','.join(flags.disallowed)}")
    return found


def _asks(opening: Opening) -> bool:
    """Whether what it asks permission for is a question: nobody can allow more than its scope."""
    access = opening.access
    is_partial = any("(" in each for each in opening.tools or ())
    is_kept = access is not None and access.kept_by is Keeper.TOOLS
    return opening.options.get("ask") is True and not is_partial and not is_kept


def _limits(options: ClaudeOptions) -> list[str]:
    found = []
    if options.max_turns is not None:
        found.append(f"--max-turns={options.max_turns}")
    if options.max_budget_usd is not None:
        found.append(f"--max-budget-usd={options.max_budget_usd:.6f}")
    if options.fallback_model:
        found.append(f"--fallback-model={','.join(options.fallback_model)}")
    return found


def _thinking(level: str | None) -> list[str]:
    """``low`` to ``max`` is its effort, a number its thinking tokens, ``off`` none at all.

    Raises:
        UsageError: It is none of these.
    """
    match (level or "").strip().lower():
        case "":
            return []
        case effort if effort in EFFORTS:
            return [f"--effort={effort}"]
        case "off" | "none" | "disabled" | "0":
            return ["--thinking=disabled"]
        case "adaptive" | "on":
            return ["--thinking=adaptive"]
        case number if number.isascii() and number.isdigit() and len(number) <= 9:
            return [f"--max-thinking-tokens={number}"]
        case _:
            raise UsageError(
                f"`thinking`: {NAME} knows {', '.join(EFFORTS)}, off, adaptive, or a number of "
                f"tokens, not {level!r}"
            )


def _env(options: ClaudeOptions, cwd: str) -> dict[str, str]:
    env = dict(ALWAYS)
    if not options.background:
        env[FOREGROUND] = "1"
    if options.config_dir is not None:
        named = os.path.expanduser(options.config_dir)  # noqa: PTH111  of an unknown user it stays
        env["CLAUDE_CONFIG_DIR"] = str(Path(cwd, named))
    return {name: value for name, value in env.items() if name not in options.env}


def _check_bypass(options: ClaudeOptions) -> None:
    """The program refuses to run so as root; say it before it is started.

    Raises:
        UsageError: It would refuse.
    """
    if os.geteuid() == 0 and not options.env.get("IS_SANDBOX"):
        raise UsageError(
            'permission_mode = "bypassPermissions" does not run as root; choose "dontAsk", or in '
            'a container of its own set env = { IS_SANDBOX = "1" }'
        )


def runtimes(host: RuntimeHost) -> tuple[Runtime, ...]:
    """See ``Extension.runtimes``."""
    return (conversation.runtime_on(host, ClaudeDialect()),)
