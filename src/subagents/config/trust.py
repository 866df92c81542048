"""What a project's `subagents.toml` may say to agents, and which of these files are trusted whole.

A project file lies where workers write. Believed like the user's own, it would let a worker that
can write one file give itself a shell, more children or a deeper tree. So for callers that are
agents it may define and narrow, never widen; for a person at the command line all of it counts.
A user who wants all of it to count for agents, too, trusts the file: exactly these bytes, as with
direnv. After the next change it has to be trusted again.

Why: docs/decisions/0012-project-files-of-agents.md.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from subagents.config.paths import Paths
from subagents.config.settings import (
    ANY_AGENT,
    Agent,
    AgentAlerts,
    AgentIsolation,
    AgentSubagents,
    LaneSettings,
    Settings,
    SubagentDefaults,
)
from subagents.config.sources import read
from subagents.config.state_file import read_entries, write_entries
from subagents.domain.run.access import AccessLevel
from subagents.domain.run.secret_reference import is_reference
from subagents.domain.run.spec import Network
from subagents.text import whole_ms

TRUSTED_MAX: Final = 1_000
"""Files remembered; the ones trusted first are forgotten first."""

_DEFAULTS: Final = "agents.defaults.subagents"


# -- the rule -----------------------------------------------------------------------------------


def narrowed(whole: Settings, own: Settings) -> tuple[Settings, tuple[str, ...]]:
    """The settings for agents, where a project's file must not widen what the user allows.

    Args:
        whole: With the project file.
        own: Without it: the built-in values, the user's file, environment and flags.

    Returns:
        Settings of which every limit is at most as wide as in ``own``, and the keys of the project
        file that were left out, sorted.
    """
    ignored: list[str] = []
    defaults = _defaults(whole.defaults, own.defaults, ignored)
    if defaults.summarizer_agent != own.defaults.summarizer_agent:
        # It is started with transcripts as its task, and no allow_agents is asked: naming
        # `command` there would run what a worker printed as a shell script.
        ignored.append(f"{_DEFAULTS}.summarizer_agent")
        defaults = msgspec.structs.replace(defaults, summarizer_agent=own.defaults.summarizer_agent)
    added = whole.agents.keys() - own.agents.keys()
    agents = {
        agent_id: _added(agent_id, agent, ignored)
        if agent_id in added
        else _known(agent_id, whole, own, ignored)
        for agent_id, agent in whole.agents.items()
    }
    if added:
        # "*" is the user's word for the agents the user knows.
        agents = {agent_id: _spelled_out(agent, own.agents) for agent_id, agent in agents.items()}
    commands = own.verification.dangerously_allow_validation_commands
    if whole.verification.dangerously_allow_validation_commands and not commands:
        ignored.append("verification.dangerously_allow_validation_commands")
    else:
        commands = whole.verification.dangerously_allow_validation_commands
    if whole.verification.sandbox != own.verification.sandbox:
        ignored.append("verification.sandbox")
    if whole.budgets != own.budgets:
        ignored.append("budgets")
    if whole.secrets != own.secrets:
        ignored.append("secrets")
    settings = msgspec.structs.replace(
        whole,
        defaults=defaults,
        agents=agents,
        lanes=_lanes(whole, own, ignored),
        verification=msgspec.structs.replace(
            whole.verification,
            dangerously_allow_validation_commands=commands,
            sandbox=own.verification.sandbox,
        ),
        retention=own.retention,
        daemon=own.daemon,
        budgets=own.budgets,
        secrets=own.secrets,
    )
    return settings, tuple(sorted(ignored))


def _defaults(
    whole: SubagentDefaults, own: SubagentDefaults, ignored: list[str]
) -> SubagentDefaults:
    for name in own.__struct_fields__:
        is_deadline = name == "run_timeout_seconds"
        if not is_deadline and not name.startswith("max_"):
            continue
        given, most = getattr(whole, name), getattr(own, name)
        if _is_longer(given, most) if is_deadline else given > most:
            ignored.append(f"{_DEFAULTS}.{name}")
            whole = msgspec.structs.replace(whole, **{name: most})
    return whole


def _is_longer(timeout_s: float, most_s: float) -> bool:
    """Whether it allows more time; 0 = no limit."""
    return most_s > 0 and (timeout_s == 0 or timeout_s > most_s)


def _added(agent_id: str, agent: Agent, ignored: list[str]) -> Agent:
    """An agent that only the project knows: it is there, but may spawn nobody, nor flood anybody.

    It may fall silent: whom its alerts concern chose it, and its end is never held back.
    """
    if agent.subagents.allow_agents:
        ignored.append(f"agents.{agent_id}.subagents.allow_agents")
    alerts, most = agent.alerts, AgentAlerts().tokens_per_hour
    if alerts.tokens_per_hour > most:
        ignored.append(f"agents.{agent_id}.alerts.tokens_per_hour")
        alerts = msgspec.structs.replace(alerts, tokens_per_hour=most)
    env = {name: value for name, value in agent.env.items() if not is_reference(value)}
    # The user's secrets, and servers that may have some, are for the user's agents.
    ignored += (f"agents.{agent_id}.env.{name}" for name in agent.env if name not in env)
    ignored += [f"agents.{agent_id}.mcp_servers"] if agent.mcp_servers else []
    servers = agent.mcp_servers and ()
    return msgspec.structs.replace(
        agent, subagents=AgentSubagents(), alerts=alerts, env=env, mcp_servers=servers
    )


def _known(agent_id: str, whole: Settings, own: Settings, ignored: list[str]) -> Agent:
    """An agent of the user's: the project may take from it, not make another of it."""
    given, mine = whole.agents[agent_id], own.agents[agent_id]
    kept = mine
    for name in mine.__struct_fields__:
        if getattr(given, name) == getattr(mine, name):
            continue
        if _only_takes(name, agent_id, whole, own):
            kept = msgspec.structs.replace(kept, **{name: getattr(given, name)})
        else:
            inner = ".allow_agents" if name == "subagents" else ""
            ignored.append(f"agents.{agent_id}.{name}{inner}")
    return kept


