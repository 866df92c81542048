"""What `subagents.toml` can say, as frozen values; every limit names its unit and has bounds.

The annotations here are the only place where a key, its bounds and its meaning are written:
the loader's messages, the JSON Schema and docs/configuration.md are all derived from them
(`keys.py`, `schema.py`). Adding a field adds the key everywhere. Extensions bring tables of their
own, with the same annotations (`extension.SettingsTable`).
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from subagents.domain.rules.budgets.shared_caps import DAILY, SharedCap
from subagents.domain.run.access import AccessLevel
from subagents.domain.run.alert import AlertKind, AlertRules, OnStuck
from subagents.domain.run.spec import COST_USD_MAX, TOKENS_MAX, Budget, Network
from subagents.errors import ConfigError, NotFound
from subagents.text import whole_ms

EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not bound
"""Addresses that mean all of a machine's, so that no client can connect to one."""
DEFAULT_LANE: Final = "default"
"""Its slots are `agents.defaults.subagents.max_concurrent`."""
ANY_AGENT: Final = "*"
RUNTIMES: Final = ("command", "scripted", "claude-code", "codex", "acp", "llm")
"""The runtimes of this package; others come as plugins (``RUNTIME_PLUGINS``)."""
PROGRAM_RUNTIMES: Final = ("claude-code", "codex", "acp", "llm")
"""The runtimes that know their program: all their options are in ``runtime_options``."""
OPTIONS_ELSEWHERE: Final = (
    *("env", "pass_env", "command", "stdin", "script", "limits"),
    "mcp_servers",
)
"""Keys of an agent that its runtime gets besides ``runtime_options``."""
RUNTIME_PLUGINS: Final = "subagents.runtimes"
"""Entry-point group of runtimes that other packages bring; a name of ours is always ours."""

GUESSED_CHARS_MAX: Final = 100
GUESSED_NAMES_MAX: Final = 1_000

NAME_PATTERN: Final = r"^[a-z0-9][a-z0-9_-]{0,63}$"
STORE_PATTERN: Final = r"^postgresql://\S+$"
NODE_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
TAG_PATTERN: Final = r"^[^\x00-\x1f\x7f]{1,200}$"
VARIABLE_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"
HEADER_PATTERN: Final = r"^[A-Za-z0-9_-]+$"
LOOPBACK_PATTERN: Final = r"^(localhost|::1|127(\.(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])){3})$"
HOST_PATTERN: Final = r"^([A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9a-fA-F:.]{2,45})$"
URL_PATTERN: Final = r"^https?://[^\s/?#@]+(/[^\s?#@]*)?$"
WEBHOOK_PATTERN: Final = r"^https?://[^\s/?#@]+([/?][^\s#]*)?$"

Name = Annotated[str, Meta(pattern=NAME_PATTERN)]
Text = Annotated[str, Meta(min_length=1)]
VariableName = Annotated[str, Meta(pattern=VARIABLE_PATTERN)]
HeaderName = Annotated[str, Meta(pattern=HEADER_PATTERN, extra={"placeholder": "<header>"})]
NodeName = Annotated[str, Meta(pattern=NODE_PATTERN)]
Url = Annotated[str, Meta(pattern=URL_PATTERN)]


class CostTier(StrEnum):
    FREE = "free"
    CHEAP = "cheap"
    MEDIUM = "medium"
    EXPENSIVE = "expensive"


class Stdin(StrEnum):
    """What a `command` worker reads on its standard input."""

    NONE = "none"
    TASK = "task"
    PROMPT = "prompt"


