"""What is known of the agents: their cards, their load, their track records, and who fits best.

For the tool ``agents_list`` and the calls below ``/v1/agents``. Nothing here starts a run.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Final

from msgspec import structs

from subagents.api.calls.services import AsOf, Services
from subagents.api.wire import agent_answers as wire
from subagents.api.wire import usage_answers
from subagents.api.wire.wire_struct import made
from subagents.config.settings import Agent
from subagents.domain.track_record.measured_card import measured_cost_tier, measured_latency
from subagents.domain.track_record.series import Groups, Sum
from subagents.domain.track_record.suggest import Suggestion, record_text
from subagents.domain.track_record.track_record import Stats, Wanted
from subagents.engine.runs.agent_choice import Known
from subagents.errors import Unavailable
from subagents.text import iso, shortened

TEXT_CHARS_MAX: Final = 500


async def stats_of(
    services: Services, wanted: Wanted, *, days: int | None = None
) -> Sequence[Stats]:
    """What ended attempts came to.

    Raises:
        Unavailable: The records cannot be read.
    """
    with records_readable(services):
        if days is None:
            return await services.engine.track_records.stats(wanted)
        return await services.engine.track_records.stats(wanted, days=days)


@contextmanager
def records_readable(services: Services) -> Iterator[None]:
    """What is read within the block are performance records.

    Raises:
        Unavailable: They cannot be read.
    """
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"the performance records cannot be read: {error.strerror or error}",
            hint=f"see agent-performance-*.jsonl in {services.paths.state_dir}",
        ) from error


def series(
    found: Sequence[tuple[int, Groups]], *, by: str, bucket: str, as_of: AsOf
) -> usage_answers.Series:
    """What attempts came to in each time, and in all of them together.

    Args:
        found: When each time begins, and its groups.
        by: What the groups are.
        bucket: How long each time is.
        as_of: Of the list.
    """
    whole: dict[str | None, Sum] = {}
    for _, groups in found:
        for name, value in groups.items():
            whole[name] = whole.get(name, Sum()).plus(value)
    costly = sorted(whole, key=lambda name: (-whole[name].cost_usd, name is None, name))
    return usage_answers.Series(
        **as_of,
        by=by,
        bucket=bucket,
        buckets=[_series_bucket(at_ms, groups) for at_ms, groups in found],
        sums=[_series_sum(name, whole[name]) for name in costly],
        total=_series_sum(None, _all_of(whole)),
    )


def _series_bucket(at_ms: int, groups: Groups) -> usage_answers.SeriesBucket:
    names = sorted(groups, key=lambda name: (name is None, name))
    return usage_answers.SeriesBucket(
        begins_at=iso(at_ms),
        sums=[_series_sum(name, groups[name]) for name in names],
        total=_series_sum(None, _all_of(groups)),
    )


def _all_of(groups: Groups) -> Sum:
    return reduce(Sum.plus, groups.values(), Sum())


def _series_sum(name: str | None, value: Sum) -> usage_answers.SeriesSum:
    return usage_answers.SeriesSum(
        name=name,
        attempts=value.attempts,
        runs=value.runs,
        tokens_in=value.tokens_in if value.tokens_known else None,
        tokens_out=value.tokens_out if value.tokens_known else None,
        tokens_known_of=value.tokens_known,
        cost_usd=round(value.cost_usd, 6) if value.cost_known else None,
        cost_known_of=value.cost_known,
    )


def card(agent_id: str, agent: Agent) -> wire.AgentCard:
    """What its configuration says of it to whoever chooses."""
    found = agent.capabilities
    return made(
        wire.AgentCard,
        found,
        id=agent_id,
        runtime=agent.runtime,
        description=shortened(agent.description, TEXT_CHARS_MAX),
        measured=(),
        notes=shortened(found.notes, TEXT_CHARS_MAX),
    )


def filled(found: wire.AgentCard, record: Stats | None) -> wire.AgentCard:
    """The card with what it leaves open, as far as the agent's own attempts say it."""
    latency = None if found.typical_latency else measured_latency(record)
    tier = None if found.cost_tier else measured_cost_tier(record)
    return structs.replace(
        found,
        typical_latency=found.typical_latency or latency,
        cost_tier=found.cost_tier or tier,
        measured=[*(["costTier"] if tier else []), *(["typicalLatency"] if latency else [])],
    )


def available(agent_id: str, found: Known) -> wire.AvailableAgent:
    """An agent's card, load and track record."""
    record = found.records.get(agent_id)
    return wire.AvailableAgent(
        **structs.asdict(filled(card(agent_id, found.agents[agent_id]), record)),
        load=made(wire.AgentLoad, found.loads[agent_id]),
        record=None if record is None else _short(record),
    )


def suggested(each: Suggestion, found: Known) -> wire.SuggestedAgent:
    """The same, with what speaks for and against it."""
    return wire.SuggestedAgent(
        **structs.asdict(available(each.agent_id, found)),
        score=each.score,
        reasons=list(each.reasons),
    )


def _short(record: Stats) -> wire.ShortRecord:
    return made(
        wire.ShortRecord,
        record,
        text=record_text(record),
        outcomes={name: number for name, number in record.outcomes.items() if number},
    )
