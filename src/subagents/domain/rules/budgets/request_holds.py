"""May this request to a model start? It must fit into every cap above it, whatever it uses.

A worker of our own loop asks before each request, with the most that its input can be and the most
that it wants to be answered. What the request may use is then held until its answer is reported:
what was spent and what is held together never exceed a cap. Where the rest of a cap is smaller, the
answer's limit is lowered; where not even the input fits, the request does not start.

See docs/decisions/0036.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from subagents.domain.rules.budgets import budgets
from subagents.domain.rules.budgets.budgets import Dimension
from subagents.domain.run import spending
from subagents.domain.run.run import Run
from subagents.domain.run.usage import Amounts, Usage, amounts
from subagents.domain.run.values import Value
from subagents.text import compact, money


class Need(Value, frozen=True):
    """The most that one request may use."""

    input_tokens: int
    output_tokens: int
    """The longest answer that the worker wants."""
    least_output_tokens: int = 1
    """A shorter one is of no use to it."""
    input_usd: float | None = None
    """What all the input costs; None = there is no known price, so cost cannot be bounded."""
    output_token_usd: float | None = None

    def cost_usd(self, output_tokens: int) -> float:
        """What it costs at most with so long an answer; 0 where that is not known."""
        if self.input_usd is None or self.output_token_usd is None:
            return 0.0
        return self.input_usd + output_tokens * self.output_token_usd


class Counted(Value, frozen=True):
    """What the asking attempt used so far, as its worker counts it."""

    usage: Usage = Usage()
    lost_tokens: int = 0
    """The most that requests which were never answered may have used."""
    lost_cost_usd: float = 0

    @property
    def lost(self) -> Amounts:
        """Both; nobody knows what of it came from a cache."""
        tokens = self.lost_tokens
        return Amounts(tokens=tokens, total_tokens=tokens, cost_usd=self.lost_cost_usd)


class Cap(NamedTuple):
    """One limit that the request must fit into."""

    key: str
    """The run that holds it, or the name of a cap over several runs."""
    whose: str
    """``the budget of run "lead" (r-…)``."""
    dimension: Dimension
    limit: float
    gone: float
    """Spent, held and promised, without what the asking attempt held for its last request."""
    spent: float
    """The part of ``gone`` that nobody gives back: what was used, and lost by the one that asks."""

    @property
    def text(self) -> str:
        """``8.1k of 10k tokens``."""
        return self.dimension.text_of(self.spent, self.limit)


class Granted(NamedTuple):
    """The request may start, with this limit for its answer."""

    output_tokens: int
    tokens: int
    cost_usd: float


class Short(NamedTuple):
    """It does not fit."""

    cap: Cap
    may_fit_later: bool
    """When requests of others that are under way have used less than they hold."""
    needs: str
    """``the next request may need 9.2k``."""

    @property
    def used(self) -> str:
        return f"{self.cap.text}, and {self.needs}"


def caps_above(run: Run, above: Sequence[Run], counted: Counted) -> list[Cap]:
    """The nearest run with a limit, of tokens and of cost: no other is touched by its use.

    Args:
        run: The run that asks.
        above: The run that spawned it, then the run that spawned that one, and so on to the top.
        counted: What its live attempt used, which its stream may tell only later.
    """
    found = []
    for each in budgets.USED:
        for holder in (run, *above):
            if (limit := each.limit(holder.spec.budget)) is not None:
                found.append(_cap(holder, run, limit, counted, each))
                break
    return found


def decide(caps: Iterable[Cap], need: Need) -> Granted | Short:
    """Whether the request may start now, under every limit above it."""
    output, least = need.output_tokens, min(need.least_output_tokens, need.output_tokens)
    short: tuple[int, Cap] | None = None
    for cap in caps:
        room = _answer_room(cap, need, cap.gone)
        if room is None:
            continue
        if room < least and (short is None or room < short[0]):
            short = (room, cap)
        output = min(output, room)
    if short is None:
        tokens = need.input_tokens + output
        return Granted(output, tokens, need.cost_usd(output))
    _, cap = short
    later = _answer_room(cap, need, cap.spent)
    is_cost = cap.dimension is budgets.COST
    wanted = money(need.cost_usd(least)) if is_cost else compact(need.input_tokens + least)
    may_fit_later = cap.gone > cap.spent and later is not None and later >= least
    return Short(cap, may_fit_later, f"the next request may need {wanted}")


def _answer_room(cap: Cap, need: Need, gone: float) -> int | None:
    """Tokens for the answer, below 0 when the input alone crosses the cap; None = it says nothing.

    What has no price cannot be kept below a cost.
    """
    rest = cap.limit - gone
    if cap.dimension is not budgets.COST:
        return int(rest) - need.input_tokens
    if need.input_usd is None or need.output_token_usd is None:
        return None
    rest -= need.input_usd
    if rest < -budgets.DUST:
        return -1
    if rest + budgets.DUST >= need.output_tokens * need.output_token_usd:
        return need.output_tokens
    return int((rest + budgets.DUST) / need.output_token_usd)


def ahead(run: Run, counted: Counted) -> Amounts:
    """What the worker counted that its stream did not report yet."""
    known = run.attempts[-1].usage if run.attempts else None
    return Amounts(**amounts(lambda a, b: max(a - b, 0), counted.usage, known or Usage()))


def _cap(holder: Run, run: Run, limit: float, counted: Counted, dimension: Dimension) -> Cap:
    of = dimension.of
    # The worker's own count is ahead of its stream, which is read up to a second later.
    more, lost = of(ahead(run, counted)), of(counted.lost)
    # The request replaces what the attempt holds now: that is taken out, its own need put in.
    gone = of(spending.promised(holder)) - of(spending.held(run)) + more + lost
    spent = (of(spending.spent(holder)) or 0) + more + lost
    reserve = holder.budget.reserve
    if holder is run and reserve is not None:
        # What runs below still use does not count against the part that is kept for its own report.
        spent = gone = (of(spending.total_usage(run)) or 0) + more + lost + of(reserve)
    elif holder is not run:
        # A tenth is the holder's own.
        limit -= dimension.kept(limit)
    whose = "its budget" if holder is run else f'the budget of run "{holder.resolved.label}"'
    return Cap(holder.id, whose, dimension, limit, gone, spent)
