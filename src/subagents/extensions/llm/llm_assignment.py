"""What the worker program of the runtime ``llm`` is started with: a file, without secrets.

``llm_runtime`` writes it, ``python -m subagents.extensions.llm.agent_loop FILE`` reads it.
"""

from collections.abc import Mapping
from typing import Final, Literal

from subagents.domain.run.values import Value

FILE: Final = "assignment"

Provider = Literal["anthropic", "openai", "openai-responses", "google"]
BASE_URLS: Final[Mapping[str, str]] = {
    "anthropic": "ANTHROPIC_BASE_URL",
    "openai": "OPENAI_BASE_URL",
    "openai-responses": "OPENAI_BASE_URL",
    "google": "GOOGLE_GEMINI_BASE_URL",
}

OWN_TOOLS: Final = ("read", "write", "edit", "list", "grep", "shell")
"""The tools that the worker program brings; those of ours come from the daemon."""

Thinking = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]


class Assignment(Value, frozen=True, kw_only=True):
    """One turn."""

    attempt_id: str
    message: str
    """What the user says in this turn."""
    system_prompt: str
    cwd: str
    provider: Provider
    model: str
    key_env: str | None = None
    """The variable that holds the provider's key; None = the endpoint needs none."""
    base_url: str | None = None
    """None = the provider's own."""
    tools: tuple[str, ...] = OWN_TOOLS
    """The tools of its own that it has; the others do not exist for it."""
    tools_deny: tuple[str, ...] = ()
    """Names of the daemon's tools that it is not to have, in lower case."""
    thinking: Thinking | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    """The longest answer; None = the provider's default."""
    max_turns: int = 50
    """Requests to the model in this turn."""
    context_window: int | None = None
    """Tokens; None = by the model's name."""
    shell_timeout_s: float = 120.0
    request_timeout_s: float = 600.0
    limit_patience_s: float = 3600.0
    """How long it waits, in one go, for a provider that takes no more."""
    session_file: str
    """Where the conversation is kept, after each step."""
    history_file: str | None = None
    """The conversation to continue; None = a new one, unless ``session_file`` exists already."""
    session_id: str
    limits_dir: str
    """Holds when providers may be asked again, for all workers."""
