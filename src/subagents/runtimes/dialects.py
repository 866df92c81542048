"""The dialects of this package: one line each, and they are runtimes under their names."""

from typing import Any

from subagents.runtimes.acp.acp import AcpDialect
from subagents.runtimes.claude.claude_code import ClaudeDialect
from subagents.runtimes.codex.codex import CodexDialect
from subagents.runtimes.conversation.dialect import Dialect
from subagents.runtimes.llm.llm_runtime import LlmDialect


def dialects() -> tuple[Dialect[Any], ...]:
    """All there are; ``wiring`` makes a ``ConversationRuntime`` of each."""
    return (AcpDialect(), ClaudeDialect(), CodexDialect(), LlmDialect())
