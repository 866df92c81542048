"""All dialects of this package."""

from typing import Any

from subagents.extensions.acp.acp import AcpDialect
from subagents.extensions.claude.claude_code import ClaudeDialect
from subagents.extensions.codex.codex import CodexDialect
from subagents.extensions.conversation.dialect import Dialect
from subagents.extensions.llm.llm_runtime import LlmDialect


def dialects() -> tuple[Dialect[Any], ...]:
    """One of each."""
    return (AcpDialect(), ClaudeDialect(), CodexDialect(), LlmDialect())
