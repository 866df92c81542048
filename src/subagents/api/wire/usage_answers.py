"""What runs used, and what is left of their budgets. Unknown is null, never 0."""

from subagents.api.wire.wire_struct import WireStruct


class Usage(WireStruct, frozen=True, kw_only=True):
    """What the attempts of one run used."""

    tokens_in: int | None = None
    """Tokens read, cached ones included."""
    tokens_out: int | None = None
    """Tokens written."""
    cost_usd: float | None = None
    """In US dollars, as the runtime reported it."""


class TreeUsage(Usage, frozen=True, kw_only=True):
    """What a run and everything below it used."""

    runs: int = 1
    """The run itself and every run below it."""


class BudgetLeft(WireStruct, frozen=True, kw_only=True):
    """What is not used yet; null = no limit, or nobody reports what is used."""

    tokens: int | None = None
    """Read and written together."""
    cost_usd: float | None = None
    """In US dollars."""
    runs: int | None = None
    """So many runs may still be started below."""
    seconds: float | None = None
    """Of its time at work."""


class BudgetState(WireStruct, frozen=True, kw_only=True):
    """How a run stands to its own budget, in short."""

    percent: int | None = None
    """Of the dimension that is used most; null = nothing is known to be used."""
    text: str = ""
    """In words: `80k of 100k tokens, ? of $1.00`; ? = nobody reported it."""
    exhausted: bool = False
    """Nothing of the run may start any more."""


class BudgetUse(BudgetState, frozen=True, kw_only=True):
    """A run's own budget; a limit that it does not name is null."""

    max_tokens: int | None = None
    """Read and written, by the run and everything below it."""
    max_cost_usd: float | None = None
    """In US dollars, by the run and everything below it."""
    max_runs: int | None = None
    """The run itself and every run below it."""
    max_seconds: float | None = None
    """Since the run began."""
    spent: TreeUsage = TreeUsage()
    """By the run and everything below it."""
    left: BudgetLeft = BudgetLeft()
    """Of each limit."""