class Inconsistency(NamedTuple):
    """Two values that do not fit each other."""

    key: str
    """The dotted key of one of them."""
    text: str
    hint: str


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the file; keys are spelled as in TOML (snake_case)."""

    TABLE: ClassVar[str] = ""
    """Its name in the file, for the table of an extension (`extension.SettingsTable`)."""

    @classmethod
    def inconsistencies(cls, settings: "Settings") -> Iterator[Inconsistency]:
        """Yield what only all of the file can show to be wrong, of the table of an extension."""
        table = settings.tables.get(cls.TABLE, {})
        for each in table.values() if isinstance(table, dict) else (table,):
            if (found := each.inconsistency(settings)) is not None:
                yield found

    def inconsistency(self, settings: "Settings") -> Inconsistency | None:
        """Return the same of this table alone, or of one of several; see `inconsistencies`."""
        del settings
        return None


S = TypeVar("S", bound=Section)


class SubagentDefaults(Section, frozen=True):
    """`[agents.defaults.subagents]`: limits that hold for every agent."""

    max_spawn_depth: Annotated[
        int,
        Meta(ge=0, le=32, description="How deep runs may spawn runs; 1 = children are leaves."),
    ] = 1
    max_children_per_agent: Annotated[
        int,
        Meta(
            ge=1,
            le=100_000,
            description="Active children of one agent's session; those that wait for other runs "
            "do not count. What an operator spawns is queued, never refused.",
        ),
    ] = 5
    max_concurrent: Annotated[
        int, Meta(ge=1, le=10_000, description='Slots of the lane "default".')
    ] = 8
    archive_after_minutes: Annotated[
        int,
        Meta(
            ge=0,
            le=525_600,
            description="Ended runs leave lists and trees this long after their end, and after"
            " they were read.",
        ),
    ] = 7 * 24 * 60
    run_timeout_seconds: Annotated[
        float, Meta(ge=0, le=31_536_000, description="Deadline of each attempt; 0 = none.")
    ] = 0
    announce_timeout_ms: Annotated[
        int, Meta(ge=1, le=3_600_000, description="Longest single try to deliver an announcement.")
    ] = 120_000
    max_announce_chars: Annotated[
        int,
        Meta(ge=100, le=1_000_000, description="A longer result is cut in the announcement only."),
    ] = 8000
    agent: Annotated[
        Name | None,
        Meta(description="Agent of a spawn that names none and whose requester has none."),
    ] = None
    max_transcript_mb: Annotated[
        float,
        Meta(
            ge=0.1,
            le=10_000,
            description="Transcript kept of each run, in megabytes; the oldest lines go first.",
        ),
    ] = 32
    summarizer_agent: Annotated[
        Name | None,
        Meta(
            description="Cheap agent that writes `log --summary`; unset = a digest made without "
            "a model."
        ),
    ] = None


class AgentSubagents(Section, frozen=True):
    """`[agents.<id>.subagents]`: what this agent may spawn."""

    allow_agents: Annotated[
        tuple[str, ...],
        Meta(
            max_length=1000,
            description='Agents it may spawn besides itself; "*" = any configured one, [] = none.',
        ),
    ] = ()


class Capabilities(Section, frozen=True):
    """`[agents.<id>.capabilities]`: the card that suggestions and `agents_list` show."""

    tags: Annotated[
        tuple[Text, ...], Meta(max_length=100, description="What it is good at, in single words.")
    ] = ()
    cost_tier: Annotated[CostTier | None, Meta(description="What a run costs, roughly.")] = None
    typical_latency: Annotated[
        Annotated[str, Meta(max_length=100)] | None,
        Meta(description='How long a run takes, such as "90s".'),
    ] = None
    notes: Annotated[
        Annotated[str, Meta(max_length=4000)] | None,
        Meta(description="What a requester should know before choosing it."),
    ] = None


Percent = Annotated[int, Meta(ge=1, le=100)]


# `dict=True` here and below: a frozen struct has no other place for its cached properties.
class AgentAlerts(Section, frozen=True, dict=True):
    """`[agents.<id>.alerts]`: which alerts its requester gets while it works."""

    stuck_seconds: Annotated[
        float, Meta(ge=1, le=86_400, description="Silence after which it counts as stuck.")
    ] = 300
    stuck_tool_seconds: Annotated[
        float, Meta(ge=1, le=86_400, description="The same while a tool runs.")
    ] = 1200
    on_stuck: Annotated[
        OnStuck,
        Meta(
            description="What is done besides the alert: nothing (tell), ask the worker where it "
            "stands (steer), end the run (cancel), or a blocker for its requester (escalate)."
        ),
    ] = OnStuck.TELL
    budget_percent: Annotated[
        tuple[Percent, ...],
        Meta(max_length=10, description="Shares of its budget at which its requester is alerted."),
    ] = (50, 80, 100)
    cost_usd: Annotated[
        tuple[Annotated[float, Meta(ge=0.01, le=1e6)], ...],
        Meta(max_length=20, description="Costs of a run without a budget at which it is alerted."),
    ] = (1.0, 5.0, 10.0, 25.0)
    context_percent: Annotated[
        tuple[Percent, ...],
        Meta(max_length=10, description="How full the model's window is when it is alerted."),
    ] = (50, 75, 90)
    failures: Annotated[
        int, Meta(ge=2, le=100, description="Tools that fail in a row before that is news.")
    ] = 3
    commit_batch_seconds: Annotated[
        float, Meta(ge=0, le=3600, description="Commits within this time become one line.")
    ] = 30
    tokens_per_hour: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="How many tokens of alerts are pushed per run and hour; the others become "
            "one digest line. Questions, blockers and the end are never held back.",
        ),
    ] = 600
    off: Annotated[
        tuple[AlertKind, ...],
        Meta(description="Kinds that are never pushed; they stay on the event stream."),
    ] = ()

    @cached_property
    def rules(self) -> AlertRules:
        """These settings as the domain has them, in milliseconds."""
        return AlertRules(
            stuck_ms=whole_ms(self.stuck_seconds * 1000),
            stuck_tool_ms=whole_ms(self.stuck_tool_seconds * 1000),
            on_stuck=self.on_stuck,
            budget_percent=tuple(sorted(set(self.budget_percent))),
            cost_usd=tuple(sorted(set(self.cost_usd))),
            context_percent=tuple(sorted(set(self.context_percent))),
            failures=self.failures,
            commit_batch_ms=whole_ms(self.commit_batch_seconds * 1000),
            tokens_per_hour=self.tokens_per_hour,
            off=self.off,
        )


class AgentLimits(Section, frozen=True, dict=True):
    """`[agents.<id>.limits]`: what the kernel gives each worker at most, all its processes."""

    memory_mb: Annotated[
        Annotated[int, Meta(ge=16, le=16_777_216)] | None,
        Meta(
            description="Memory of a worker with all its processes, in megabytes of 1,048,576 "
            "bytes, without swap; the kernel ends processes above it (systemd's MemoryMax). "
            "Unset = no limit."
        ),
    ] = None
    pids: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None,
        Meta(
            description="Processes and threads of a worker at a time; it can start no more "
            "(systemd's TasksMax). Unset = no limit."
        ),
    ] = None
    cpu_percent: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)] | None,
        Meta(
            description="Processor time of a worker, 100 = one processor; it is slowed down "
            "(systemd's CPUQuota). Unset = no limit."
        ),
    ] = None

    @cached_property
    def given(self) -> dict[str, int]:
        """Those that are set."""
        return {
            name: value
            for name in self.__struct_fields__
            if (value := getattr(self, name)) is not None
        }


class AgentCourier(Section, frozen=True):
    """`[agents.<id>.courier]`: how announcements reach its sessions outside; user's file only."""

    command: Annotated[
        Annotated[tuple[str, ...], Meta(min_length=1)] | None,
        Meta(
            description="Program and arguments run for each announcement; {text}, {textJson}, "
            "{sessionKey} and {runId} inside an argument, the text on stdin too. Exit 0 = handed "
            "over. Only from your own file."
        ),
    ] = None
    webhook: Annotated[
        Annotated[str, Meta(pattern=WEBHOOK_PATTERN)] | None,
        Meta(
            description="Address to which each announcement is posted as JSON; 2xx = handed over. "
            "Tried when `command` is unset or failed. Only from your own file."
        ),
    ] = None
    webhook_secret_env: Annotated[
        VariableName | None,
        Meta(
            description="Variable of the daemon's environment whose value signs what is posted "
            "(HMAC-SHA256); unset = unsigned."
        ),
    ] = None
    webhook_link_local: Annotated[
        bool,
        Meta(
            description="Let the webhook reach link-local and cloud metadata addresses "
            "(169.254.0.0/16, fe80::/10, …), which are refused otherwise."
        ),
    ] = False


