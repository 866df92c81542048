"""The options of a ``claude-code`` agent (``[agents.<id>.runtime_options]``); pure.

``program``            Claude Code's executable; unset = ``claude`` on PATH, else the one that came
                       with the package ``claude-agent-sdk``.
``config_dir``         Where it keeps its login, settings and sessions (``CLAUDE_CONFIG_DIR``).
``permission_mode``    ``dontAsk`` (default): what is not allowed is denied. See docs for others.
``allow``              More permission rules of its own, such as ``mcp__github``; for runs without
                       a tool scope.
``setting_sources``    Of ``user``, ``project``, ``local``; default none, also no CLAUDE.md.
``strict_mcp_config``  Whether our MCP server is the only one (default).
``background``         Whether it may go on with commands and agents in the background.
``max_turns``          Model requests in one turn of the run.
``max_budget_usd``     By Claude Code's own account, per session.
``fallback_model``     Models for when the first one takes no more.
``args``               More arguments of the program.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from subagents.errors import ConfigError
from subagents.runtimes.runtime_options import check_names, parsed

NAME: Final = "claude-code"

_VARIABLE: Final = r"^[A-Za-z_][A-Za-z0-9_]*"

PermissionMode = Literal["dontAsk", "acceptEdits", "auto", "bypassPermissions", "plan"]
SettingSource = Literal["user", "project", "local"]
_Text = Annotated[str, msgspec.Meta(min_length=1)]

ELSEWHERE: Final[Mapping[str, str]] = {
    "-p": "it is always given",
    "--print": "it is always given",
    "--input-format": "the runtime speaks stream-json",
    "--output-format": "the runtime speaks stream-json",
    "--verbose": "it is always given",
    "--include-partial-messages": "the runtime reads whole messages",
    "--replay-user-messages": "the runtime knows what it sent",
    "--permission-prompt-tool": "nobody is there to answer",
    "--permission-prompts": "nobody is there to answer",
    "--session-id": "the runtime names the session",
    "--resume": "the runtime goes on with the session",
    "-r": "the runtime goes on with the session",
    "--continue": "the runtime goes on with the session",
    "-c": "the runtime goes on with the session",
    "--fork-session": "the runtime goes on with the session",
    "--no-session-persistence": "later turns go on with the session",
    "--bg": "the daemon watches the process",
    "--background": "the daemon watches the process",
    "--cloud": "the daemon watches the process",
    "--model": "use `model` of the agent",
    "--effort": "use `thinking` of the agent",
    "--tools": "use `tools` of the agent",
    "--allowedTools": "use `tools` of the agent, or the option `allow`",
    "--allowed-tools": "use `tools` of the agent, or the option `allow`",
    "--disallowedTools": "use `tools_deny` of the agent",
    "--disallowed-tools": "use `tools_deny` of the agent",
    "--permission-mode": "use the option `permission_mode`",
    "--dangerously-skip-permissions": 'use the option permission_mode = "bypassPermissions"',
    "--allow-dangerously-skip-permissions": 'use permission_mode = "bypassPermissions"',
    "--setting-sources": "use the option `setting_sources`",
    "--strict-mcp-config": "use the option `strict_mcp_config`",
    "--max-turns": "use the option `max_turns`",
    "--max-budget-usd": "use the option `max_budget_usd`",
    "--fallback-model": "use the option `fallback_model`",
    "--append-system-prompt": "the run's instructions stand there",
    "--append-system-prompt-file": "the run's instructions stand there",
}
"""Arguments that are said in another way, and how."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """As written, with defaults."""

    program: _Text | None = None
    config_dir: _Text | None = None
    permission_mode: PermissionMode = "dontAsk"
    allow: tuple[_Text, ...] = ()
    setting_sources: tuple[SettingSource, ...] = ()
    strict_mcp_config: bool = True
    background: bool = False
    max_turns: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    max_budget_usd: Annotated[float, msgspec.Meta(gt=0, le=1e6)] | None = None
    fallback_model: tuple[_Text, ...] = ()
    args: tuple[str, ...] = ()
    env: dict[Annotated[str, msgspec.Meta(pattern=_VARIABLE + "$")], str] = {}
    pass_env: tuple[Annotated[str, msgspec.Meta(pattern=_VARIABLE + r"\*?$")], ...] = ()
    stdin: Literal["none"] = "none"


def parse_options(options: Mapping[str, object]) -> Options:
    """Return the options of a ``claude-code`` agent.

    Raises:
        ConfigError: Names the key and what is allowed.
    """
    found = parsed(options, Options, runtime=NAME)
    _check(found)
    return found


def _check(options: Options) -> None:
    check_names((*options.env, *options.pass_env))
    for argument in options.args:
        reason = ELSEWHERE.get(argument.partition("=")[0])
        if reason is not None:
            raise ConfigError(f"`args` cannot hold {argument}: {reason}")
    for rule in options.allow:
        if "," in rule.partition("(")[0]:
            raise ConfigError(f"`allow` is a list of rules; {rule!r} holds several")
    texts = (
        *(options.program or "", options.config_dir or "", *options.args, *options.allow),
        *(*options.fallback_model, *options.env.values()),
    )
    if any("\0" in text for text in texts):
        raise ConfigError("`program`, `args`, `allow` and `env` cannot hold NUL characters")
