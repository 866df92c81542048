"""Several runs that have commands of their own, and one line where a screen does not hold them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from subagents.client.client import Client


class GroupLine(NamedTuple):
    """How a group stands."""

    text: str
    tenths: int
    """How many of its runs have ended."""
    asking: Sequence[str]
    """The ids of those with questions."""


class RunGroup(NamedTuple):
    """Runs that are waited for together."""

    look: Callable[[Client], GroupLine]
    """Raises ``SubagentsError``."""
    commands: str
    """``plan {} r-…``: ``wait``, ``show`` and ``cancel`` of all of them."""
