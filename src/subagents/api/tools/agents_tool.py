"""``agents_list``: whom the caller may spawn, what they are for, and who fits best.

Source: 3-tools ``agents_list`` and "fleet table"; 4-observability §7.
"""

from subagents.api.answers import agent_advice as advice
from subagents.api.tools import tool_wording as wording
from subagents.api.tools.spawn_tool import config_of
from subagents.api.tools.tool import Answer, Call, Document
from subagents.api.tools.tool_arguments import AgentsArguments, decoded
from subagents.api.wire.decoding import one_of
from subagents.config.agent_cards import allowed_agents, none_allowed
from subagents.domain.run.values import agent_of
from subagents.domain.track_record.suggest import COST_TIERS


async def list_agents(call: Call) -> Answer:
    """The agents the caller may spawn; with a hint, tags or a cost tier the best come first."""
    asked = decoded(call, AgentsArguments)
    if asked.cost_tier is not None:
        one_of("costTier", asked.cost_tier, COST_TIERS)
    config = await config_of(call)
    session = call.caller.session
    agents = allowed_agents(config.settings, agent_of(session))
    found = await advice.known(call.used, config.settings, agents, session=session)
    suggestions = advice.ranked(
        found, hint=asked.hint or "", tags=asked.tags, cost_tier=asked.cost_tier
    )
    is_ranked = bool(asked.hint or asked.tags or asked.cost_tier)
    order = suggestions if is_ranked else sorted(suggestions, key=lambda each: each.agent_id)
    documents = [
        advice.document_of(each.agent_id, found) | (advice.reasons_of(each) if is_ranked else {})
        for each in order[: asked.limit]
    ]
    structured: Document = {"agents": documents, "total": len(agents), "ranked": is_ranked}
    lines = [_line(each) for each in documents]
    if len(agents) > len(documents):
        lines.append(f"{len(agents) - len(documents)} more: raise limit")
    if not agents:
        hint = " ".join((none_allowed(agent_of(session)), *config.ignored))
        structured["hint"] = hint
        lines.append(hint)
    return Answer(text=wording.joined(lines), structured=structured)


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
    record, reasons = document["record"], document.get("reasons")
    if isinstance(reasons, list):
        # Its track record is among them.
        parts += [f"why: {'; '.join(reasons)}"] if reasons else []
    elif isinstance(record, dict) and record["text"]:
        parts.append(str(record["text"]))
    return " · ".join(" ".join(part.split()) for part in parts)
