"""A conversation outlives its process: whole, repaired, and continued by a later attempt."""

from pathlib import Path

import pytest
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from subagents.extensions.llm.agent_loop.conversation_file import (
    SHRUNK_CHARS,
    UNKNOWN,
    Conversation,
    user,
)


def told(conversation: Conversation) -> list[object]:
    return [getattr(part, "content", None) for each in conversation.messages for part in each.parts]


def answered(conversation: Conversation, *parts: TextPart | ToolCallPart) -> None:
    used = RequestUsage(input_tokens=10, output_tokens=5, cache_read_tokens=4)
    conversation.answered(ModelResponse(parts=list(parts), usage=used), 0.5)


@pytest.mark.requirement("llm:session:history")
def test_a_later_attempt_continues_a_conversation_and_counts_its_own_usage_only(
    tmp_path: Path,
) -> None:
    first = Conversation(tmp_path / "first.json", "r-1#1")
    first.ask([user("hello")], instructions="be kind")
    answered(first, TextPart("hi"))

    same = Conversation.opened(tmp_path / "first.json", "r-1#1", tmp_path / "first.json")
    later = Conversation.opened(tmp_path / "later.json", "r-1#2", tmp_path / "first.json")

    assert told(same) == told(later) == ["hello", "hi"]
    assert (same.usage.tokens_in, same.usage.cost_usd) == (10, 0.5)
    assert (same.usage.tokens_cache_read, same.usage.tokens) == (4, 11)
    assert later.usage.tokens_in is None
    later.answered(ModelResponse(parts=[TextPart("nobody counts")]), 0.0)
    again = Conversation.opened(tmp_path / "later.json", "r-1#2", tmp_path / "first.json")
    assert (again.usage.tokens_in, again.usage.cost_usd) == (None, None)


@pytest.mark.requirement("llm:session:killed")
def test_a_call_that_a_kill_cut_off_gets_an_unknown_outcome(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    killed = Conversation(path, "r-1#1")
    killed.ask([user("go")], instructions="")
    answered(killed, ToolCallPart("shell", {"command": "make"}, "c1"))

    after = Conversation.opened(path, "r-1#1", path)

    assert told(after)[-1] == UNKNOWN


@pytest.mark.requirement("llm:session:unreadable")
@pytest.mark.parametrize("content", [None, b"", b"{", b'{"attemptId":"x","messages":[{}]}'])
def test_a_conversation_that_cannot_be_read_is_an_error_that_names_its_file(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "c.json"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(ValueError, match=r"c\.json cannot be read"):
        Conversation.opened(tmp_path / "new.json", "r-1#1", path)


@pytest.mark.requirement("llm:window")
def test_for_a_full_window_old_outputs_of_tools_are_shortened_and_new_ones_kept(
    tmp_path: Path,
) -> None:
    conversation = Conversation(tmp_path / "c.json", "r-1#1")
    long = "x" * 10 * SHRUNK_CHARS
    for number in range(4):
        conversation.ask([ToolReturnPart("read", long, f"c{number}")], instructions="")
        answered(conversation, TextPart("more"))

    assert conversation.shrink()
    assert not conversation.shrink()

    sizes = [
        len(part.model_response_str())
        for each in conversation.messages
        if isinstance(each, ModelRequest)
        for part in each.parts
        if isinstance(part, ToolReturnPart)
    ]
    assert [size < 2 * SHRUNK_CHARS for size in sizes] == [True, True, False, False]


@pytest.mark.requirement("llm:session:files")
def test_what_was_never_answered_goes_to_the_model_with_what_comes_next(tmp_path: Path) -> None:
    conversation = Conversation(tmp_path / "c.json", "r-1#1")
    conversation.ask([user("first")], instructions="")
    conversation.ask([user("second")], instructions="")

    (request,) = conversation.messages
    assert [part.content for part in request.parts if isinstance(part, UserPromptPart)] == [
        "first",
        "second",
    ]
