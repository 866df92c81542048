"""What runs used, and what is left of their budgets. Unknown is null, never 0."""

from subagents.api.wire.wire_struct import WireStruct


class Usage(WireStruct, frozen=True, kw_only=True):
    """What the attempts of one run used."""

    tokens: int | None = None
    """Uncached tokens, read and written: without what was read from the provider's cache."""
    tokens_in: int | None = None
    """Tokens read, cached ones included."""
    tokens_out: int | None = None
    """Tokens written."""
    tokens_cache_read: int | None = None
    """The part of the tokens read that came from the provider's cache; null = not reported."""
    tokens_cache_write: int | None = None
    """The part of the tokens read that was put into the cache; that counts as uncached."""
    cost_usd: float | None = None
    """US dollars, as the runtime reported them; a lower bound while `costUnknownRuns` is not 0."""
    cost_unknown_runs: int = 0
    """Runs in this sum with an ended attempt whose cost was not reported."""


class TreeUsage(Usage, frozen=True, kw_only=True):
    """What a run and everything below it used."""

    runs: int = 1
    """The run itself and every run below it."""


class RequestHold(WireStruct, frozen=True, kw_only=True):
    """Whether a worker's next request to its model may start."""

    granted: bool = False
    """It may; what it may use is kept free in every budget above it until its usage is reported."""
    output_tokens: int | None = None
    """The limit for its answer, where it had to be lowered."""
    limited: bool = False
    """A cap applies to this run; false = nothing had to be kept free."""
    again: bool = False
    """Not now: requests of other runs hold what is left. Ask again."""
    reason: str | None = None
    """Why it was not granted."""


class BudgetLeft(WireStruct, frozen=True, kw_only=True):
    """What is not used yet; null = no limit, or its use is not reported."""

    tokens: int | None = None
    """Uncached tokens, read and written together."""
    total_tokens: int | None = None
    """Tokens with those that came from a cache."""
    cost_usd: float | None = None
    """US dollars."""
    runs: int | None = None
    """Runs that may still be started below."""
    seconds: float | None = None
    """Seconds of its time at work."""


class BudgetState(WireStruct, frozen=True, kw_only=True):
    """How a run stands to its own budget, in short."""

    percent: int | None = None
    """How much of the most used dimension is spent; null = no use is known."""
    text: str = ""
    """All of it in words: `80k of 100k tokens, ? of $1.00`; ? = not reported."""
    exhausted: bool = False
    """Nothing of the run may start any more."""


class BudgetUse(BudgetState, frozen=True, kw_only=True):
    """A run's own budget; a limit that it does not name is null."""

    max_tokens: int | None = None
    """Uncached tokens read and written by the run and everything below it."""
    max_total_tokens: int | None = None
    """The same with those that came from a cache."""
    max_cost_usd: float | None = None
    """US dollars that the run and everything below it may cost."""
    max_runs: int | None = None
    """The run itself and every run below it."""
    max_seconds: float | None = None
    """Seconds since the run began."""
    spent: TreeUsage = TreeUsage()
    """What the run and everything below it used."""
    left: BudgetLeft = BudgetLeft()
    """What is left of each limit."""
    overshoot: str | None = None
    """How far the run's own worker can overspend tokens and cost: `none`, `one_request` (the one
    whose answer reaches the limit, and one sent before the stop), `one_turn` (all its requests) or
    `unbounded`; null = neither is limited."""