class AgentIsolation(StrEnum):
    """What of ``Isolation`` an agent's table can say for all of its runs."""

    NONE = "none"
    SANDBOX = "sandbox"


class Agent(Section, frozen=True, dict=True):
    """`[agents.<id>]`: a named worker definition; without `runtime` it only spawns."""

    runtime: Annotated[
        Text | None,
        Meta(
            description="Adapter that runs it; without one the agent can call, but not work.",
            extra={"choices": RUNTIMES, "plugins": RUNTIME_PLUGINS},
        ),
    ] = None
    model: Annotated[Text | None, Meta(description="Model handed to the runtime.")] = None
    thinking: Annotated[
        Text | None,
        Meta(description="Thinking level handed to the runtime, in its program's own words."),
    ] = None
    description: Annotated[
        Annotated[str, Meta(max_length=4000)] | None,
        Meta(description="One line for people and agents who choose."),
    ] = None
    instructions: Annotated[
        Annotated[str, Meta(min_length=1, max_length=32_768)] | None,
        Meta(
            description="What each of its workers reads in its system prompt, before what the run "
            "itself says; plain commands have none."
        ),
    ] = None
    tools: Annotated[
        tuple[Text, ...] | None,
        Meta(description="Tools it may use at most; unset = the runtime's own."),
    ] = None
    mcp_servers: Annotated[
        tuple[Name, ...] | None,
        Meta(
            description="The only MCP servers of its workers besides ours, by their names in "
            "`[mcp_servers]`; [] = none. Unset = what its program has."
        ),
    ] = None
    access: Annotated[
        AccessLevel | None,
        Meta(
            description="What its workers may do at most: read files; also write where they work, "
            "and run commands that can do no more; or full, all that you may. Unset = full, unless "
            "its runtime's own options say less."
        ),
    ] = None
    isolation: Annotated[
        AgentIsolation,
        Meta(
            description="sandbox: its workers see nothing of your files but their working "
            "directory, whatever a spawn says; runtime command."
        ),
    ] = AgentIsolation.NONE
    network: Annotated[
        Network | None,
        Meta(
            description="none: its workers never have the network; host: they have it also in a "
            "sandbox, where without this key they have none."
        ),
    ] = None
    on_limit: Annotated[
        tuple[Text, ...],
        Meta(
            max_length=8,
            description="What its runs do when its model's provider refuses: `wait 3d`, "
            "`agent:codex`, `model:NAME`, one after another. Unset = they wait up to 6 h.",
        ),
    ] = ()
    subagents: AgentSubagents = AgentSubagents()
    capabilities: Capabilities = Capabilities()
    courier: AgentCourier = AgentCourier()
    alerts: AgentAlerts = AgentAlerts()
    limits: AgentLimits = AgentLimits()
    run_timeout_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=31_536_000)] | None,
        Meta(description="Deadline of each attempt; unset = agents.defaults, 0 = none."),
    ] = None
    cwd: Annotated[
        Text | None,
        Meta(
            description="Working directory of spawns that name none; relative to the file that "
            "says so, ~ is the home directory."
        ),
    ] = None
    lane: Annotated[Name | None, Meta(description='Lane its runs wait in; unset = "default".')] = (
        None
    )
    place: Annotated[
        NodeName | None,
        Meta(
            description="Label of the nodes on which its workers run; unset = any node, first the "
            "one that decides about the run. Only in a cluster."
        ),
    ] = None
    grace_seconds: Annotated[
        float,
        Meta(ge=0, le=300, description="Time between TERM and KILL when an attempt is ended."),
    ] = 5
    command: Annotated[
        Annotated[tuple[str, ...], Meta(min_length=1)] | None,
        Meta(description="Program and arguments; {task} inside one argument is the task."),
    ] = None
    stdin: Annotated[
        Stdin, Meta(description="What the program reads: nothing, the task, or the whole prompt.")
    ] = Stdin.NONE
    env: Annotated[
        dict[VariableName, str], Meta(description="Environment variables set for its workers.")
    ] = {}
    pass_env: Annotated[
        tuple[VariableName, ...],
        Meta(description="Names of variables its workers get from the daemon's environment."),
    ] = ()
    script: Annotated[
        tuple[dict[str, object], ...] | None,
        Meta(description='Steps that the runtime "scripted" plays.'),
    ] = None
    runtime_options: Annotated[
        dict[str, object],
        Meta(description="What is the runtime's own to understand, such as `agent` of `acp`."),
    ] = {}

    @cached_property
    def options(self) -> dict[str, object]:
        """The runtime section, in JSON values: what `Launch.options` carries and a run stores."""
        options: dict[str, object] = dict(self.runtime_options)
        has_command = self.command is not None and self.runtime not in PROGRAM_RUNTIMES
        is_program = has_command or self.runtime not in {None, "scripted"}
        if self.command is not None and has_command:
            options |= {"command": list(self.command), "stdin": self.stdin.value}
        if is_program or self.env:
            options["env"] = dict(self.env)
        if is_program or self.pass_env:
            options["pass_env"] = list(self.pass_env)
        if self.limits.given:
            options["limits"] = self.limits.given
        if self.mcp_servers is not None:
            options["mcp_servers"] = list(self.mcp_servers)
        if self.script is not None and self.runtime not in PROGRAM_RUNTIMES:
            options["script"] = [dict(step) for step in self.script]
        return options


