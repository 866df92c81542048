"""Which agent fits: a ranking that gives its reasons and treats everybody by the same rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.domain.agents import suggest as suggest_module
from subagents.domain.agents.agent_stats import Stats, Tokens, rate_of
from subagents.domain.agents.suggest import COST_TIERS, Candidate, suggest
from subagents.domain.run.values import replace

REVIEWER = Candidate(
    agent_id="reviewer",
    description="Reviews code for bugs",
    tags=("review", "python"),
    cost_tier="expensive",
)
WRITER = Candidate(agent_id="writer", description="Writes prose", tags=("docs",), cost_tier="cheap")
PLAIN = Candidate(agent_id="plain")


def order(*candidates: Candidate, **asked: object) -> list[str]:
    return [each.agent_id for each in suggest(candidates, **asked)]  # type: ignore[arg-type]  # as a test gives them


@pytest.mark.requirement("suggest:ranking")
def test_wanted_tags_weigh_most_then_tags_the_hint_names_then_words() -> None:
    assert order(PLAIN, WRITER, REVIEWER, tags=["docs"])[0] == "writer"
    assert order(PLAIN, WRITER, REVIEWER, hint="please review this")[0] == "reviewer"
    assert order(PLAIN, WRITER, REVIEWER, hint="hunt a bug")[0] == "reviewer"
    both = suggest([WRITER, REVIEWER], hint="prose about a review", tags=["DOCS "])
    assert [each.agent_id for each in both] == ["writer", "reviewer"]
    assert both[0].reasons == ("has the tags: docs", "its description has: prose")


@pytest.mark.requirement("suggest:ranking")
def test_words_match_in_other_forms_and_common_ones_do_not_count() -> None:
    tester = Candidate(agent_id="t", description="Testing and tests")
    (found,) = suggest([tester], hint="test the code of this task with an agent")
    (team,) = suggest([Candidate(agent_id="t", description="team reads")], hint="test real")

    assert found.reasons == ("its description has: test",)
    assert team.reasons == ()


@pytest.mark.requirement("suggest:ranking")
def test_a_long_hint_is_not_compared_with_every_word_of_every_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = 0

    def same(one: str, other: str) -> bool:
        nonlocal compared
        compared += 1
        return one == other

    monkeypatch.setattr(suggest_module, "_same", same)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [f"{letter}{number:03}" for letter in letters for number in range(20)]
    hint = " ".join(f"{word}x" for word in words)

    suggest([Candidate(agent_id="t", description=" ".join(words))], hint=hint)

    assert 0 < compared < len(words) ** 2 / 10


@pytest.mark.requirement("suggest:cost")
def test_what_costs_more_than_asked_sinks_and_what_costs_less_rises() -> None:
    tiers = [Candidate(agent_id=tier, cost_tier=tier) for tier in COST_TIERS]

    assert order(*tiers, PLAIN, cost_tier="cheap") == [
        "cheap",
        "free",
        "plain",
        "medium",
        "expensive",
    ]
    (dear,) = suggest([REVIEWER], cost_tier="cheap")
    assert dear.reasons == ("costs more than cheap: expensive",)


def a_record(
    good: int, bad: int = 0, *, checked: int | None = None, cancelled: int = 0, again: int = 0
) -> Stats:
    """So many good and bad attempts; ``checked`` of them had a contract, all by default.

    ``again`` of them were second ones of their runs.
    """
    judged = good + bad
    contract = judged if checked is None else checked
    return Stats(
        name="a",
        runs=judged - again + cancelled,
        attempt_count=judged + cancelled,
        outcomes={"success": good, "failure": bad, "cancelled": cancelled},
        reasons={},
        success=rate_of(good, judged),
        verified=rate_of(min(good, contract), contract),
        took=None,
        tokens=Tokens(input=None, output=None),
        tokens_known=0,
        cost_usd=None,
        cost_known=0,
    )


@pytest.mark.requirement("suggest:record")
def test_a_long_good_record_beats_a_lucky_run_and_a_bad_one_loses_to_none() -> None:
    lucky = Candidate(agent_id="lucky", record=a_record(1))
    proven = Candidate(agent_id="proven", record=a_record(30, 1))
    unlucky = Candidate(agent_id="unlucky", record=a_record(0, 1))
    broken = Candidate(agent_id="broken", record=a_record(1, 12))
    cancelled = Candidate(agent_id="stopped", record=a_record(0, cancelled=50))

    assert order(PLAIN, broken, lucky, proven, cancelled, unlucky) == [
        "proven",
        "lucky",
        "plain",
        "stopped",
        "unlucky",
        "broken",
    ]
    assert suggest([cancelled])[0].reasons == ()


@pytest.mark.requirement("suggest:record")
@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (a_record(0, 20), "0 of 20 runs verified (0–16 %)"),
        (a_record(19, 1), "19 of 20 runs verified (76–99 %)"),
        (a_record(19, 1, checked=0), "19 of 20 runs ok (76–99 %), without a contract"),
        (a_record(19, 1, checked=5), "19 of 20 runs ok (76–99 %), 5 of 5 verified"),
        (a_record(10, 10, again=5), "10 of 20 attempts verified (30–70 %)"),
        (a_record(0, 20, cancelled=30), "0 of 20 runs verified (0–16 %)"),
    ],
)
def test_the_record_is_said_with_its_counts_and_its_interval(record: Stats, reason: str) -> None:
    assert suggest([Candidate(agent_id="a", record=record)])[0].reasons == (reason,)


@pytest.mark.requirement("suggest:record")
def test_what_an_agent_says_of_itself_counts_as_far_as_it_can_be_believed() -> None:
    liar = replace(REVIEWER, agent_id="liar", record=a_record(0, 20))
    often = replace(REVIEWER, agent_id="often", record=a_record(5, 5))
    fresh = replace(REVIEWER, agent_id="fresh")

    wanted = {"hint": "review code", "tags": ["python"]}
    assert order(PLAIN, liar, often, fresh, **wanted) == ["fresh", "often", "plain", "liar"]


@pytest.mark.requirement("suggest:load")
def test_of_equals_the_one_with_no_queue_comes_first() -> None:
    busy = Candidate(agent_id="a-busy", queued=3)

    assert order(busy, PLAIN) == ["plain", "a-busy"]
    assert suggest([busy])[0].reasons == ("3 runs wait for it",)


TEXT = st.text(max_size=30)
CANDIDATES = st.lists(
    st.builds(
        Candidate,
        agent_id=st.text("abcdef", min_size=1, max_size=8),
        description=TEXT,
        notes=TEXT,
        tags=st.lists(TEXT, max_size=3).map(tuple),
        cost_tier=st.sampled_from([None, *COST_TIERS]),
        record=st.none() | st.builds(a_record, st.integers(0, 9), st.integers(0, 9)),
        queued=st.integers(0, 100),
    ),
    max_size=8,
    unique_by=lambda each: each.agent_id,
)


@pytest.mark.requirement("suggest:ranking")
@given(CANDIDATES, TEXT, st.lists(TEXT, max_size=3), st.sampled_from([None, *COST_TIERS]))
def test_everybody_is_ranked_once_and_the_order_given_does_not_matter(
    candidates: list[Candidate], hint: str, tags: list[str], tier: str | None
) -> None:
    found = suggest(candidates, hint=hint, tags=tags, cost_tier=tier)

    assert sorted(each.agent_id for each in found) == sorted(c.agent_id for c in candidates)
    assert [each.score for each in found] == sorted((e.score for e in found), reverse=True)
    assert found == suggest(candidates[::-1], hint=hint, tags=tags, cost_tier=tier)
