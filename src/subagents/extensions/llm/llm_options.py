"""What an ``llm`` agent is configured with: its options, its model, its key, its scope.

See docs/runtimes/llm.md.
"""

from collections.abc import Mapping
from typing import Annotated, Final, get_args

import msgspec

from subagents.config.settings import nearest
from subagents.domain.rules.tool_kinds import kind_of, kinds_of
from subagents.errors import UsageError
from subagents.extensions.llm.llm_assignment import OWN_TOOLS, Provider, Thinking
from subagents.runtimes.runtime_options import VariableName, WorkerOptions, check_variables, parsed

NAME: Final = "llm"
PROVIDERS: Final[tuple[str, ...]] = get_args(Provider)
THINKING: Final[tuple[str, ...]] = get_args(Thinking)
PROVIDER_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openai-responses": ("OPENAI_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}
"""Where each provider's own programs look for the key."""
KINDS: Final = kinds_of(OWN_TOOLS)

_Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
_Count = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]


class LlmOptions(WorkerOptions, frozen=True, kw_only=True):
    """``[agents.<id>.runtime_options]``, with ``env`` and ``pass_env`` of the agent next to it."""

    provider: Provider | None = None
    base_url: Annotated[str, msgspec.Meta(pattern=r"^https?://\S+$")] | None = None
    api_key_env: VariableName | None = None
    max_turns: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 50
    max_tokens: _Count | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    context_window: _Count | None = None
    shell_timeout_seconds: _Seconds = 120.0
    request_timeout_seconds: _Seconds = 600.0
    limit_patience_seconds: _Seconds = 3600.0


def scoped(tools: tuple[str, ...] | None, deny: tuple[str, ...]) -> tuple[str, ...]:
    """The worker's own tools that a scope leaves, by what they do and not by their names.

    Args:
        tools: The only ones; None = all.
        deny: Not these, whatever else.
    """
    allowed = KINDS if tools is None else kinds_of(tools)
    denied = kinds_of(deny)
    return tuple(tool for tool in OWN_TOOLS if (kind := kind_of(tool)) in allowed - denied and kind)


def parse_options(options: Mapping[str, object]) -> LlmOptions:
    """The options of an ``llm`` agent.

    Raises:
        ConfigError: Names the key and what is allowed.
    """
    found = parsed(options, LlmOptions, runtime=NAME)
    check_variables([found.api_key_env or ""])
    return found


def named_model(model: str | None, options: LlmOptions) -> tuple[Provider, str]:
    """Provider and name of a model.

    Raises:
        UsageError: There is no model, or nothing says whose it is.
    """
    example = '`model = "anthropic:claude-sonnet-4-5"`'
    if not model:
        raise UsageError(f'runtime "{NAME}" needs a model: set {example} in the agent\'s section')
    if options.provider is not None:
        prefix, _, rest = model.partition(":")
        return options.provider, rest if prefix == options.provider and rest else model
    for provider in get_args(Provider):
        if model.startswith(f"{provider}:") and len(model) > len(provider) + 1:
            return provider, model.removeprefix(f"{provider}:")
    near = nearest(model.partition(":")[0], PROVIDERS)
    meant = f"; did you mean `{near}:`?" if near else ""
    raise UsageError(
        f'`model` "{model}" names no provider{meant}; write {example}, or set '
        f"runtime_options.provider to one of {', '.join(PROVIDERS)}"
    )


def key_names(provider: Provider, options: LlmOptions) -> tuple[str, ...]:
    """The variables that may hold the key, in the order they are looked at."""
    return PROVIDER_KEYS[provider] if options.api_key_env is None else (options.api_key_env,)


def key_variable(provider: Provider, options: LlmOptions, environ: Mapping[str, str]) -> str | None:
    """The variable with the key; None = there is none, and an endpoint of one's own needs none.

    Raises:
        UsageError: The variable that the configuration names is not set.
    """
    found = next((name for name in key_names(provider, options) if environ.get(name)), None)
    if found is None and options.api_key_env is not None:
        raise UsageError(
            f"runtime_options.api_key_env: {options.api_key_env} is not set in the daemon's "
            "environment; set it there and restart the daemon"
        )
    return found


def thinking_level(level: str | None) -> Thinking | None:
    """The level, in the words that providers share.

    Raises:
        UsageError: There is no such level.
    """
    for known in get_args(Thinking):
        if known == level:
            found: Thinking = known
            return found
    if level is None:
        return None
    raise UsageError(f'`thinking` "{level}": runtime "{NAME}" knows {", ".join(THINKING)}')
