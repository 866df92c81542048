"""The dialects of this package: one line each, and they are runtimes under their names."""

from typing import Any

from subagents.runtimes.acp import AcpDialect
from subagents.runtimes.claude_code import ClaudeDialect
from subagents.runtimes.codex import CodexDialect
from subagents.runtimes.dialogue import Dialect
from subagents.runtimes.llm import LlmDialect


def dialects() -> tuple[Dialect[Any], ...]:
    """All there are; ``wiring`` makes a ``ConversationRuntime`` of each."""
    return (AcpDialect(), ClaudeDialect(), CodexDialect(), LlmDialect())
