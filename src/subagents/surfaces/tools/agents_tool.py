"""``agents_list``: whom the caller may spawn, what they are for, and who fits best.

Source: 3-tools ``agents_list`` and "fleet table"; 4-observability §7.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from subagents.config.settings import ANY_AGENT, DEFAULT_LANE, Agent, Settings
from subagents.domain.admission import holds_slot
from subagents.domain.model import SETTLED, Phase
from subagents.domain.suggest import COST_TIERS, Candidate, Record, Suggestion, suggest
from subagents.domain.values import agent_of, replace
from subagents.ports import RunFilter
from subagents.surfaces.decoding import one_of
from subagents.surfaces.documents import cut
from subagents.surfaces.tools import wording
from subagents.surfaces.tools.arguments import AgentsArguments, decoded
from subagents.surfaces.tools.spawn_tool import config_of
from subagents.surfaces.tools.tool import Answer, Call, Document

RECORD_RUNS: Final = 300
"""The newest ended runs of all agents: a track record must not cost a search of all history."""
TEXT_CHARS_MAX: Final = 500


class Load(NamedTuple):
    """What an agent has to do now, and how full its lane is at the caller's depth."""

    active: int
    queued: int
    lane: str
    used: int
    slots: int


async def list_agents(call: Call) -> Answer:
    """The agents the caller may spawn; with a hint, tags or a cost tier the best come first."""
    asked = decoded(call, AgentsArguments)
    if asked.cost_tier is not None:
        one_of("costTier", asked.cost_tier, COST_TIERS)
    config = await config_of(call)
    settings = config.settings
    found = allowed_agents(settings, agent_of(call.caller.session))
    loads = _loads(call, settings, found)
    records = await _records(call)
    suggestions = suggest(
        [_candidate(name, agent, loads[name], records) for name, agent in found.items()],
        hint=asked.hint or "",
        tags=asked.tags,
        cost_tier=asked.cost_tier,
    )
    is_ranked = bool(asked.hint or asked.tags or asked.cost_tier)
    order = suggestions if is_ranked else sorted(suggestions, key=lambda each: each.agent_id)
    documents = [
        _document(each, found[each.agent_id], loads, records, is_ranked=is_ranked)
        for each in order[: asked.limit]
    ]
    structured: Document = {"agents": documents, "total": len(found), "ranked": is_ranked}
    lines = [_line(each) for each in documents]
    if len(found) > len(documents):
        lines.append(f"{len(found) - len(documents)} more: raise limit")
    if not found:
        hint = " ".join((none_allowed(agent_of(call.caller.session)), *config.ignored))
        structured["hint"] = hint
        lines.append(hint)
    return Answer(text=wording.joined(lines), structured=structured)


def none_allowed(own: str) -> str:
    """What to do when an agent may spawn nobody; said in the data, too, as clients show only that.

    Args:
        own: The caller's agent id.
    """
    return (
        "You may spawn no agent yet. Do the work yourself, or ask the user to name some in"
        f" agents.{own}.subagents.allow_agents of subagents.toml (`subagents init` writes one;"
        " `subagents config show` says what holds)."
    )


def allowed_agents(settings: Settings, own: str) -> dict[str, Agent]:
    """The agents that can work and that an agent of this id may spawn, by name."""
    section = settings.agents.get(own)
    allowed = {own, *(section.subagents.allow_agents if section is not None else ())}
    return {
        name: agent
        for name, agent in sorted(settings.agents.items())
        if agent.runtime is not None and (name in allowed or ANY_AGENT in allowed)
    }


def _candidate(name: str, agent: Agent, load: Load, records: Mapping[str, Record]) -> Candidate:
    card = agent.capabilities
    return Candidate(
        agent_id=name,
        description=agent.description or "",
        notes=card.notes or "",
        tags=card.tags,
        cost_tier=card.cost_tier,
        record=records.get(name, Record()),
        queued=load.queued,
    )


def _loads(call: Call, settings: Settings, found: Mapping[str, Agent]) -> dict[str, Load]:
    ledger = call.used.engine.ledger
    active: Counter[str] = Counter()
    queued: Counter[str] = Counter()
    for run in ledger.published.values():
        if holds_slot(run):
            active[run.resolved.agent_id] += 1
        elif run.phase is Phase.QUEUED:
            queued[run.resolved.agent_id] += 1
    own = ledger.index.run_of(call.caller.session)
    depth = ledger.published[own].depth + 1 if own in ledger.published else 1
    loads = {}
    for name, agent in found.items():
        lane = agent.lane or DEFAULT_LANE
        used = ledger.index.held((lane, depth))
        loads[name] = Load(active[name], queued[name], lane, used, settings.lane_slots(lane))
    return loads


async def _records(call: Call) -> dict[str, Record]:
    where = RunFilter(phases=tuple(SETTLED), archived=True, limit=RECORD_RUNS)
    records: dict[str, Record] = {}
    for run in await call.used.queries.runs(where):
        if run.outcome is not None:
            name, status = run.resolved.agent_id, str(run.outcome.status)
            known = records.get(name, Record())
            records[name] = replace(known, **{status: getattr(known, status) + 1})
    return records


def _document(
    each: Suggestion,
    agent: Agent,
    loads: Mapping[str, Load],
    records: Mapping[str, Record],
    *,
    is_ranked: bool,
) -> Document:
    card, load = agent.capabilities, loads[each.agent_id]
    record = records.get(each.agent_id)
    document: Document = {
        "id": each.agent_id,
        "runtime": agent.runtime,
        "description": cut(agent.description, TEXT_CHARS_MAX),
        "tags": list(card.tags),
        "costTier": card.cost_tier,
        "typicalLatency": card.typical_latency,
        "notes": cut(card.notes, TEXT_CHARS_MAX),
        "load": load._asdict(),
        "record": None if record is None else msgspec.structs.asdict(record),
    }
    if is_ranked:
        document |= {"score": each.score, "reasons": list(each.reasons)}
    return document


def _line(document: Document) -> str:
    """An agent on one line, with what its card leaves out left out."""
    parts = [f"{document['id']}: {document['description'] or '(no description)'}"]
    tags, load = document["tags"], document["load"]
    if isinstance(tags, list) and tags:
        parts.append(f"tags {', '.join(tags)}")
    for name, label in (("costTier", "cost"), ("typicalLatency", "takes"), ("notes", "notes")):
        if document[name]:
            parts.append(f"{label} {document[name]}")
    if isinstance(load, dict):
        parts.append(f"{load['active']} active, {load['queued']} queued")
    record = document["record"]
    if isinstance(record, dict):
        counts = [f"{count} {status}" for status, count in record.items() if count]
        parts.append(f"ended {', '.join(counts)}")
    reasons = document.get("reasons")
    if isinstance(reasons, list) and reasons:
        parts.append(f"why: {'; '.join(reasons)}")
    return " · ".join(" ".join(part.split()) for part in parts)
