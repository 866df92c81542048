"""What was used of models: by one attempt, and by a run with everything below it."""

from collections.abc import Callable
from typing import Any

from subagents.domain.run.values import Value


class Usage(Value, frozen=True):
    """What was used of a model; None = unknown, never 0."""

    # A 0 would say that work was free, and a budget would let through what was never counted.
    tokens_in: int | None = None
    """All that the model read, from a cache or not."""
    tokens_out: int | None = None
    tokens_cache_read: int | None = None
    """The part of ``tokens_in`` that came from the provider's cache; None = all is uncached."""
    tokens_cache_write: int | None = None
    """The part of ``tokens_in`` that was put into the cache; that counts as uncached."""
    cost_usd: float | None = None

    @property
    def total_tokens(self) -> int | None:
        """Input and output together; None when neither was reported."""
        if self.tokens_in is None and self.tokens_out is None:
            return None
        return (self.tokens_in or 0) + (self.tokens_out or 0)

    @property
    def tokens(self) -> int | None:
        """Input and output without what was read from a cache."""
        total = self.total_tokens
        return None if total is None else max(total - (self.tokens_cache_read or 0), 0)


class Spent(Usage, frozen=True):
    """What a run and everything below it used so far."""

    runs: int = 1
    """The run itself and every run below it, also those that are over."""
    cost_unknown_runs: int = 0
    """How many of ``runs`` have an ended attempt of unknown cost, which ``cost_usd`` lacks."""


class Amounts(Value, frozen=True):
    """What a budget limits of what is used; what is unknown counts as 0."""

    tokens: int = 0
    total_tokens: int = 0
    cost_usd: float = 0


class Committed(Amounts, frozen=True):
    """The most a run and everything below it may still come to, as far as it was promised.

    Never less than ``Spent``: what was used, and what active runs below have reserved for them.
    """

    runs: int = 1


def amounts(by: Callable[..., Any], *found: Usage | Amounts) -> dict[str, Any]:
    """What ``by`` makes of each amount of all of these, by its name."""
    names = Amounts.__struct_fields__
    return {name: by(*(getattr(each, name) or 0 for each in found)) for name in names}


def merged(one: Usage, other: Usage, by: Callable[[Any, Any], Any]) -> Usage:
    """Each amount of both by ``by``; one that only one of them knows is as that one has it."""
    found = {}
    for name in Usage.__struct_fields__:
        a, b = getattr(one, name), getattr(other, name)
        found[name] = b if a is None else a if b is None else by(a, b)
    return Usage(**found)
