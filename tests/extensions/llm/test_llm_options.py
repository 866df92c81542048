"""The options of an llm agent: its model, its key, its scope."""

from pathlib import Path

import pytest
from tests.extensions.llm.llm_folds import KEY, LLM, assigned

from subagents.domain.rules.tool_kinds import KINDS
from subagents.errors import ConfigError, UsageError
from subagents.extensions.llm import llm_options
from subagents.extensions.llm.llm_assignment import OWN_TOOLS


@pytest.mark.requirement("llm:options")
@pytest.mark.parametrize(
    ("options", "output"),
    [
        ({"max_turn": 3}, "did you mean `max_turns`?"),
        ({"max_turns": 0}, "$.max_turns"),
        ({"provider": "antropic"}, "$.provider"),
        ({"base_url": "localhost"}, "$.base_url"),
        ({"temperature": "hot"}, "$.temperature"),
        ({"env": {"SUBAGENTS_TOKEN": "x"}}, "SUBAGENTS_"),
    ],
)
def test_an_option_that_could_never_work_is_refused_by_name(
    options: dict[str, object], output: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        LLM.check(options)
    assert output in str(refused.value)


@pytest.mark.requirement("llm:model")
@pytest.mark.parametrize(
    ("model", "provider", "named"),
    [
        ("anthropic:claude-x", None, ("anthropic", "claude-x")),
        ("openai:gpt", None, ("openai", "gpt")),
        ("openai-responses:gpt", None, ("openai-responses", "gpt")),
        ("qwen3:8b", "openai", ("openai", "qwen3:8b")),
        ("openai:gpt", "openai", ("openai", "gpt")),
    ],
)
def test_a_model_names_its_provider_or_the_options_do(
    model: str, provider: str | None, named: tuple[str, str]
) -> None:
    options = llm_options.parse_options({} if provider is None else {"provider": provider})
    assert llm_options.named_model(model, options) == named


@pytest.mark.requirement("llm:model")
@pytest.mark.parametrize(
    ("model", "output"),
    [(None, "needs a model"), ("antropic:x", "did you mean `anthropic:`?"), ("gpt", "no provider")],
)
def test_a_model_of_nobody_is_refused_with_an_example(model: str | None, output: str) -> None:
    with pytest.raises(UsageError, match="anthropic:claude") as refused:
        llm_options.named_model(model, llm_options.parse_options({}))
    assert output in str(refused.value)


@pytest.mark.requirement("llm:thinking")
def test_a_thinking_level_is_one_that_providers_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert assigned(tmp_path, thinking="high").thinking == "high"
    with pytest.raises(UsageError, match="knows off, minimal"):
        assigned(tmp_path, thinking="ultra")


@pytest.mark.requirement("llm:scope:kinds")
@pytest.mark.parametrize("name", sorted(KINDS["shell"]))
def test_a_shell_is_denied_under_every_name_it_has(name: str) -> None:
    assert "shell" not in llm_options.scoped(None, (name,))
    assert "shell" not in llm_options.scoped(None, (name.upper(),))
    assert llm_options.scoped(None, (name,)) == tuple(each for each in OWN_TOOLS if each != "shell")


@pytest.mark.requirement("llm:scope:kinds")
def test_an_allow_list_holds_with_the_names_of_other_programs_and_a_deny_beats_it() -> None:
    assert llm_options.scoped(("Read", "Bash(git:*)"), ()) == ("read", "shell")
    assert llm_options.scoped(("Read", "Bash"), ("exec_command",)) == ("read",)
    assert llm_options.scoped((), ()) == ()
