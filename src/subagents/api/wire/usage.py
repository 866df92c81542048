"""What runs used, and what is left of their budgets, as documents of the wire.

Source: 2-lifecycle §9; 4-observability §3 (``budget``).
"""

from typing import Final

import msgspec

from subagents.domain.rules import budgets
from subagents.domain.run import spending
from subagents.domain.run.run import Run, Spent, Usage
from subagents.domain.run.values import Value

Document = dict[str, object]

SHORT: Final = ("percent", "text", "exhausted")


def own(run: Run) -> Document | None:
    """What its own attempts used; null when nobody reported anything."""
    return usage(spending.total_usage(run))


def usage(value: Usage | None) -> Document | None:
    """Null when nobody reported anything."""
    if value is None or value == Usage():
        return None
    return {
        "tokensIn": value.tokens_in,
        "tokensOut": value.tokens_out,
        "costUsd": value.cost_usd,
    }


def subtree(run: Run) -> Document | None:
    """What the run and everything below it used; null for a run without children."""
    return _whole(spending.spent(run)) if run.children else None


def budget(run: Run, now_ms: int) -> Document | None:
    """The run's own budget; null = it has none. Limits that it does not name are null."""
    view = budgets.view(run, now_ms)
    if view is None:
        return None
    return {
        **_whole(view.budget),
        "spent": _whole(view.spent),
        "left": _whole(view.left),
        "percent": view.percent,
        "text": view.text,
        "exhausted": view.exhausted,
    }


def short_budget(run: Run, now_ms: int) -> Document | None:
    """For a tree, where many runs are shown at once."""
    whole = budget(run, now_ms)
    return None if whole is None else {name: whole[name] for name in SHORT}


def _whole(value: Value | Spent) -> Document:
    """Every field, also those that are unknown."""
    return {
        field.encode_name: getattr(value, field.name) for field in msgspec.structs.fields(value)
    }
