"""The statements of ``statements.sql``, by name."""

from functools import cache

from subagents.store.named_statements import named_statements


@cache
def statements() -> dict[str, str]:
    """Every named statement, without its comments."""
    return named_statements(__package__)