class LaneSettings(Section, frozen=True):
    """`[lanes.<name>]`: a named pool of slots."""

    slots: Annotated[
        int, Meta(ge=1, le=10_000, description="Runs of this lane that work at the same time.")
    ] = 1


class VerificationSettings(Section, frozen=True):
    """`[verification]`."""

    dangerously_allow_validation_commands: Annotated[
        bool,
        Meta(
            description="Let the contracts of agents run shell commands, too. They are written by "
            "a model, and run with your rights where there is no sandbox."
        ),
    ] = False
    sandbox: Annotated[
        bool,
        Meta(
            description="Run commands of contracts in bubblewrap where it works: without network, "
            "and with the work directory as the only one they can write to."
        ),
    ] = True


class Retention(Section, frozen=True):
    """`[retention]`."""

    result_retention_days: Annotated[
        int,
        Meta(ge=7, le=3650, description="Consumed results and their runs are kept this long."),
    ] = 7
    max_result_mb: Annotated[
        float,
        Meta(
            ge=0.1,
            le=1024,
            description="Kept of one result, in megabytes of 1,048,576 bytes; of a longer one the "
            "end, and every answer says that it was cut. Read when the daemon starts.",
        ),
    ] = 64

    @property
    def result_bytes_max(self) -> int:
        return int(self.max_result_mb * 1024 * 1024)


