"""The dialects of this package keep what ``Dialect`` promises of all of them."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.extensions.conversation.folds import an_opening
from tests.extensions.dialects import dialects

from subagents.config.settings import RUNTIMES
from subagents.domain.run.signals import ResultSeen
from subagents.extensions.conversation.dialect import Dialect, Opening, Permissions, asked_for
from subagents.runtimes.output.tool_lines import COMMAND_CHARS_MAX

DIALECTS: Final = dialects()
JSON_LINES: Final = (b"{}", b"[]", b"null", b'{"id":1}', b'{"type":"result"}')
OPTIONS: Final[dict[str, dict[str, object]]] = {"acp": {"agent": "opencode"}}


def opening(dialect: Dialect[Any]) -> Opening:
    return an_opening(system_prompt="", options=OPTIONS.get(dialect.name, {}))


@pytest.mark.requirement("conversation:stream:garbage")
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: each.name)
@given(
    lines=st.lists(st.binary(max_size=60) | st.sampled_from([b"{}", b"[]", b"null", b'{"id":1}']))
)
def test_no_line_raises_and_folding_it_again_gives_the_same(
    dialect: Dialect[Any], lines: list[bytes]
) -> None:
    def folded() -> list[object]:
        step = dialect.begin(opening(dialect))
        found: list[object] = [step]
        for line in lines:
            step = dialect.read_line(step.state, line, now_ms=None)
            found.append(step)
        return [*found, dialect.finish(step.state)]

    assert folded() == folded()


@pytest.mark.requirement("conversation:end:middle-of-a-turn")
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: each.name)
def test_a_program_that_ends_before_its_turn_leaves_a_result_that_is_an_error(
    dialect: Dialect[Any],
) -> None:
    state = dialect.begin(opening(dialect)).state

    results = [each for each in dialect.finish(state).signals if isinstance(each, ResultSeen)]

    assert [each.is_error for each in results] == [True]
    assert results[0].error


@pytest.mark.requirement("conversation:turn:whole")
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: each.name)
def test_a_line_to_send_is_one_line_and_its_key_names_it_alone(dialect: Dialect[Any]) -> None:
    lines = dialect.begin(opening(dialect)).input_lines

    assert len({each.key for each in lines}) == len(lines)
    assert all(b"\n" not in each.line for each in lines)


@pytest.mark.requirement("config:runtimes")
def test_the_configuration_knows_every_runtime_of_this_package() -> None:
    assert set(RUNTIMES) == {each.name for each in DIALECTS} | {"command", "scripted"}


@pytest.mark.requirement("permissions:for-agent")
@pytest.mark.parametrize(
    ("tool", "told", "call"),
    [
        ("Bash", {"command": "make\nls", "description": "…", "timeout": 9}, "Bash: make\nls"),
        ("Write", {"file_path": "/a b", "content": "x"}, "Write: /a b"),
        ("shell", {"command": ["bash", "-lc", "ls -a"]}, "shell: ls -a"),
        ("shell", {"command": ["su", "-c", "ls -a"]}, "shell: su -c 'ls -a'"),
        ("shell", {"command": ["./sh", "-c", "ls"]}, "shell: ./sh -c ls"),
        ("Bash", {"command": "x" * COMMAND_CHARS_MAX}, None),
        ("Bash", {"command": "make", "dangerouslyDisableSandbox": True}, None),
        ("mcp__far__exec", {"command": "make", "host": "prod"}, None),
        ("move", {"path": "/a", "destination": "/b"}, None),
        ("WebFetch", {"url": "https://example.org", "prompt": "x"}, None),
        ("terminal", "ls and more", None),
        ("Bash: ls", {"command": "make"}, None),
    ],
)
def test_a_call_is_known_again_by_all_of_its_command_or_path(
    tool: str, told: object, call: str | None
) -> None:
    answers = Permissions(once="", lasting="", deny="")
    _, asked = asked_for({}, answers, call_id="c", tool=tool, given=told)
    assert asked.call == call
