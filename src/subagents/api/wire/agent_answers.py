"""Answers about the configured agents: cards, load, track records, advice."""

from subagents.api.wire.listing import Listing
from subagents.api.wire.wire_struct import Time, WireStruct


class AgentCard(WireStruct, frozen=True, kw_only=True):
    """What an agent's configuration says for those who choose one."""

    id: str
    """Its id."""
    runtime: str | None = None
    """The runtime that runs it; null = it only calls."""
    description: str | None = None
    """What it is for, at most 500 characters."""
    tags: list[str] = []
    """What it is good at."""
    cost_tier: str | None = None
    """`free`, `cheap`, `medium` or `expensive`."""
    typical_latency: str | None = None
    """How long it takes, in the operator's words."""
    measured: list[str] = []
    """Which of `costTier` and `typicalLatency` its card leaves open, and its own attempts say."""
    notes: str | None = None
    """What else to know, at most 500 characters."""


class AgentLimits(WireStruct, frozen=True, kw_only=True):
    """What bounds a run of an agent; null = nothing does."""

    model: str | None = None
    """The model it is started with."""
    run_timeout_seconds: float | None = None
    """How long a run may work before it is stopped."""
    lane: str = ""
    """Whose slots its runs need."""
    lane_slots: int = 0
    """So many runs of that lane work at once."""
    tools: list[str] | None = None
    """The tools it may have; null = what its runtime offers."""
    allow_agents: list[str] = []
    """Whom it may spawn."""
    max_spawn_depth: int = 1
    """How deep its runs may be."""


class AgentAbilities(WireStruct, frozen=True, kw_only=True):
    """What an agent's runtime says it can do."""

    survives_daemon: bool = False
    """Its worker outlives the daemon."""
    steer: bool = False
    """It takes messages while it works."""
    resume: bool = False
    """It continues its session."""
    scope_tools: bool = False
    """Its tools can be narrowed."""
    interrupt: bool = False
    """Its turn can be ended."""
    usage: bool = False
    """It reports tokens or cost."""
    model: bool = False
    """It takes a model."""


class ProbeClaim(WireStruct, frozen=True, kw_only=True):
    """Something that was tried with an installed program."""

    name: str = ""
    """What was tried: `scope`, `resume`, `steer`, …"""
    verdict: str = ""
    """`proven`, `broken` or `open`."""
    detail: str = ""
    """What was seen."""


class AgentProbe(WireStruct, frozen=True, kw_only=True):
    """What the last probe of an installed program found."""

    version: str | None = None
    """The program's version."""
    probed_at: Time | None = None
    """When."""
    claims: list[ProbeClaim] = []
    """What was tried."""


class ConfiguredAgent(AgentCard, frozen=True, kw_only=True):
    """A configured agent: its card, its limits, and what its program can do."""

    allowed: bool = False
    """Whether the caller may spawn it."""
    limits: AgentLimits = AgentLimits()
    """What bounds a run of it."""
    abilities: AgentAbilities | None = None
    """What its runtime can do; null = it cannot work as configured."""
    probe: AgentProbe | None = None
    """What the last probe of the installed version found."""
    allowed_calls: list[str] = []
    """Tools with commands or paths that it uses in all runs without asking; told to you alone."""


class AgentList(Listing, frozen=True, kw_only=True):
    """The configured agents."""

    agents: list[ConfiguredAgent] = []
    """Those that can work."""


class Rate(WireStruct, frozen=True, kw_only=True):
    """A share with its 95 % interval (Wilson)."""

    count: int = 0
    """So many were."""
    n: int = 0
    """Of so many."""
    rate: float = 0.0
    """From 0 to 1."""
    low: float = 0.0
    """The interval's lower end."""
    high: float = 1.0
    """The interval's upper end."""


class RuntimeSpread(WireStruct, frozen=True, kw_only=True):
    """How long the newest attempts took."""

    p50_ms: int = 0
    """Half of them took at most so long."""
    p95_ms: int = 0
    """95 of 100 took at most so long."""


class TokenSum(WireStruct, frozen=True, kw_only=True):
    """Tokens of all attempts whose tokens are known."""

    input: int | None = None
    """Read, cached ones included."""
    output: int | None = None
    """Written."""
    cache_read: int | None = None
    """The part of the input that came from the provider's cache; null = none is known."""
    cache_write: int | None = None
    """The part of the input that was put into the cache; null = none is known."""


class TrackRecord(WireStruct, frozen=True, kw_only=True):
    """What the attempts of one agent, tag or model came to."""

    name: str | None = None
    """Of the agent, tag or model; null = without a tag, or a model that was not chosen."""
    runs: int = 0
    """So many."""
    attempt_count: int = 0
    """So many attempts of these runs ended."""
    outcomes: dict[str, int] = {}
    """How many ended in which way."""
    reasons: dict[str, int] = {}
    """Why those that were not ok were not, the most frequent first."""
    success: Rate | None = None
    """Of all that say something of the agent; null without any."""
    verified: Rate | None = None
    """Of those with a contract; null without any."""
    took: RuntimeSpread | None = None
    """How long the newest took."""
    tokens: TokenSum = TokenSum()
    """Of all attempts whose tokens are known."""
    tokens_known: int = 0
    """Of so many attempts."""
    cost_usd: float | None = None
    """Of all attempts whose cost is known; null when none is."""
    cost_known: int = 0
    """Of so many attempts."""


class TrackRecords(Listing, frozen=True, kw_only=True):
    """What ended attempts came to."""

    by: str = "agent"
    """What is counted together: `agent`, `tag` or `model`."""
    days: int = 30
    """UTC days up to and with today."""
    stats: list[TrackRecord] = []
    """One for each agent, tag or model."""


class AgentLoad(WireStruct, frozen=True, kw_only=True):
    """What an agent has to do now, and how full its lane is at the caller's depth."""

    active: int = 0
    """Its runs at work."""
    queued: int = 0
    """Its runs that wait for a slot."""
    lane: str = ""
    """Whose slots they need."""
    used: int = 0
    """Slots that are taken."""
    slots: int = 0
    """Slots there are."""


class ShortRecord(WireStruct, frozen=True, kw_only=True):
    """As much of a track record as is worth a place in a context."""

    text: str = ""
    """In words."""
    outcomes: dict[str, int] = {}
    """How many ended in which way."""
    success: Rate | None = None
    """Of all that say something of the agent."""
    verified: Rate | None = None
    """Of those with a contract."""
    took: RuntimeSpread | None = None
    """How long the newest took."""
    cost_usd: float | None = None
    """Of all attempts whose cost is known."""


class AvailableAgent(AgentCard, frozen=True, kw_only=True):
    """An agent that the caller may spawn: its card, its load, its track record."""

    load: AgentLoad = AgentLoad()
    """What it has to do now."""
    record: ShortRecord | None = None
    """What its attempts came to; null = nothing is known."""


class SuggestedAgent(AvailableAgent, frozen=True, kw_only=True):
    """An agent, and why it fits."""

    score: float = 0.0
    """The higher the better."""
    reasons: list[str] = []
    """What speaks for and against it."""


class Suggestions(WireStruct, frozen=True, kw_only=True):
    """The agents that fit, the best first; no run is started."""

    suggestions: list[SuggestedAgent] = []
    """The best of them, at most `limit`."""
    total: int = 0
    """So many could be chosen."""