class DaemonSettings(Section, frozen=True):
    """`[daemon]`: read once, when the daemon starts."""

    lease_seconds: Annotated[
        float,
        Meta(ge=0.1, le=3600, description="Right to act for an attempt without renewing it."),
    ] = 30
    sweep_seconds: Annotated[
        float, Meta(ge=0.1, le=3600, description="Time between two recovery passes.")
    ] = 60
    store: Annotated[
        Annotated[str, Meta(pattern=STORE_PATTERN)] | None,
        Meta(
            description="Address of the database, which no project can set; unset = a SQLite file "
            "in the state directory.",
            extra={"hidden": True},
        ),
    ] = None
    node: Annotated[
        NodeName | None,
        Meta(
            description="Name of this daemon, which each attempt that it starts records; unset = "
            "the host's name."
        ),
    ] = None
    http_port: Annotated[
        int,
        Meta(
            ge=0,
            le=65_535,
            description="TCP port on which the daemon answers besides its socket, to whoever "
            "presents a token; 0 = none.",
        ),
    ] = 0
    http_host: Annotated[
        str,
        Meta(
            pattern=HOST_PATTERN,
            description="Address of `http_port`. One that other machines can reach needs "
            "`tls_cert` and `tls_key`.",
        ),
    ] = "127.0.0.1"
    tls_cert: Annotated[
        Text | None,
        Meta(
            description="File with the certificate for `http_port` and those that it was issued "
            "by, in PEM; then only https is spoken there. Read again when it changes."
        ),
    ] = None
    tls_key: Annotated[
        Text | None, Meta(description="File with the key of `tls_cert`, in PEM, not encrypted.")
    ] = None

    @property
    def http_scheme(self) -> str:
        """What is spoken over TCP."""
        return "http" if self.tls_cert is None else "https"

    @property
    def http_url(self) -> str | None:
        """Where it answers over TCP; None when it does not."""
        host = f"[{self.http_host}]" if ":" in self.http_host else self.http_host
        return f"{self.http_scheme}://{host}:{self.http_port}" if self.http_port else None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach `http_host`."""
        return re.fullmatch(LOOPBACK_PATTERN, self.http_host) is not None


class SpendingCap(Section, frozen=True):
    """What several runs may use together."""

    max_tokens: Annotated[
        Annotated[int, Meta(ge=1, le=TOKENS_MAX)] | None,
        Meta(description="Uncached tokens, read and written; unset = no limit."),
    ] = None
    max_cost_usd: Annotated[
        Annotated[float, Meta(ge=0.000_001, le=COST_USD_MAX)] | None,
        Meta(description="US dollars, as far as runtimes report them; unset = no limit."),
    ] = None


class DailyBudget(SpendingCap, frozen=True):
    """`[budgets.daily]`: of all runs, on each day in the daemon's time zone."""

    agents: dict[str, SpendingCap] = {}
    tags: dict[str, SpendingCap] = {}


