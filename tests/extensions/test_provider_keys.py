"""Whose limits an attempt shares: told from its section and environment, without secrets."""

from collections.abc import Mapping

import pytest
from tests.builders import spawned

from subagents.config.paths import Paths
from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.rules.provider_limits import Provider
from subagents.domain.run.run import Run
from subagents.domain.run.shell_variables import is_of_provider
from subagents.domain.run.values import replace
from subagents.extensions.acp.acp_agents import AGENTS
from subagents.extensions.claude.claude_code import ClaudeDialect
from subagents.extensions.codex.codex import CodexDialect
from subagents.extensions.llm import llm_assignment, llm_options
from subagents.runtimes.provider_keys import ProviderKeys
from subagents.wiring import runtimes_here

KEY = "sk-very-secret-key"
RUNTIMES, _ = runtimes_here(Paths.resolve({"SUBAGENTS_HOME": "/nowhere"}))
KEYS = ProviderKeys(RUNTIMES)


def a_run(runtime: str, options: Mapping[str, object], *, model: str | None = None) -> Run:
    run = reduce(None, spawned()).run
    resolved = replace(run.resolved, runtime=runtime, options=dict(options), model=model)
    return replace(run, resolved=resolved)


def of(
    runtime: str,
    options: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    model: str | None = None,
) -> Provider:
    return KEYS.provider_of(a_run(runtime, options or {}, model=model), environ or {})


@pytest.mark.requirement("limits:provider:named")
@pytest.mark.parametrize(
    ("runtime", "options", "environ", "model", "name"),
    [
        ("claude-code", {}, {}, None, "anthropic"),
        ("claude-code", {}, {"ANTHROPIC_BASE_URL": "https://proxy.local/v1"}, None, "proxy.local"),
        ("codex", {}, {}, None, "openai"),
        ("llm", {"base_url": "http://127.0.0.1:8080/v1"}, {}, None, "127.0.0.1:8080"),
        ("llm", {"env": {"OPENAI_BASE_URL": "https://x.example"}}, {}, None, "x.example"),
        ("llm", {"base_url": "http://me:secret@[::1]:8o8o/v1"}, {}, None, "[::1]:8o8o"),
        ("codex", {"env": {"OPENAI_BASE_URL": "http://[::1"}}, {}, None, "[::1"),
        ("llm", {}, {}, "openai:gpt-5", "openai"),
        ("llm", {"provider": "groq"}, {}, "openai:gpt-5", "groq"),
    ],
)
def test_a_provider_is_named_by_its_address_else_by_its_name(
    runtime: str,
    options: Mapping[str, object],
    environ: Mapping[str, str],
    model: str | None,
    name: str,
) -> None:
    assert of(runtime, options, environ, model=model).name == name


@pytest.mark.requirement("limits:provider:unknown")
def test_a_program_of_which_nothing_is_known_shares_limits_with_its_own_agent() -> None:
    run = a_run("command", {})
    assert KEYS.provider_of(run, {}).name == run.resolved.agent_id


@pytest.mark.requirement("limits:provider:key")
def test_another_key_or_runtime_is_another_limit_and_no_key_is_in_it() -> None:
    one = of("claude-code", {}, {"ANTHROPIC_API_KEY": KEY})
    same = of("claude-code", {}, {"ANTHROPIC_API_KEY": KEY, "OTHER_API_KEY": "x"})
    other = of("claude-code", {"env": {"ANTHROPIC_API_KEY": "sk-other"}}, {})
    passed = of("llm", {"pass_env": ["MY_KEY"]}, {"MY_KEY": KEY})
    named = of("llm", {"api_key_env": "MY_KEY"}, {"MY_KEY": KEY})
    assert one == same
    assert len({one.key, other.key, passed.key, of("llm").key}) == 4
    assert passed == named
    assert all(KEY not in each.key for each in (one, other, passed))


@pytest.mark.requirement("environment:provider")
@pytest.mark.parametrize(
    ("runtime", "options", "model", "yes", "no"),
    [
        ("claude-code", {}, None, "ANTHROPIC_API_KEY", "OPENAI_API_KEY"),
        ("codex", {}, None, "CODEX_HOME", "ANTHROPIC_API_KEY"),
        ("acp", {"agent": "gemini"}, None, "GEMINI_API_KEY", "ANTHROPIC_API_KEY"),
        ("acp", {"agent": "qwen"}, None, "DASHSCOPE_API_KEY", "GEMINI_API_KEY"),
        ("acp", {"command": ["x"], "pass_env": ["OPENAI_*"]}, None, "OPENAI_API_KEY", "X"),
        ("acp", {"agent": "nosuch"}, None, "", "OPENAI_API_KEY"),
        ("llm", {}, "openai:gpt", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"),
        ("llm", {}, "google:gemini", "GOOGLE_API_KEY", "OPENAI_API_KEY"),
        ("llm", {}, None, "", "OPENAI_API_KEY"),
        ("command", {}, None, "", "ANTHROPIC_API_KEY"),
        ("of-a-plugin", {"pass_env": ["GOOGLE_API_KEY"]}, None, "GOOGLE_API_KEY", "X"),
    ],
)
def test_a_program_is_given_what_its_runtime_passes_on_of_its_callers_provider(
    runtime: str, options: Mapping[str, object], model: str | None, yes: str, no: str
) -> None:
    resolved = a_run(runtime, options, model=model).resolved
    assert not yes or KEYS.passes(resolved, yes)
    assert not KEYS.passes(resolved, no)


@pytest.mark.requirement("environment:provider")
def test_callers_bring_every_variable_that_a_runtime_of_ours_passes_on() -> None:
    wanted = {
        *ClaudeDialect.passes,
        *CodexDialect.passes,
        *(name for facts in AGENTS.values() for name in facts.passes),
        *(name for names in llm_options.PROVIDER_KEYS.values() for name in names),
        *llm_assignment.BASE_URLS.values(),
    }
    lacking = {each for each in wanted if not is_of_provider(each.replace("*", "X"))}
    # Behind ACP all of a program's own variables are passed on: also what only says that one runs.
    assert lacking == {"CLAUDE_*", "CODEX_*", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"}
