"""What is told of agents to whoever chooses one: card, load, record, and who fits best."""

import pytest

from subagents.api.answers.agent_advice import TEXT_CHARS_MAX, available, card, suggested
from subagents.api.wire.agent_answers import TrackRecords
from subagents.api.wire.wire_struct import made
from subagents.config.settings import Agent, Capabilities, CostTier
from subagents.domain.agents.agent_stats import Runtime, Stats, Tokens, rate_of
from subagents.engine.runs.agent_choice import Known, Load, ranked

IDLE = Load(active=0, queued=0, lane="default", used=0, slots=4)


def stats(name: str, succeeded: int, attempts: int) -> Stats:
    return Stats(
        name=name,
        runs=attempts,
        attempt_count=attempts,
        outcomes={"success": succeeded, "failure": attempts - succeeded, "timeout": 0},
        reasons={},
        success=rate_of(succeeded, attempts),
        verified=None,
        took=Runtime(p50_ms=100, p95_ms=200),
        tokens=Tokens(input=10, output=None),
        tokens_known=attempts,
        cost_usd=None,
        cost_known=0,
    )


def known(records: dict[str, Stats] | None = None, **loads: Load) -> Known:
    agents = {
        name: Agent(runtime="scripted", capabilities=Capabilities(tags=(tag,)))
        for name, tag in (("writer", "docs"), ("reviewer", "review"))
    }
    return Known(agents, {name: loads.get(name, IDLE) for name in agents}, records or {})


@pytest.mark.requirement("agents:card")
def test_a_card_says_what_the_configuration_says_and_cuts_long_texts() -> None:
    agent = Agent(
        runtime="scripted",
        description="d" * (TEXT_CHARS_MAX + 7),
        capabilities=Capabilities(tags=("a", "b"), typical_latency="1s", notes="short"),
    )

    found = card("worker", agent)

    assert (found.id, found.runtime, found.tags) == ("worker", "scripted", ["a", "b"])
    assert (found.cost_tier, found.typical_latency, found.notes) == (None, "1s", "short")
    assert found.description is not None
    assert found.description.startswith("d" * TEXT_CHARS_MAX)
    assert "d" * (TEXT_CHARS_MAX + 1) not in found.description


@pytest.mark.requirement("agents:suggested")
def test_the_agent_with_the_wanted_tag_comes_first_and_the_reason_is_told() -> None:
    best, other = ranked(known(), hint="", tags=["review"], cost_tier=None)

    assert (best.agent_id, other.agent_id) == ("reviewer", "writer")
    found = suggested(best, known())
    assert (found.id, found.score) == ("reviewer", best.score)
    assert any("review" in reason for reason in found.reasons)


@pytest.mark.requirement("agents:suggested")
def test_runs_in_front_and_a_bad_record_count_against_an_agent() -> None:
    busy = known(writer=IDLE._replace(queued=3))
    failing = known({"writer": stats("writer", 0, 40), "reviewer": stats("reviewer", 40, 40)})

    for found in (busy, failing):
        order = ranked(found, hint="", tags=[], cost_tier=None)
        assert [each.agent_id for each in order] == ["reviewer", "writer"]


@pytest.mark.requirement("agents:available")
def test_an_agent_without_a_record_has_none_and_one_with_it_only_what_happened() -> None:
    found = known({"writer": stats("writer", 3, 4)}, writer=IDLE._replace(active=2, used=2))

    writer, reviewer = (available(name, found) for name in ("writer", "reviewer"))

    assert reviewer.record is None
    assert writer.record is not None
    assert writer.record.outcomes == {"success": 3, "failure": 1}
    assert (writer.load.active, writer.load.used, writer.load.slots) == (2, 2, 4)


@pytest.mark.requirement("agents:record")
def test_in_a_track_record_what_nobody_reported_stays_unknown() -> None:
    (found,) = made(TrackRecords, stats=[stats("writer", 3, 4)]).stats

    assert (found.attempt_count, found.outcomes["timeout"]) == (4, 0)
    assert found.success is not None
    assert (found.success.count, found.success.n, found.success.rate) == (3, 4, 0.75)
    assert (found.verified, found.cost_usd, found.tokens.output) == (None, None, None)
    assert found.took is not None
    assert found.took.p95_ms == 200


@pytest.mark.requirement("agents:measured")
def test_what_a_card_leaves_open_is_filled_from_its_attempts_and_said_so() -> None:
    silent, said = (
        Agent(runtime="command"),
        Agent(
            runtime="command",
            capabilities=Capabilities(cost_tier=CostTier.FREE, typical_latency="a coffee"),
        ),
    )
    record = Stats(
        name="a",
        runs=10,
        attempt_count=10,
        outcomes={},
        reasons={},
        success=None,
        verified=None,
        took=Runtime(p50_ms=60_000, p95_ms=90_000),
        tokens=Tokens(input=None, output=None),
        tokens_known=0,
        cost_usd=10.0,
        cost_known=10,
    )
    known = Known(
        {"silent": silent, "said": said},
        {"silent": IDLE, "said": IDLE},
        {"silent": record, "said": record},
    )

    found = available("silent", known)
    assert (found.cost_tier, found.typical_latency) == ("expensive", "1m")
    assert found.measured == ["costTier", "typicalLatency"]
    found = available("said", known)
    assert (found.cost_tier, found.typical_latency, found.measured) == ("free", "a coffee", [])
