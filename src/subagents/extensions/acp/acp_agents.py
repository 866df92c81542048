"""What is known of each agent that speaks the Agent Client Protocol, and its options.

The protocol leaves open what matters most to a supervisor: whether a second prompt steers, waits or
ends the first one, whether a session can be resumed, how a tool is switched off. Every field here
was found by running the program; with which versions is in ``versions_seen.json`` of the
extension ``conversation``. An agent that is in no row gets ``UNKNOWN_AGENT``: nothing is claimed of
it.

The options of an ``acp`` agent (``[agents.<id>.runtime_options]``; docs/runtimes/acp.md):

``agent``    One of the table in ``acp_agents``; it says how that program behaves.
``command``  Program and arguments of any other agent; with ``agent``: how that one is started
             here (its own arguments follow).
``args``     More arguments, after those.
``auth``     The method to ``authenticate`` with; "" = none.
``mode``     The session mode to work in; "" = the agent's own default.
``config``   Session configuration options to set: ``{ name = value }``.
``handshake_seconds``  How long each step may take before its turn has begun; default 120.

Besides them each field of ``AgentFacts`` that describes behaviour may be given, for an agent that
is in no row or does better by now.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal

import msgspec

from subagents.config.settings import nearest
from subagents.domain.run.values import Value, replace
from subagents.errors import ConfigError
from subagents.extensions.acp.acp_stream import RESUMED
from subagents.runtimes.runtime_options import ConversationOptions, parsed


class SecondPrompt(StrEnum):
    """What a prompt does to a turn that is under way."""

    STEERS = "steers"
    """The model reads it with its next request; both prompts are answered."""
    QUEUES = "queues"
    """It is a turn of its own, after the present one."""
    CANCELS = "cancels"
    """It ends the present turn."""
    PULLED = "pulled"
    """It cancels, too; but after each batch of tools the agent asks for messages (``PULL``)."""


class TokenSource(StrEnum):
    """Where an agent reports the tokens of a turn."""

    TURN = "turn"
    """``usage`` of the answer to a prompt covers all of its requests."""
    REQUESTS = "requests"
    """``_meta.usage`` of a message chunk, once per request to the model."""
    QUOTA = "quota"
    """``_meta.quota.token_count`` of the answer to a prompt."""
    UNKNOWN = "unknown"
    """Nowhere, or only those of the last request."""


class ScopeMeans(StrEnum):
    """What keeps the agent from a tool."""

    CLAUDE = "claude"
    """``_meta.claudeCode.options`` of the session: the tools are not there."""
    OPENCODE = "opencode"
    """``permission`` in ``OPENCODE_CONFIG_CONTENT``: the tools are not there."""
    GEMINI = "gemini"
    """``--admin-policy`` with a file of the attempt: the tools are not there."""
    QWEN = "qwen"
    """``--exclude-tools``, ``--core-tools``: the tools are not there."""
    COPILOT = "copilot"
    """``--excluded-tools``, ``--available-tools``: the tools are not there."""
    KILO = "kilo"
    """``permission`` in ``KILO_CONFIG_CONTENT``: the tools are not there."""
    ASKS = "asks"
    """The mode ``asking_mode``, in which it asks before every tool, and is refused."""
    NONE = "none"


class ServerMeans(StrEnum):
    """What keeps the agent from MCP servers that the session did not name."""

    CLAUDE = "claude"
    """``_meta.claudeCode.options`` of the session: it reads no settings and no other list."""
    NAMES = "names"
    """``--allowed-mcp-server-names``."""
    NONE = "none"
    """Nothing."""


PULL: Final = "craft/drainMidTurnQueue"
"""The request by which Qwen Code asks whether there is anything for its model to read."""


class AgentFacts(Value, frozen=True):
    """One agent. A field of the same name in ``runtime_options`` overrides it."""

    command: tuple[str, ...] = ()
    """How the program is started; it is looked for on the worker's PATH."""
    arguments: tuple[str, ...] = ()
    """What makes an ACP agent of it, behind ``command`` wherever that is installed."""
    package: str = ""
    """Where it comes from, for people."""
    env: Mapping[str, str] = {}
    """Set for it, unless the agent's ``env`` says otherwise; ``{directory}`` is the attempt's."""
    files: Mapping[str, str] = {}
    """Put into the attempt's directory."""
    passes: tuple[str, ...] = ()
    """Names, or prefixes ``NAME_*``, of the daemon's variables that it cannot log in without."""
    auth: str | None = None
    """The method to ``authenticate`` with; None = it finds its login by itself."""
    mode: str | None = None
    """The session mode in which it asks nobody; None = it has none, and questions are answered."""
    asking_mode: str | None = None
    second_prompt: SecondPrompt = SecondPrompt.QUEUES
    resumes: bool = False
    """Whether a new process can resume a session of an old one."""
    tokens: TokenSource = TokenSource.UNKNOWN
    cost: bool = False
    """Whether ``usage_update`` reports dollars."""
    model_argument: str | None = None
    """The argument that names the model; None = it is set in the session."""
    takes_model: bool = True
    system_in_meta: bool = False
    """``_meta.systemPrompt`` is appended to its own; else it stands before the first prompt."""
    session_meta: Mapping[str, object] = {}
    """Sent as ``_meta`` with the session."""
    scope: ScopeMeans = ScopeMeans.NONE
    needs_pipe: bool = False
    """Its stdout must be a pipe: what is made with Python's asyncio takes no file."""
    failure_text: str | None = None
    """Pattern of a last message that means that the turn failed, though it ended well."""


