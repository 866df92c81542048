"""``agents_list``: whom the caller may spawn, what they are for, and who fits best."""

from subagents.api.answers import agent_advice
from subagents.api.tools import tool_wording
from subagents.api.tools.list_tools import for_overview
from subagents.api.tools.spawn_tool import config_of
from subagents.api.tools.tool import Answer, Call
from subagents.api.tools.tool_arguments import AgentsArguments, decoded
from subagents.api.wire.agent_answers import AvailableAgent, SuggestedAgent
from subagents.api.wire.decoding import one_of
from subagents.api.wire.wire_struct import Document, document_of
from subagents.config.agent_cards import allowed_agents, none_allowed
from subagents.domain.agents.suggest import COST_TIERS
from subagents.domain.run.values import agent_of
from subagents.engine.runs.agent_choice import ranked


async def list_agents(call: Call) -> Answer:
    """The agents the caller may spawn; with a hint, tags or a cost tier the best come first."""
    asked = decoded(call, AgentsArguments)
    if asked.cost_tier is not None:
        one_of("costTier", asked.cost_tier, COST_TIERS)
    config = await config_of(call)
    session = call.caller.session
    agents = allowed_agents(config.settings, agent_of(session))
    found = await call.services.engine.agent_choice.known(config.settings, agents, session=session)
    suggestions = ranked(found, hint=asked.hint or "", tags=asked.tags, cost_tier=asked.cost_tier)
    is_ranked = bool(asked.hint or asked.tags or asked.cost_tier)
    order = suggestions if is_ranked else sorted(suggestions, key=lambda each: each.agent_id)
    listed = [
        agent_advice.suggested(each, found)
        if is_ranked
        else agent_advice.available(each.agent_id, found)
        for each in order[: asked.limit]
    ]
    structured: Document = {
        "agents": [for_overview(document_of(each)) for each in listed],
        "total": len(agents),
        "ranked": is_ranked,
    }
    lines = [_line(each) for each in listed]
    if len(agents) > len(listed):
        lines.append(f"{len(agents) - len(listed)} more: raise limit")
    if not agents:
        hint = " ".join((none_allowed(agent_of(session)), *config.ignored))
        structured["hint"] = hint
        lines.append(hint)
    return Answer(text=tool_wording.joined(lines), structured=structured)


def _line(agent: AvailableAgent) -> str:
    """An agent on one line, with what its card leaves out left out."""
    parts = [f"{agent.id}: {agent.description or '(no description)'}"]
    if agent.tags:
        parts.append(f"tags {', '.join(agent.tags)}")
    facts = {"cost": agent.cost_tier, "takes": agent.typical_latency, "notes": agent.notes}
    parts += [f"{name} {value}" for name, value in facts.items() if value]
    parts.append(f"{agent.load.active} active, {agent.load.queued} queued")
    if isinstance(agent, SuggestedAgent):
        # Its track record is among them.
        parts += [f"why: {'; '.join(agent.reasons)}"] if agent.reasons else []
    elif agent.record is not None and agent.record.text:
        parts.append(agent.record.text)
    return " · ".join(" ".join(part.split()) for part in parts)