def _only_takes(name: str, agent_id: str, whole: Settings, own: Settings) -> bool:
    given, mine = whole.agents[agent_id], own.agents[agent_id]
    match name:
        case "tools":
            is_known = mine.tools is None or set(given.tools or ()) <= set(mine.tools)
            return given.tools is not None and is_known
        case "mcp_servers":
            named = given.mcp_servers
            return named is not None and set(named) <= set(mine.mcp_servers or ())
        case "access":
            most = AccessLevel.FULL if mine.access is None else mine.access
            return given.access is not None and given.access.rank <= most.rank
        case "isolation":
            return given.isolation is AgentIsolation.SANDBOX
        case "network":
            return given.network is Network.NONE
        case "subagents":
            allowed = set(mine.subagents.allow_agents)
            if ANY_AGENT in allowed:
                allowed |= own.agents.keys()
            return set(given.subagents.allow_agents) <= allowed
        case "limits":
            # A limit that is taken out counts as a higher one.
            asked = given.limits.given
            return all(
                asked.get(each, value + 1) <= value for each, value in mine.limits.given.items()
            )
        case "run_timeout_seconds":
            # In milliseconds, since 0 = none: a part of one must not become it.
            most_ms = own.run_timeout_ms(agent_id)
            asked_ms = whole_ms((given.run_timeout_seconds or 0) * 1000)
            return given.run_timeout_seconds is not None and not _is_longer(asked_ms, most_ms)
        case _:
            return False


def _spelled_out(agent: Agent, known: Iterable[str]) -> Agent:
    allowed = agent.subagents.allow_agents
    if ANY_AGENT not in allowed:
        return agent
    named = [name for name in allowed if name != ANY_AGENT]
    subagents = AgentSubagents(allow_agents=tuple(sorted({*named, *known})))
    return msgspec.structs.replace(agent, subagents=subagents)


def _lanes(whole: Settings, own: Settings, ignored: list[str]) -> dict[str, LaneSettings]:
    """A lane of the project's has no more slots than the default one: it is no way around it."""
    lanes = {}
    for name, lane in whole.lanes.items():
        mine = own.lanes.get(name)
        most = own.defaults.max_concurrent if mine is None else mine.slots
        if lane.slots > most:
            ignored.append(f"lanes.{name}.slots")
        lanes[name] = msgspec.structs.replace(lane, slots=min(lane.slots, most))
    return lanes


# -- trusted files ------------------------------------------------------------------------------


def is_trusted(paths: Paths, file: Path, digest: str) -> bool:
    """Whether the user trusts that file with exactly this content.

    Raises:
        ConfigError: What is trusted cannot be read.
    """
    return _trusted(paths).get(str(file.resolve())) == digest


def trust(paths: Paths, file: Path) -> None:
    """Trust that project file for agents, too, for as long as it stays as it is now.

    Raises:
        ConfigError: The file is wrong, or what is trusted cannot be written.
    """
    digest = read(file).digest
    known = _trusted(paths)
    name = str(file.resolve())
    known.pop(name, None)  # so that it comes last, and is forgotten last
    known[name] = digest
    write_entries(paths, paths.trusted_file, known, entries_max=TRUSTED_MAX)


def _trusted(paths: Paths) -> dict[str, str]:
    hint = "remove it: then no project file is trusted until you say so again"
    return read_entries(paths.trusted_file, str, hint=hint)
