"""The dialect of Codex: messages into its turn, its marks, its end."""

import json
from pathlib import Path

import pytest
from tests.extensions.codex.codex_folds import CODEX, fold, lines_of, opening, working

from subagents.errors import UsageError
from subagents.extensions.conversation.jsonrpc import Request, decode


@pytest.mark.requirement("codex:steer")
def test_a_message_goes_into_the_turn_and_is_taken_when_codex_says_so() -> None:
    state = working()
    input_line = CODEX.steer(state, "turn left", key="s1")

    assert input_line is not None
    sent = json.loads(input_line.line)
    assert sent["method"] == "turn/steer"
    assert sent["params"]["expectedTurnId"] == state.turn_id
    assert sent["params"]["input"] == [{"type": "text", "text": "turn left"}]
    assert CODEX.accepted(state, "s1") is None
    assert CODEX.accepted(fold(lines_of("steer")).state, "k1") is True
    assert fold(lines_of("steer")).result.text == "steered"


@pytest.mark.requirement("codex:steer")
def test_a_message_that_comes_after_the_turn_was_not_taken() -> None:
    folded = fold(lines_of("steer-too-late"))

    assert CODEX.accepted(folded.state, "k1") is False
    assert CODEX.steer(folded.state, "more", key="s2") is None
    assert CODEX.steer(CODEX.begin(opening()).state, "too early", key="s3") is None


@pytest.mark.requirement("codex:errors")
def test_a_program_that_is_gone_in_mid_turn_leaves_an_error_with_the_last_text() -> None:
    lines = [line for line in lines_of("tools") if b'"turn/completed"' not in line]
    folded = fold(lines)

    assert folded.result.is_error
    assert folded.result.text == "bye"
    assert "in the middle of its turn" in str(folded.result.error)


@pytest.mark.requirement("codex:start")
def test_every_process_of_a_command_carries_the_mark_of_its_attempt(tmp_path: Path) -> None:
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    found = CODEX.invocation(
        opening(cwd=str(tmp_path)), directory="/state/attempts/r-abcdefghij/1", path=str(tmp_path)
    )

    assert found.argv[:2] == (str(program), "app-server")
    assert 'shell_environment_policy.set.SUBAGENTS_ATTEMPT="r-abcdefghij#1"' in found.argv
    assert 'shell_environment_policy.set.SUBAGENTS_ATTEMPTS_DIR="/state/attempts"' in found.argv
    with pytest.raises(UsageError, match=r"runtime_options\.command"):
        CODEX.invocation(opening(cwd=str(tmp_path)), directory="/state", path="/nonexistent")


@pytest.mark.requirement("codex:stream:never-raises")
def test_every_letter_is_one_line_of_json() -> None:
    for input_line in fold(lines_of("tools")).input_lines:
        assert b"\n" not in input_line.line
        assert isinstance(decode(input_line.line), Request) or input_line.key == "initialized"
