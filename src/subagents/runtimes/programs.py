"""The dialects of this package: one line each, and they are runtimes under their names."""

from typing import Any

from subagents.runtimes.dialogue import Dialect


def dialects() -> tuple[Dialect[Any], ...]:
    """All there are; ``wiring`` makes a ``ConversationRuntime`` of each."""
    return ()
