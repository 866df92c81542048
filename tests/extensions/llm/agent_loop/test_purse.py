"""What a worker asks the daemon before a request, and what it makes of the answer."""

import asyncio
from collections.abc import Mapping

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.test import TestModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from subagents.domain.run.usage import Usage
from subagents.domain.run.values import replace
from subagents.errors import DaemonUnreachable
from subagents.extensions.llm.agent_loop.purse import (
    LEAST_OUTPUT_TOKENS,
    OUTPUT_TOKENS,
    BudgetSpent,
    Purse,
)
from subagents.extensions.llm.llm_assignment import Assignment, Provider

Document = Mapping[str, object]

ASKED: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("hello" * 1_000)])]
GRANTED: Document = {"granted": True, "limited": True}
ASSIGNMENT = Assignment(
    attempt_id="r-1#1",
    message="hello",
    system_prompt="",
    cwd="/",
    provider="openai",
    model="gpt-4.1",
    session_file="",
    session_id="",
    limits_dir="",
)


class CountingModel(TestModel):
    async def count_tokens(self, *_: object, **__: object) -> RequestUsage:
        return RequestUsage(input_tokens=1_000)


class FakeDesk:
    """Answers each question with the next of the given answers."""

    def __init__(self, *answers: Document | Exception) -> None:
        self._answers = list(answers)
        self.needs: list[Document] = []

    async def hold(self, need: Document, *, away_s: float) -> Document:
        self.needs.append({**need, "away_s": away_s})
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def nothing_printed(_kind: str, /, **_fields: object) -> None:
    pass


def purse_at(
    desk: FakeDesk | None,
    *,
    provider: Provider = "openai",
    max_tokens: int | None = None,
    model: str = "gpt-4.1",
) -> Purse:
    return Purse(
        desk,
        replace(ASSIGNMENT, provider=provider, max_tokens=max_tokens, model=model),
        model=CountingModel(model_name=model),
        parameters=ModelRequestParameters(),
        settings=ModelSettings(timeout=1),
        emit=nothing_printed,
        counted_from=0,
    )


def ask(purse: Purse, used: Usage | None = None) -> ModelSettings:
    return asyncio.run(purse.settings_for(ASKED, used or Usage()))


@pytest.mark.requirement("budget:hold:asks")
def test_without_a_daemon_or_a_cap_a_request_is_made_as_it_is() -> None:
    assert ask(purse_at(None)) == {"timeout": 1}
    assert ask(purse_at(FakeDesk({"granted": True}))) == {"timeout": 1}


@pytest.mark.requirement("budget:hold:asks")
@pytest.mark.parametrize("lowered", [None, 500])
def test_under_a_cap_every_answer_has_a_limit(lowered: int | None) -> None:
    desk = FakeDesk({**GRANTED, "outputTokens": lowered})
    found = ask(purse_at(desk), Usage(tokens_in=7, tokens_out=3))

    assert found == {"timeout": 1, "max_tokens": lowered or OUTPUT_TOKENS}
    need = desk.needs[0]
    assert (need["outputTokens"], need["leastOutputTokens"]) == (OUTPUT_TOKENS, LEAST_OUTPUT_TOKENS)
    assert (need["tokensIn"], need["tokensOut"], need["firm"]) == (7, 3, True)


@pytest.mark.requirement("budget:hold:asks")
def test_what_is_refused_is_not_asked_of_the_model() -> None:
    desk = FakeDesk({"limited": True, "again": True}, {"limited": True, "reason": "no room"})
    with pytest.raises(BudgetSpent, match="no room"):
        ask(purse_at(desk))
    assert len(desk.needs) == 2


@pytest.mark.requirement("budget:hold:asks")
def test_where_room_is_scarce_the_provider_counts_where_that_is_free() -> None:
    desk = FakeDesk({"limited": True, "reason": "no room"}, {**GRANTED, "outputTokens": 300})
    assert ask(purse_at(desk, provider="anthropic"))["max_tokens"] == 300

    first, second = desk.needs
    assert (first["firm"], second["firm"]) == (False, True)
    assert int(str(first["inputTokens"])) > 5_000
    assert second["inputTokens"] == 1_020 + 64


@pytest.mark.requirement("budget:hold:asks")
def test_a_request_that_broke_off_stays_held_as_it_may_have_been_used() -> None:
    desk = FakeDesk(GRANTED, GRANTED)
    purse = purse_at(desk, max_tokens=100)
    ask(purse)
    purse.lost()
    ask(purse)

    first, second = desk.needs
    assert (first["lostTokens"], second["lostTokens"]) == (0, int(str(first["inputTokens"])) + 100)


@pytest.mark.requirement("budget:hold:asks")
def test_an_answer_that_a_budget_cut_off_is_not_cut_off_there_again() -> None:
    desk = FakeDesk({**GRANTED, "outputTokens": 300}, GRANTED)
    purse = purse_at(desk, max_tokens=1_000)
    ask(purse)
    assert purse.cut()
    ask(purse)

    assert [each["leastOutputTokens"] for each in desk.needs] == [256, 1_000]
    assert not purse.cut()


@pytest.mark.requirement("budget:hold:asks")
def test_only_a_worker_that_nothing_limits_goes_on_without_a_daemon() -> None:
    away = DaemonUnreachable("away")
    free = purse_at(FakeDesk({"granted": True}, away))
    ask(free)
    assert ask(free) == {"timeout": 1}
    limited = purse_at(FakeDesk(GRANTED, away))
    ask(limited)
    with pytest.raises(DaemonUnreachable):
        ask(limited)


@pytest.mark.requirement("budget:hold:asks")
def test_what_a_request_may_cost_is_said_where_the_price_is_known() -> None:
    desk, other = FakeDesk({"granted": True}), FakeDesk({"granted": True})
    model = purse_at(desk)
    model._model._system = "openai"  # type: ignore[attr-defined]
    ask(model)
    ask(purse_at(other, model="nobody-knows"))

    assert float(str(desk.needs[0]["inputUsd"])) > 0
    assert float(str(desk.needs[0]["outputTokenUsd"])) > 0
    assert other.needs[0]["inputUsd"] is None
