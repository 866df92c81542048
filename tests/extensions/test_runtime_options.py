"""Every runtime says the same of the same mistake in an agent's options."""

from collections.abc import Callable, Mapping

import pytest

from subagents.errors import ConfigError
from subagents.extensions.acp.acp_agents import parse_options as acp_options
from subagents.extensions.claude.claude_options import parse_options as claude_options
from subagents.extensions.codex.codex_options import parse_options as codex_options
from subagents.extensions.llm.llm_options import parse_options as llm_options
from subagents.runtimes.command import parse_options as command_options

RUNTIMES: dict[str, tuple[Callable[[Mapping[str, object]], object], dict[str, object]]] = {
    "acp": (acp_options, {"agent": "gemini"}),
    "claude-code": (claude_options, {}),
    "codex": (codex_options, {}),
    "command": (command_options, {"command": ["true"]}),
    "llm": (llm_options, {}),
}


@pytest.mark.requirement("runtimes:options-refused-early")
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pass_evn": ["A"]}, "did you mean `pass_env`?"),
        ({"zzz": 1}, "knows no option `zzz`; known are"),
        ({"env": {"A-B": "x"}}, "env"),
        ({"pass_env": ["*"]}, "pass_env"),
        ({"env": {"SUBAGENTS_TOKEN": "x"}}, "`SUBAGENTS_TOKEN`: variables SUBAGENTS_* are set by"),
        ({"pass_env": ["SUBAGENTS_*"]}, "are set by subagents; remove it"),
        ({"env": {"A": "x\0y"}}, "`env` cannot hold NUL characters"),
    ],
)
def test_a_wrong_option_is_named_in_the_same_words_by_every_runtime(
    runtime: str, options: dict[str, object], message: str
) -> None:
    parse, least = RUNTIMES[runtime]

    with pytest.raises(ConfigError) as refused:
        parse({**least, **options})

    assert message in refused.value.message


@pytest.mark.requirement("runtimes:options-refused-early")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_every_program_takes_is_taken_by_every_runtime(runtime: str) -> None:
    parse, least = RUNTIMES[runtime]

    found = parse({**least, "env": {"A": "x"}, "pass_env": ["B", "C_*"]})

    assert getattr(found, "env") == {"A": "x"}  # noqa: B009 - each runtime has a struct of its own
    assert getattr(found, "pass_env") == ("B", "C_*")  # noqa: B009
