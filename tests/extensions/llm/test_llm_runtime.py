"""What the runtime ``llm`` makes of its options, its scope and the worker's events."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.extensions.conversation.folds import Fold
from tests.extensions.llm.llm_folds import KEY, LLM, assigned, opening

from subagents.domain.run.signals import (
    ResultSeen,
    SessionSeen,
    ToolSeen,
    UsageSeen,
)
from subagents.domain.run.usage import Usage
from subagents.domain.run.worker_output import ApiError, LineType
from subagents.errors import Forbidden, UsageError
from subagents.extensions.llm import llm_runtime as llm
from subagents.extensions.llm.llm_assignment import FILE
from subagents.extensions.llm.llm_runtime import LlmState
from subagents.installation import extra_command

STREAMS: Final = Path(__file__).parents[2] / "data" / "streams" / "llm"


NAMES: Final = sorted(path.stem for path in STREAMS.glob("*.jsonl"))


def folded(lines: Iterable[bytes]) -> Fold[LlmState]:
    found = Fold(LLM, opening())
    found.hear(*lines)
    found.finish()
    return found


def lines_of(name: str) -> list[bytes]:
    return (STREAMS / f"{name}.jsonl").read_bytes().splitlines()


@pytest.mark.requirement("llm:key:one")
def test_a_worker_gets_the_key_of_its_provider_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}-other")
    directory = tmp_path / "attempts" / "r-abcdefghij" / "2"
    directory.mkdir(parents=True)
    made = LLM.invocation(opening(), directory=str(directory), path="")
    assert made.env == {"ANTHROPIC_API_KEY": KEY}
    assert KEY.encode() not in made.files[FILE]
    assert not any(KEY in each for each in made.argv)
    assert LLM.passes == ()


@pytest.mark.requirement("llm:key:one", "environment:given")
def test_a_key_that_was_given_for_the_run_is_the_workers_own_and_not_the_daemons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    options = {"env": {"ANTHROPIC_API_KEY": "secret:work"}}
    begun = opening(options=options, given=("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"))
    directory = tmp_path / "attempts" / "r-abcdefghij" / "1"
    directory.mkdir(parents=True)

    made = LLM.invocation(begun, directory=str(directory), path="")

    assert made.env == {}
    assignment = msgspec.json.decode(made.files[FILE])
    assert (assignment["keyEnv"], assignment.get("baseUrl")) == ("ANTHROPIC_API_KEY", None)


@pytest.mark.requirement("llm:unset-key")
def test_without_a_key_only_an_address_of_ones_own_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="ANTHROPIC_API_KEY is not set"):
        assigned(tmp_path)
    with pytest.raises(UsageError, match="MY_KEY is not set"):
        assigned(tmp_path, options={"api_key_env": "MY_KEY", "base_url": "http://here"})
    found = assigned(tmp_path, options={"base_url": "http://here"})
    assert (found.key_env, found.base_url) == (None, "http://here")


@pytest.mark.requirement("llm:packages")
def test_missing_packages_are_said_with_the_command_that_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, there in (("PACKAGE", "not_there"), ("MODULES", {"anthropic": "not.there"})):
        with monkeypatch.context() as patched:
            patched.setattr(llm, name, there)
            with pytest.raises(UsageError, match=re.escape(extra_command("anthropic"))):
                assigned(tmp_path)


@pytest.mark.requirement("llm:session:files")
def test_a_conversation_is_a_file_of_its_attempt_and_another_attempts_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    attempts = tmp_path / "attempts"
    first = assigned(tmp_path)
    assert first.session_file == str(attempts / "r-abcdefghij" / "2" / llm.SESSION)
    assert (first.history_file, first.session_id) == (None, "r-abcdefghij/2")
    later = assigned(tmp_path, session_id="r-other/1")
    assert later.history_file == str(attempts / "r-other" / "1" / llm.SESSION)
    assert later.session_file == first.session_file
    with pytest.raises(UsageError, match="is no session"):
        assigned(tmp_path, session_id="../../etc")
    assert Path(later.limits_dir).is_dir()


@pytest.mark.requirement("llm:scope:unknown")
def test_a_tool_that_it_does_not_have_cannot_be_allowed() -> None:
    LLM.check_scope({}, ("read", "Bash"), ("anything",))
    with pytest.raises(Forbidden, match=r"has no tool WebFetch, nonsense; it has read"):
        LLM.check_scope({}, ("read", "WebFetch", "nonsense"), ())


@pytest.mark.requirement("llm:stream")
def test_tools_text_usage_and_the_result_are_heard_and_nothing_twice() -> None:
    found = folded(lines_of("tools"))
    assert found.result == ResultSeen(key="", text="All done.")
    assert [each.text for each in found.output if each.type is LineType.TEXT] == [
        "On it",
        "All done.",
    ]
    names = [each.name for each in found.signals if isinstance(each, ToolSeen)]
    assert names == ["write", "edit", "shell", "read", "grep"]
    shell = next(
        each.tool for each in found.output if each.tool and each.tool.exit_code is not None
    )
    assert (shell.command, shell.exit_code, shell.is_error) == ("cat a/b.txt; exit 3", 3, True)
    used = [each.usage for each in found.signals if isinstance(each, UsageSeen)]
    assert used == sorted(used, key=lambda each: each.tokens_in or 0)
    assert used[-1] != Usage()
    assert found.signals[0] == SessionSeen(key="", session_id="s1")
    assert LLM.is_done(found.state)


@pytest.mark.requirement("llm:stream:limit")
def test_a_limit_is_an_error_of_the_provider_and_only_the_end_of_patience_a_result() -> None:
    waited = folded(lines_of("limit"))
    errors = [each.api_error for each in waited.output if each.api_error]
    assert [(each.status, each.retry) for each in errors] == [(429, None), (500, "1/3")]
    assert isinstance(errors[0], ApiError)
    assert 1_000 <= (errors[0].retry_after_ms or 0) <= 1_200
    assert waited.result.is_limit is False
    given_up = folded(lines_of("patience")).result
    assert (given_up.is_error, given_up.is_limit) == (True, True)
    assert (given_up.retry_after_ms or 0) >= 900_000


@pytest.mark.requirement("llm:stream:error")
def test_an_error_is_said_once() -> None:
    found = folded(lines_of("refused"))
    assert [each.text for each in found.output if each.type is LineType.ERROR] == [
        "anthropic: 401: invalid x-api-key"
    ]
    assert found.result.error == "anthropic: 401: invalid x-api-key"


@pytest.mark.requirement("llm:stream:messages")
def test_a_message_is_a_line_with_its_key_and_known_to_be_taken_when_the_worker_says_so() -> None:
    state = LLM.begin(opening()).state
    letter = LLM.steer(state, "turn\nleft", key="k1")
    assert letter is not None
    assert b"\n" not in letter.line
    assert json.loads(letter.line) == {"type": "message", "key": "k1", "text": "turn\nleft"}
    assert LLM.accepted(state, "k1") is None
    found = folded(lines_of("steer"))
    assert LLM.accepted(found.state, "k1") is True
    assert LLM.steer(found.state, "too late", key="k2") is None
    assert LLM.interrupt(found.state, key="i1") is None
    assert folded(lines_of("interrupt")).result.error == "interrupted"


@pytest.mark.requirement("llm:stream:unfinished")
def test_a_stream_that_breaks_off_is_an_error_with_the_last_words() -> None:
    found = folded(lines_of("tools")[:3])
    assert not LLM.is_done(found.state)
    assert (found.result.is_error, found.result.text) == (True, "On it")
    assert "in the middle of its turn" in (found.result.error or "")


@pytest.mark.requirement("llm:stream:fuzz")
@pytest.mark.parametrize("name", NAMES)
def test_a_stream_folded_twice_is_the_same(name: str) -> None:
    assert folded(lines_of(name)) == folded(lines_of(name))


@pytest.mark.requirement("llm:stream:fuzz")
@given(st.data())
def test_broken_streams_are_heard_without_an_error(data: st.DataObject) -> None:
    lines = lines_of(data.draw(st.sampled_from(NAMES)))
    broken = [_broken(line, data) for line in lines]
    found = folded(broken)
    assert isinstance(found.state, LlmState)


def _broken(line: bytes, data: st.DataObject) -> bytes:
    match data.draw(st.integers(0, 5)):
        case 0:
            return line[: data.draw(st.integers(0, len(line)))]
        case 1:
            return data.draw(st.binary(max_size=200))
        case 2:
            form = json.loads(line)
            values = st.one_of(st.none(), st.integers(), st.text(max_size=5), st.lists(st.none()))
            form[data.draw(st.sampled_from(sorted(form)))] = data.draw(values)
            return json.dumps(form).encode()
        case _:
            return line
