"""Claude Code's stream: real recordings mean what they should, and nothing ever raises."""

import msgspec
import pytest
from tests.extensions.claude.claude_folds import NAMES, SESSION, event, fold, lines, turn_two

from subagents.domain.run.signals import (
    ResultSeen,
    SessionSeen,
    UsageSeen,
)
from subagents.domain.run.usage import Usage
from subagents.domain.run.worker_output import LineType
from subagents.extensions.claude.claude_stream import Spending, spent, total


@pytest.mark.requirement("claude-worker:stream:every-event-known")
@pytest.mark.parametrize("name", NAMES)
def test_every_event_of_the_real_program_is_known(name: str) -> None:
    folded = fold(lines(name), turn_two(name))
    assert not folded.state.unknown
    assert not [each for each in folded.output if each.text.startswith("unknown event")]


@pytest.mark.requirement("claude-worker:stream:text")
def test_what_it_says_is_its_text_and_its_result() -> None:
    folded = fold(lines("text"))
    assert folded.texts(LineType.TEXT) == ["The answer is 42."]
    assert folded.result == ResultSeen(key="", text="The answer is 42.")
    assert SessionSeen(key="", session_id=SESSION) in folded.signals
    context = [each.context for each in folded.output if each.context is not None]
    assert [(each.tokens > 1000, each.model is not None) for each in context] == [(True, True)]


@pytest.mark.requirement("claude-worker:usage:totals-and-cost")
def test_usage_grows_while_it_works_and_ends_with_the_programs_own_account() -> None:
    seen = [each.usage for each in fold(lines("tools")).signals if isinstance(each, UsageSeen)]
    read = [each.tokens_in or 0 for each in seen]
    assert read == sorted(read)
    assert len(seen) == 6
    assert all(each.cost_usd is None for each in seen[:-1])
    assert seen[-1].tokens_out == 40
    assert seen[-1].cost_usd is not None
    assert seen[-2].tokens_in == seen[-1].tokens_in


@pytest.mark.requirement("claude-worker:usage:totals-and-cost", "usage:cached-apart")
def test_what_came_from_the_cache_and_what_went_into_it_are_parts_of_the_input() -> None:
    def message(name: str, read: int, written: int, out: int) -> dict[str, object]:
        cache = {"cache_read_input_tokens": read, "cache_creation_input_tokens": written}
        return {"id": name, "usage": {"input_tokens": 3, "output_tokens": out, **cache}}

    one = spent(Spending(), "", message("m1", 50_000, 900, 1))
    one = spent(one, "", message("m1", 50_000, 900, 20))  # its next block repeats it
    two = spent(one, "", message("m2", 50_900, 100, 5))
    old = msgspec.convert(
        {"tokensIn": 50_903, "tokensOut": 1, "open": {"": ["m1", 50_903, 1]}}, Spending
    )

    assert two.usage == Usage(
        tokens_in=101_906, tokens_out=25, tokens_cache_read=100_900, tokens_cache_write=1_000
    )
    assert spent(old, "", message("m1", 50_000, 900, 20)) == one
    assert total(
        {
            "a": {"inputTokens": 3, "cacheReadInputTokens": 50_000, "outputTokens": 20},
            "b": {"inputTokens": 4, "cacheCreationInputTokens": 10, "outputTokens": 1},
        }
    ) == Usage(tokens_in=50_017, tokens_out=21, tokens_cache_read=50_000, tokens_cache_write=10)


@pytest.mark.requirement("claude-worker:usage:unknown-cost")
def test_a_cost_that_the_program_guessed_is_no_cost() -> None:
    found = [
        line.replace(b'"costBasis": "list"', b'"costBasis": "unknown"') for line in lines("text")
    ]
    assert fold(found).usage.cost_usd is None
    assert fold(found).usage.tokens_out == 8


@pytest.mark.requirement("claude-worker:errors:api-retry")
def test_a_provider_that_refuses_for_now_is_told_with_its_status_and_the_wait() -> None:
    folded = fold(lines("retry"))
    errors = [each.api_error for each in folded.output if each.api_error is not None]
    assert [(each.status, each.retry) for each in errors] == [
        (529, "1/10"),
        (529, "2/10"),
        (429, "3/10"),
    ]
    assert all(each.retry_after_ms for each in errors)
    assert folded.result.text == "At last."
    assert not folded.result.is_error


@pytest.mark.requirement("claude-worker:stream:huge")
def test_huge_and_deep_lines_are_read_or_told_and_cut() -> None:
    big = "x" * 3_000_000
    block = {"type": "text", "text": big}
    folded = fold(
        [
            event(type="assistant", message={"id": "m", "content": [block]}),
            event(type="result", subtype="success", is_error=False, result=big),
            b"[" * 100_000,
            b'{"type":' * 5_000,
            b"\xff\xfe" + b"\0" * 50,
            b'{"type":"assistant","message":{"content":[{"type":"text","text":"a\\u0000b"}]}}',
        ]
    )
    assert max(len(each.text) for each in folded.output) <= 8_000
    assert (len(folded.result.text), folded.result.bytes_total) == (3_000_000, 0)
    assert folded.texts(LineType.TEXT)[-1] == "a\N{REPLACEMENT CHARACTER}b"