class Budgets(Section, frozen=True):
    """`[budgets]`: read once, when the daemon starts; the user's own file and environment only."""

    daily: DailyBudget = DailyBudget()
    tags: dict[str, SpendingCap] = {}

    @property
    def caps(self) -> tuple[SharedCap, ...]:
        """Each cap that limits anything."""
        found = [SharedCap(key=DAILY, limit=_limit(self.daily), is_daily=True)]
        for name, cap in self.daily.agents.items():
            key = f"{DAILY}.agents.{name}"
            found.append(SharedCap(key=key, limit=_limit(cap), is_daily=True, agent=name))
        for name, cap in self.daily.tags.items():
            key = f"{DAILY}.tags.{name}"
            found.append(SharedCap(key=key, limit=_limit(cap), is_daily=True, tag=name))
        for name, cap in self.tags.items():
            found.append(SharedCap(key=f"budgets.tags.{name}", limit=_limit(cap), tag=name))
        return tuple(each for each in found if each.limit != Budget())


def _limit(cap: SpendingCap) -> Budget:
    return Budget(max_tokens=cap.max_tokens, max_cost_usd=cap.max_cost_usd)


class SecretSource(Section, frozen=True):
    """`[secrets.<name>]`: where `secret:<name>` comes from, when not from the keyring."""

    command: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="Program and arguments that print the secret, such as "
            '["pass", "show", "x"]; run without a shell when an attempt begins. Only from your '
            "own file.",
        ),
    ]


