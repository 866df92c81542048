"""One turn of an ACP agent: messages into it, questions, and its end."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.extensions.acp.acp_folds import (
    DIALECT,
    AcpFold,
    agent_of,
    answer,
    chunk,
    failure,
    of_agent,
    opening,
    permission,
    update,
)
from tests.extensions.acp.acp_lines import JSON, RECORDINGS, played

from subagents.domain.run.signals import (
    UsageSeen,
)
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import LineType


@pytest.mark.requirement("acp:stream:same-twice")
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_folding_twice_gives_the_same_letters_and_signals(recording: Path) -> None:
    first, again = played(recording), played(recording, at_ms=None)

    assert first.input_lines == again.input_lines
    assert first.signals == again.signals
    assert len({input_line.key for input_line in first.input_lines}) == len(first.input_lines)


@pytest.mark.requirement("acp:steer:open")
def test_a_message_is_sent_when_the_turn_is_still_open_and_answered_before_it_is_over() -> None:
    fold = AcpFold(opening())
    fold.open()
    mark = DIALECT.steer(fold.state, "turn left", key="k")
    assert mark is not None
    asked = json.loads(mark.line)
    assert DIALECT.accepted(fold.state, "k") is None

    fold.hear(failure(asked["id"], -32601, "method not found"))
    assert DIALECT.accepted(fold.state, "k") is True
    assert fold.sent("session/prompt")[-1]["prompt"][0]["text"] == "turn left"
    fold.hear(answer("prompt", {"stopReason": "end_turn"}))
    assert not fold.is_done
    fold.hear(chunk("left it is"), answer("prompt:k", {"stopReason": "end_turn"}))

    assert fold.is_done
    assert fold.result.text == "left it is"


@pytest.mark.requirement("acp:steer:late")
def test_a_message_that_comes_too_late_is_not_sent_and_not_taken() -> None:
    fold = AcpFold(opening())
    fold.open()
    mark = DIALECT.steer(fold.state, "turn left", key="k")
    assert mark is not None

    fold.hear(answer("prompt", {"stopReason": "end_turn"}))
    fold.hear(failure(json.loads(mark.line)["id"], -32601, "method not found"))

    assert fold.is_done
    assert DIALECT.accepted(fold.state, "k") is False
    assert len(fold.sent("session/prompt")) == 1
    assert DIALECT.steer(fold.state, "again", key="k2") is None


@pytest.mark.requirement("acp:steer:pulled")
def test_qwen_is_given_messages_when_it_asks_for_them() -> None:
    fold = AcpFold(of_agent("qwen"))
    fold.open()
    for key, text in (("k1", "turn left"), ("k2", "then right")):
        mark = DIALECT.steer(fold.state, text, key=key)
        assert mark is not None
        fold.hear(failure(json.loads(mark.line)["id"], -32601, "method not found"))
    assert DIALECT.accepted(fold.state, "k1") is None

    pull = {"jsonrpc": "2.0", "id": 7, "method": "craft/drainMidTurnQueue", "params": {}}
    fold.hear(pull)

    assert fold.answers()[-1]["result"]["messages"] == ["turn left", "then right"]
    assert DIALECT.accepted(fold.state, "k1") is True
    mark = DIALECT.steer(fold.state, "too late", key="k3")
    assert mark is not None
    fold.hear(failure(json.loads(mark.line)["id"], -32601, "method not found"))
    fold.hear(answer("prompt", {"stopReason": "end_turn"}))
    assert DIALECT.accepted(fold.state, "k3") is False


@pytest.mark.requirement("acp:steer:others")
@pytest.mark.parametrize("agent", ["gemini", "goose", "codex-acp"])
def test_an_agent_that_would_queue_or_end_its_turn_takes_no_message(agent: str) -> None:
    fold = AcpFold(of_agent(agent))
    fold.hear(answer("initialize", {"protocolVersion": 1}))
    if agent == "gemini":
        fold.hear(answer("authenticate", {}))
    fold.hear(answer("session", {"sessionId": "s-1"}))

    assert fold.sent("session/prompt")
    assert DIALECT.steer(fold.state, "turn left", key="k") is None
    assert not DIALECT.abilities_of({"agent": agent}).steer


@pytest.mark.requirement("acp:interrupt")
def test_an_interrupt_cancels_the_session_and_only_while_a_prompt_is_open() -> None:
    fold = AcpFold(opening())
    assert DIALECT.interrupt(fold.state, key="i") is None
    fold.open()
    input_line = DIALECT.interrupt(fold.state, key="i")

    assert input_line is not None
    assert json.loads(input_line.line) == {
        "jsonrpc": "2.0",
        "method": "session/cancel",
        "params": {"sessionId": "s-1"},
    }


@pytest.mark.requirement("acp:permission:open")
def test_without_a_scope_every_question_is_answered_with_allow_once() -> None:
    fold = AcpFold(opening())
    fold.open()
    fold.hear(permission("rm", "delete", id="q"))

    assert fold.answers()[-1] == {
        "jsonrpc": "2.0",
        "id": "q",
        "result": {"outcome": {"outcome": "selected", "optionId": "y"}},
    }


@pytest.mark.requirement("acp:permission:none-fits")
def test_a_question_that_offers_no_fitting_answer_is_given_up() -> None:
    fold = AcpFold(opening())
    fold.open()
    asked = permission("rm", "delete")
    asked["params"]["options"] = [{"optionId": "n", "name": "No", "kind": "reject_once"}]
    fold.hear(asked)

    assert fold.answers()[-1]["result"] == {"outcome": {"outcome": "cancelled"}}


@pytest.mark.requirement("acp:asked:unknown")
def test_what_this_client_does_not_do_is_refused_and_never_left_unanswered() -> None:
    fold = AcpFold(opening())
    fold.open()
    for number, method in enumerate(("fs/read_text_file", "terminal/create", "vendor/thing")):
        fold.hear({"jsonrpc": "2.0", "id": number, "method": method, "params": {}})
    fold.hear({"jsonrpc": "2.0", "id": "e", "method": "elicitation/create", "params": {}})

    assert [each["error"]["code"] for each in fold.answers()[:3]] == [-32601] * 3
    assert fold.answers()[3]["result"] == {"action": "decline"}


@pytest.mark.requirement("acp:ends")
def test_an_agent_that_dies_in_its_turn_leaves_an_error_and_its_last_words() -> None:
    fold = AcpFold(opening())
    fold.open()
    fold.hear(chunk("half a sent"))
    fold.finish()

    assert fold.result.error == "the agent ended before its turn was over"
    assert fold.result.text == "half a sent"
    assert fold.texts(LineType.TEXT) == ["half a sent"]


@pytest.mark.requirement("acp:usage")
@pytest.mark.parametrize(
    ("told", "cost"), [(0.75, 0.75), (0.25, 0.75)], ids=["of the session", "of the process"]
)
def test_a_further_turn_counts_on_from_the_turns_before(told: float, cost: float) -> None:
    before = Usage(tokens_in=100, tokens_out=50, cost_usd=0.5)
    turn = AcpFold(replace(opening(), turn=2, used=before))
    turn.open()
    turn.hear(update("usage_update", used=90, size=200, cost={"amount": told, "currency": "USD"}))
    used = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
    turn.hear(answer("prompt", {"stopReason": "end_turn", "usage": used}))

    totals = [each.usage for each in turn.signals if isinstance(each, UsageSeen)]
    assert totals[-1] == Usage(tokens_in=110, tokens_out=55, cost_usd=cost)


@pytest.mark.requirement("acp:usage")
@pytest.mark.parametrize(("used", "cost"), [(None, 0.25), (Usage(cost_usd=0.125), 0.375)])
def test_what_a_resumed_session_had_cost_before_is_not_counted_again(
    used: Usage | None, cost: float
) -> None:
    turn = AcpFold(opening(session_id="s-1", used=used))
    able = {"loadSession": True}
    turn.hear(answer("initialize", {"protocolVersion": 1, "agentCapabilities": able}))
    for amount, then in ((0.5, answer("session", {})), (0.5, chunk("hi")), (0.75, chunk("."))):
        turn.hear(update("usage_update", cost={"amount": amount, "currency": "USD"}))
        turn.hear(then)

    totals = [each.usage for each in turn.signals if isinstance(each, UsageSeen)]
    assert totals == [Usage(cost_usd=cost)]


@pytest.mark.requirement("acp:stream:anything")
@given(
    st.binary(max_size=200), st.sampled_from(["initialize", "session", "prompt", "set:mode"]), JSON
)
def test_no_line_and_no_answer_of_any_shape_raises(noise: bytes, id: str, result: Any) -> None:  # noqa: A002
    fold = AcpFold(of_agent("opencode"))
    fold.hear(noise)
    fold.hear(json.dumps(answer(id, result)).encode())
    fold.open()
    fold.hear(json.dumps(answer(id, result)).encode(), noise)
    fold.hear(
        json.dumps(
            {
                "id": 1,
                "method": "session/request_permission",
                "params": {"toolCall": result, "options": result},
            }
        ).encode()
    )
    fold.finish()

    assert fold.is_done


@pytest.mark.requirement("acp:stream:anything")
@pytest.mark.parametrize("recording", RECORDINGS[:4], ids=lambda path: path.stem)
def test_a_stream_that_is_cut_anywhere_is_still_heard(recording: Path) -> None:
    data = recording.read_bytes()
    for at in range(0, len(data), max(1, len(data) // 60)):
        fold = AcpFold(of_agent(agent_of(recording)))
        for line in data[:at].splitlines():
            fold.hear(line)
        fold.finish()
        assert fold.is_done
