"""Models of ``pydantic-ai`` as an assignment names them, and what their answers cost."""

import os
from collections.abc import Mapping
from typing import Final

from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from subagents.domain.run.values import replace
from subagents.extensions.llm.llm_assignment import BASE_URLS, Assignment

NO_KEY: Final = "none"
"""Client libraries want one, also for an endpoint that asks for none."""


def addressed(assignment: Assignment, environ: Mapping[str, str]) -> Assignment:
    """With the provider's address, which only the environment has if it was given for the run."""
    given = environ.get(BASE_URLS[assignment.provider])
    return replace(assignment, base_url=assignment.base_url or given or None)


def key_of(assignment: Assignment) -> str:
    """The provider's key, from the environment."""
    return (os.environ.get(assignment.key_env) if assignment.key_env else None) or NO_KEY


def model_of(assignment: Assignment) -> Model:
    """The model to ask. What it needs is imported here: each client library takes a while."""
    key, base_url, name = key_of(assignment), assignment.base_url, assignment.model
    match assignment.provider:
        case "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
            from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

            return AnthropicModel(name, provider=AnthropicProvider(api_key=key, base_url=base_url))
        case "google":
            from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415
            from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415

            return GoogleModel(name, provider=GoogleProvider(api_key=key, base_url=base_url))
        case "openai":
            from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
            from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

            return OpenAIChatModel(name, provider=OpenAIProvider(api_key=key, base_url=base_url))
        case "openai-responses":
            from pydantic_ai.models.openai import OpenAIResponsesModel  # noqa: PLC0415
            from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

            provider = OpenAIProvider(api_key=key, base_url=base_url)
            return OpenAIResponsesModel(name, provider=provider)


def settings_of(assignment: Assignment) -> ModelSettings:
    """How each request is made; trying again is ours (``asking``), never the library's."""
    settings = ModelSettings(max_retries=0, timeout=assignment.request_timeout_s, cache=True)
    if assignment.temperature is not None:
        settings["temperature"] = assignment.temperature
    if assignment.max_tokens is not None:
        settings["max_tokens"] = assignment.max_tokens
    if assignment.thinking is not None:
        settings["thinking"] = False if assignment.thinking == "off" else assignment.thinking
    return settings


def is_counted(response: ModelResponse) -> bool:
    """Whether its endpoint says what it used; not every one does."""
    return bool(response.usage.input_tokens or response.usage.output_tokens)


def cost_usd(response: ModelResponse, assignment: Assignment) -> float | None:
    """What an answer cost by the price list of the package; None = unknown, never 0.

    An address of one's own may have prices of its own.
    """
    if assignment.base_url is not None:
        return None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None