class Settings(Section, frozen=True):
    """Everything configured, validated.

    `defaults` is `[agents.defaults.subagents]`; `agents` holds all other tables of `[agents]`.
    """

    defaults: SubagentDefaults = SubagentDefaults()
    agents: dict[str, Agent] = {}
    lanes: dict[str, LaneSettings] = {}
    verification: VerificationSettings = VerificationSettings()
    retention: Retention = Retention()
    daemon: DaemonSettings = DaemonSettings()
    budgets: Budgets = Budgets()
    secrets: dict[str, SecretSource] = {}
    tables: dict[str, Any] = {}
    """Tables of extensions, by name: a `Section`, or `Section`s by their own names."""

    def table(self, kind: type[S]) -> S:
        """Return that table of an extension; its defaults where nothing was read."""
        found: S = self.tables.get(kind.TABLE) or kind()
        return found

    def named(self, kind: type[S]) -> Mapping[str, S]:
        """Return the tables `[TABLE.<name>]` of an extension by their names."""
        found: Mapping[str, S] = self.tables.get(kind.TABLE) or {}
        return found

    def agent(self, agent_id: str) -> Agent:
        """Return the agent of that id (trimmed and lower-cased first).

        Raises:
            NotFound: The message lists the configured agents, nearest name first.
        """
        found = self.agents.get(agent_id) or self.agents.get(agent_id.strip().lower())
        if found is None:
            near = nearest(agent_id, self.agents)
            guess = f"; did you mean {near!r}?" if near else ""
            raise NotFound(
                f"no agent {agent_id!r} is configured{guess} "
                f"(configured: {', '.join(sorted(self.agents)) or 'none'})",
                hint="name a configured agent, or add [agents.<id>] to subagents.toml",
                details={
                    "field": "agentId",
                    "agentId": agent_id,
                    "configured": sorted(self.agents),
                },
            )
        return found

    def run_timeout_ms(self, agent_id: str) -> int:
        """Deadline of each attempt of that agent in milliseconds, 0 = none."""
        own = self.agent(agent_id).run_timeout_seconds
        return whole_ms((self.defaults.run_timeout_seconds if own is None else own) * 1000)

    def lane_slots(self, lane: str) -> int:
        """Slots of that lane.

        Raises:
            ConfigError: No such lane is configured.
        """
        if lane == DEFAULT_LANE:
            return self.defaults.max_concurrent
        if lane not in self.lanes:
            names = ", ".join([DEFAULT_LANE, *sorted(self.lanes)])
            raise ConfigError(
                f"no lane {lane!r} is configured (configured: {names})",
                hint=f"add [lanes.{lane}] with slots = N to subagents.toml",
            )
        return self.lanes[lane].slots


def nearest(word: str, known: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """The known word that `word` was probably meant to be, None when none is near.

    Case and separators do not count: `maxSpawnDepth` is near `max_spawn_depth`. `likeness`: 0 to 1.
    A word of over 100 characters is none, and of many known ones the first thousand are looked at.
    """
    import difflib  # noqa: PLC0415  only a wrong name needs it

    if len(word) > GUESSED_CHARS_MAX:
        return None
    # Each comparison takes microseconds, and a file may have any number of names.
    few = itertools.islice(known, GUESSED_NAMES_MAX)
    spelled = {_plain(name): name for name in few if len(name) <= GUESSED_CHARS_MAX}
    near = difflib.get_close_matches(_plain(word), list(spelled), n=1, cutoff=likeness)
    return spelled[near[0]] if near else None


def not_configured(key: str, name: str, configured: Iterable[str]) -> str:
    """What is wrong with a key that names something which is not there."""
    near = nearest(name, configured)
    guess = f'; did you mean "{near}"?' if near else ""
    return f'{key} names "{name}", which is not configured{guess}'


def _plain(word: str) -> str:
    return word.strip().lower().replace("_", "").replace("-", "")