UNKNOWN_AGENT: Final = AgentFacts(takes_model=False, needs_pipe=True)
"""The facts of an agent that nobody here has run: it gets its turn, and no promise is made."""

AGENTS: Final[Mapping[str, AgentFacts]] = {
    "claude-agent-acp": AgentFacts(
        command=("claude-agent-acp",),
        package="npm @agentclientprotocol/claude-agent-acp",
        passes=("ANTHROPIC_*", "CLAUDE_*"),
        mode="bypassPermissions",
        second_prompt=SecondPrompt.STEERS,
        resumes=True,
        tokens=TokenSource.TURN,
        cost=True,
        system_in_meta=True,
        scope=ScopeMeans.CLAUDE,
    ),
    "codex-acp": AgentFacts(
        command=("codex-acp",),
        package="npm @agentclientprotocol/codex-acp",
        passes=("CODEX_*", "OPENAI_*"),
        mode="agent-full-access",
        # Else the first turn begins without the tools of a server that takes a second to start.
        session_meta={"mcpStartupAwaitTimeoutMs": 60_000},
        second_prompt=SecondPrompt.QUEUES,
        resumes=True,
        tokens=TokenSource.TURN,
    ),
    "gemini": AgentFacts(
        command=("gemini",),
        arguments=("--acp", "--skip-trust"),
        package="npm @google/gemini-cli",
        env={"GEMINI_CLI_NO_RELAUNCH": "true"},
        passes=("GEMINI_*", "GOOGLE_*"),
        auth="gemini-api-key",
        mode="yolo",
        second_prompt=SecondPrompt.CANCELS,
        tokens=TokenSource.QUOTA,
        model_argument="-m",
        scope=ScopeMeans.GEMINI,
    ),
    "goose": AgentFacts(
        command=("goose",),
        arguments=("acp",),
        package="npm @aaif/goose-binary-linux-x64",
        passes=("GOOSE_*", "OPENAI_*", "ANTHROPIC_*", "GOOGLE_*"),
        mode="auto",
        asking_mode="approve",
        failure_text=r"\ARan into this error: (?P<error>.*?)\s*Please retry if you think",
        second_prompt=SecondPrompt.QUEUES,
        resumes=True,
        scope=ScopeMeans.ASKS,
    ),
    "opencode": AgentFacts(
        command=("opencode",),
        arguments=("acp",),
        package="npm opencode-ai",
        env={"OPENCODE_DISABLE_AUTOUPDATE": "1"},
        passes=("OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "OPENROUTER_*"),
        second_prompt=SecondPrompt.STEERS,
        resumes=True,
        cost=True,
        scope=ScopeMeans.OPENCODE,
    ),
    "openclaw": AgentFacts(
        command=("openclaw",),
        arguments=("acp",),
        package="npm openclaw",
        passes=("OPENCLAW_*",),
        second_prompt=SecondPrompt.CANCELS,
        takes_model=False,
    ),
    "qwen": AgentFacts(
        command=("qwen",),
        arguments=("--acp",),
        # Without the first, its first turn begins before our tools are there; without the second
        # they stand behind a search that few models make. A default: the user's own value wins.
        env={
            "QWEN_CODE_LEGACY_MCP_BLOCKING": "1",
            "QWEN_CODE_SYSTEM_DEFAULTS_PATH": "{directory}/qwen-defaults.json",
        },
        files={"qwen-defaults.json": '{"tools": {"toolSearch": {"threshold": 10}}}'},
        package="npm @qwen-code/qwen-code",
        passes=("OPENAI_*", "DASHSCOPE_*", "QWEN_*"),
        mode="yolo",
        second_prompt=SecondPrompt.PULLED,
        resumes=True,
        tokens=TokenSource.REQUESTS,
        model_argument="--model",
        scope=ScopeMeans.QWEN,
    ),
    "copilot": AgentFacts(
        command=("copilot",),
        arguments=("--acp", "--no-auto-update"),
        package="npm @github/copilot",
        passes=("COPILOT_*",),
        second_prompt=SecondPrompt.CANCELS,
        resumes=True,
        tokens=TokenSource.TURN,
        model_argument="--model",
        scope=ScopeMeans.COPILOT,
        failure_text=r"\AError: (?P<error>.+)",
    ),
    "kilo": AgentFacts(
        command=("kilo",),
        arguments=("acp",),
        package="npm @kilocode/cli",
        # Without the second it tries again for ever, and says nothing.
        env={"KILO_DISABLE_AUTOUPDATE": "1", "KILO_SESSION_RETRY_LIMIT": "3"},
        passes=("KILO_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "OPENROUTER_*"),
        second_prompt=SecondPrompt.STEERS,
        resumes=True,
        cost=True,
        scope=ScopeMeans.KILO,
    ),
    "cline": AgentFacts(
        command=("cline",),
        # It asks before each tool, and the agents that it starts do not: those are refused.
        arguments=("--acp", "--auto-approve", "false"),
        package="npm cline",
        env={"CLINE_NO_AUTO_UPDATE": "1"},
        passes=("CLINE_*",),
        asking_mode="act",
        second_prompt=SecondPrompt.QUEUES,
        resumes=True,
        scope=ScopeMeans.ASKS,
    ),
    "pi-acp": AgentFacts(
        command=("pi-acp",),
        package="npm pi-acp (and @earendil-works/pi-coding-agent)",
        env={"PI_SKIP_VERSION_CHECK": "1"},
        passes=("PI_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "OPENROUTER_*"),
        second_prompt=SecondPrompt.QUEUES,
        resumes=True,
        failure_text=rf"\A(?P<error>){re.escape(RESUMED)}\Z",
    ),
}

_SERVER_MEANS: Final[Mapping[object, ServerMeans]] = {
    "claude-agent-acp": ServerMeans.CLAUDE,
    "gemini": ServerMeans.NAMES,
    "qwen": ServerMeans.NAMES,
}
"""Not in the rows above: those are part of a turn's checkpoint."""


SERVERS_ARGUMENT: Final[Mapping[object, str]] = {"copilot": "--additional-mcp-config"}
"""Agents that take servers over HTTP alone with a session, and these with this argument."""
UNSERVED: Final[Mapping[object, str]] = {"pi-acp": "pi", "cline": "cline", "openclaw": "openclaw"}
"""Agents that start no servers of a session, and their programs for ``mcp install``."""


def server_means(options: Mapping[str, object]) -> ServerMeans:
    """What keeps the agent of these options from MCP servers that the session did not name."""
    return _SERVER_MEANS.get(options.get("agent"), ServerMeans.NONE)


# -- options --------------------------------------------------------------------------------------


class AcpOptions(ConversationOptions, frozen=True, kw_only=True):
    """As written; None = as in the table."""

    agent: str | None = None
    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] | None = None
    args: tuple[str, ...] = ()
    stdin: Literal["none"] = "none"
    auth: str | None = None
    mode: str | None = None
    config: dict[str, str | bool] = {}
    asking_mode: str | None = None
    second_prompt: SecondPrompt | None = None
    resumes: bool | None = None
    tokens: TokenSource | None = None
    cost: bool | None = None
    model_argument: str | None = None
    takes_model: bool | None = None
    system_in_meta: bool | None = None
    needs_pipe: bool | None = None
    scope: Literal["asks", "none"] | None = None


_FACTS: Final = tuple(
    name
    for name in AcpOptions.__struct_fields__
    if name in AgentFacts.__struct_fields__ and name not in {"command", "env", "scope"}
)


def parse_options(options: Mapping[str, object]) -> AcpOptions:
    """Return the options of an ``acp`` agent.

    Raises:
        ConfigError: Names the key and what is allowed.
    """
    found = parsed(options, AcpOptions, runtime="acp")
    _check_agent(found)
    return found


def facts_of(options: AcpOptions) -> AgentFacts:
    """What is known of the agent, overridden by its options."""
    facts = UNKNOWN_AGENT if options.agent is None else AGENTS[options.agent]
    given = {name: getattr(options, name) for name in _FACTS}
    facts = replace(facts, **{name: value for name, value in given.items() if value is not None})
    if options.scope is not None:
        facts = replace(facts, scope=ScopeMeans(options.scope))
    return replace(facts, command=options.command or facts.command)


def _check_agent(options: AcpOptions) -> None:
    known = ", ".join(AGENTS)
    if options.agent is not None and options.agent not in AGENTS:
        near = nearest(options.agent, AGENTS)
        meant = f"did you mean {near!r}?" if near else f"known are {known};"
        raise ConfigError(
            f"`agent`: {options.agent!r} is in no row of the table of ACP agents; {meant} "
            "for any other agent set `command` instead"
        )
    if options.agent is None and options.command is None:
        raise ConfigError(
            f'runtime "acp" needs `runtime_options.agent` (one of {known}) or '
            "`runtime_options.command`, the program and arguments of any other ACP agent"
        )
    if options.command is not None and not options.command[0]:
        raise ConfigError("`command` must begin with a program")
