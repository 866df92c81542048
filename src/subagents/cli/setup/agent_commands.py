"""``agents`` and ``stats --attempts``: who works here, and how well."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, cast
from urllib.parse import quote

from subagents.api.wire.agent_answers import (
    AgentAbilities,
    AgentList,
    ConfiguredAgent,
    Rate,
    Suggestions,
    TrackRecord,
    TrackRecords,
)
from subagents.api.wire.wire_struct import read
from subagents.cli import output
from subagents.cli.connection import caller_cwd, connect
from subagents.cli.flags import Json, Parameter, refusal, refuse_unused
from subagents.cli.parser import near
from subagents.client.client import Client, Document
from subagents.errors import NotFound
from subagents.text import duration, milliseconds_of, money, one_line

REASONS_CHARS_MAX: Final = 400
REASONS_SHOWN_MAX: Final = 3
GROUPED_BY: Final = ("agent", "tag", "model")
SEARCHED_BY: Final = {"agentId": "agent", "tag": "tag", "model": "model"}
"""The parameters of ``/v1/agents/stats``, by those of a search for runs."""
SEARCH_NAMES: Final = {"directory": "dir", "requester": "session", "q": "text"}
"""Flags that are not called as their parameters."""
DAYS: Final = 30
DAY_MS: Final = 86_400_000
CostTier = Literal["free", "cheap", "medium", "expensive"]


def agents(
    what: Annotated[
        str | None,
        Parameter(help="One agent; with --suggest, a description of the task.", metavar="AGENT"),
    ] = None,
    /,
    *,
    suggest: Annotated[
        bool, Parameter(help="Suggest agents for a task, best first. Starts nothing.")
    ] = False,
    tag: Annotated[
        tuple[str, ...], Parameter(help="With --suggest: a skill it should have. Repeatable.")
    ] = (),
    cost_tier: Annotated[
        CostTier | None, Parameter(help="With --suggest: the highest acceptable cost tier.")
    ] = None,
    revoke: Annotated[
        str | None,
        Parameter(help="Be asked again before this call of AGENT.", metavar="CALL"),
    ] = None,
    json: Json = False,
) -> None:
    """List the agents configured here, or show one: its card, limits and record of 30 days.

    For example:

        subagents agents

        subagents agents researcher --json

        subagents agents --suggest 'review the parser' --tag python
    """
    if suggest:
        refuse_unused("does not go with --suggest", revoke=revoke is not None)
        _suggest(what or "", tag, cost_tier, json=json)
        return
    refuse_unused("needs --suggest", tag=bool(tag), cost_tier=cost_tier is not None)
    if revoke is not None:
        if what is None:
            raise refusal("--revoke", "needs an AGENT")
        with connect(starts=True) as client:
            path = f"/v1/agents/{quote(what, safe='')}/allowed-calls/{quote(revoke, safe='')}"
            client.delete(path)
    if what is None:
        _list(json=json)
    else:
        _show(what, json=json)


def _list(*, json: bool) -> None:
    with connect(starts=True) as client:
        answer = client.get("/v1/agents", {"cwd": caller_cwd()})
    if json:
        output.document(answer)
        return
    output.table(
        ["agent", "runtime", "cost", "tags", "may use", "description"],
        [
            [
                agent.id,
                agent.runtime or "- (only calls)",
                agent.cost_tier or "-",
                ", ".join(agent.tags) or "-",
                "yes" if agent.allowed else "no",
                agent.description or "",
            ]
            for agent in read(answer, AgentList).agents
        ],
    )


def _show(agent: str, *, json: bool) -> None:
    with connect(starts=True) as client:
        answer = client.get("/v1/agents", {"cwd": caller_cwd()})
        card = _card(answer, agent)
        known = _records(client, agent)
    if json:
        output.document({**card, "record": known[0] if known else None})
        return
    one = read(card, ConfiguredAgent)
    limits = one.limits
    timeout = limits.run_timeout_seconds
    facts = {
        "agent": one.id,
        "runtime": one.runtime,
        "model": limits.model,
        "description": one.description,
        "tags": ", ".join(one.tags),
        "cost": _measured(one.cost_tier, "costTier", one),
        "takes": _measured(one.typical_latency, "typicalLatency", one),
        "notes": one.notes,
        "may use": "yes" if one.allowed else "no",
        "lane": f"{limits.lane}, {limits.lane_slots} slots",
        "deadline": duration(round(timeout * 1000)) if timeout else "none",
        "tools": "the runtime's own" if limits.tools is None else ", ".join(limits.tools) or "none",
        "may spawn": ", ".join(limits.allow_agents) if limits.max_spawn_depth > 1 else "nobody",
        "can": _can(one.abilities),
        "tool scope": _scope(one),
        "probe": _probed(one),
    }
    for name, value in facts.items():
        if value:
            output.line(f"{name + ':':<14}{value}")
    for index, call in enumerate(one.allowed_calls):
        output.line(f"{'' if index else 'unasked:':<14}{call}")
    for index, text in enumerate(_record_lines(known[0]) if known else ["no attempts yet"]):
        output.line(f"{'record:' if index == 0 else '':<14}{text}")


def _measured(text: str | None, field: str, one: ConfiguredAgent) -> str | None:
    return f"{text} (measured)" if text and field in one.measured else text


def show_attempts(by: str, search: Mapping[str, str], *, days: int | None, json: bool) -> None:
    """Show how attempts ended; see ``stats --attempts``.

    Args:
        by: What to group by: an agent, a tag or a model.
        search: Of it, agent, one tag, model and since.
        days: UTC days including today; None = 30.
        json: As one document.

    Raises:
        UsageError: Attempts are not counted by that, or not searched for by that.
    """
    if by not in GROUPED_BY:
        raise refusal("--by", f"with --attempts must be {', '.join(GROUPED_BY)}, not {by!r}")
    since_ms = milliseconds_of(search.get("since"))
    if since_ms is not None:
        refuse_unused("and --since: give one of them", days=days is not None)
        days = int(time.time() * 1000) // DAY_MS - since_ms // DAY_MS + 1
        if not 0 < days <= DAYS:
            raise refusal("--since", f"with --attempts must be one of the last {DAYS} days")
    if more := search.keys() - SEARCHED_BY.keys() - {"since"}:
        raise refusal(f"--{SEARCH_NAMES.get(min(more), min(more))}", "does not go with --attempts")
    query = {SEARCHED_BY[name]: search[name] for name in search.keys() & SEARCHED_BY.keys()}
    query |= {"by": by, "days": str(DAYS if days is None else days)}
    with connect(starts=True) as client:
        answer = client.get("/v1/agents/stats", query)
    if json:
        output.document(answer)
        return
    known = read(answer, TrackRecords).stats
    if not known:
        output.note("No attempts ended in this period.")
        return
    output.table(
        [by, "attempts", "success", "interval", "of", "verified", "p50", "p95", "tokens", "cost"],
        [_row(each) for each in known],
    )


ABLE: Final = {
    "steer": "takes messages while it works",
    "resume": "continues its session",
    "interrupt": "can be interrupted",
    "model": "takes a model",
    "usage": "tells tokens or cost",
    "survives_daemon": "outlives the daemon",
}


def _can(able: AgentAbilities | None) -> str:
    if able is None:
        return "nothing: it cannot work as configured (subagents doctor)"
    return ", ".join(text for name, text in ABLE.items() if getattr(able, name)) or "work"


def _scope(one: ConfiguredAgent) -> str:
    """Whether tools can be taken from it, and how sure that is."""
    if one.abilities is None or not one.abilities.scope_tools:
        return "cannot be enforced: a spawn that asks for one is refused"
    claims = one.probe.claims if one.probe is not None else []
    found = next((claim for claim in claims if claim.name == "scope"), None)
    if found is None or found.verdict == "open":
        return f"enforced by its program; not tried (subagents doctor --probe {one.id})"
    if found.verdict == "broken":
        return f"broken, so every scope is refused: {found.detail}"
    return f"enforced, and proven: {found.detail}"


def _probed(one: ConfiguredAgent) -> str:
    probe = one.probe
    if probe is None:
        return ""
    at_ms = milliseconds_of(probe.probed_at) or 0
    at = time.strftime("%Y-%m-%d %H:%M", time.localtime(at_ms / 1000))
    claims = ", ".join(f"{claim.name} {claim.verdict}" for claim in probe.claims)
    return f"{at}, version {probe.version or 'unknown'}: {claims}"


def _suggest(hint: str, tag: tuple[str, ...], cost_tier: CostTier | None, *, json: bool) -> None:
    query = {"hint": hint, "tags": ",".join(tag), "costTier": cost_tier, "cwd": caller_cwd()}
    with connect(starts=True) as client:
        answer = client.get("/v1/agents/suggest", query)
    if json:
        output.document(answer)
        return
    found = read(answer, Suggestions).suggestions
    if not found:
        output.note("No agent that can work is configured here.")
    for place, each in enumerate(found, 1):
        why = one_line("; ".join(each.reasons) or "nothing is known", chars_max=REASONS_CHARS_MAX)
        output.line(f"{place:>3}. {each.id} ({each.score:.2f}): {why}")


def _records(client: Client, agent: str) -> Sequence[TrackRecord]:
    """What its attempts came to; nothing where none ended, or no extension counts them."""
    try:
        return read(client.get("/v1/agents/stats", {"agent": agent}), TrackRecords).stats
    except NotFound:
        return ()


def _card(answer: Document, agent: str) -> Document:
    # As it came, not as its struct: `--json` shows what a newer daemon says, too.
    cards = {str(card.get("id")): card for card in cast("list[Document]", answer.get("agents", []))}
    if agent not in cards:
        text = f"no agent {agent!r} is configured{near(agent, cards)}"
        raise NotFound(text, hint=f"agents: {', '.join(sorted(cards))}")
    return cards[agent]


def _row(each: TrackRecord) -> list[str]:
    success, verified, took = each.success, each.verified, each.took
    return [
        each.name or "(none)",
        str(each.attempt_count),
        f"{success.rate * 100:.0f} %" if success else "-",
        _interval(success) if success else "-",
        str(success.n) if success else "-",
        f"{verified.count} of {verified.n}" if verified else "-",
        duration(took.p50_ms) if took else "-",
        duration(took.p95_ms) if took else "-",
        _tokens(each) or "-",
        "-" if each.cost_usd is None else money(each.cost_usd),
    ]


def _record_lines(each: TrackRecord) -> list[str]:
    """What its attempts came to, a line for each kind of fact."""
    success, verified, took = each.success, each.verified, each.took
    counts = ", ".join(f"{number} {name}" for name, number in each.outcomes.items() if number)
    lines = [f"{each.attempt_count} attempts of {each.runs} runs: {counts}"]
    if success:
        lines.append(
            f"success {success.rate * 100:.0f} % (95 %: {_interval(success)}, n = {success.n})"
        )
    if verified:
        lines.append(f"{verified.count} of {verified.n} verified by their contract")
    if took:
        half, most = duration(took.p50_ms), duration(took.p95_ms)
        lines.append(f"half took at most {half}, 95 of 100 at most {most}")
    tokens = _tokens(each)
    if tokens:
        lines.append(f"{tokens} tokens in/out, known of {each.tokens_known}")
    if each.cost_usd is not None:
        lines.append(f"{money(each.cost_usd)}, known of {each.cost_known}")
    reasons = list(each.reasons.items())[:REASONS_SHOWN_MAX]
    if reasons:
        lines.append("mostly: " + ", ".join(f"{name} ({number})" for name, number in reasons))
    return lines


def _interval(rate: Rate) -> str:
    return f"{rate.low * 100:.0f}–{rate.high * 100:.0f} %"


def _tokens(each: TrackRecord) -> str:
    return f"{each.tokens.input}/{each.tokens.output}" if each.tokens_known else ""
