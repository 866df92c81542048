"""How many functions of Python are called: the measure of work that no busy machine changes."""

import cProfile
import gc
import pstats
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Counted:
    """What was called so far."""

    def __init__(self) -> None:
        self.calls = 0

    def note(self, _frame: FrameType, event: str, _arg: object) -> None:
        """See ``sys.setprofile``; generators count once for each value."""
        self.calls += event == "call"


@contextmanager
def counting_calls() -> Iterator[Counted]:
    """Count the calls of this thread within the block."""
    before, counted = sys.getprofile(), Counted()
    sys.setprofile(counted.note)
    try:
        yield counted
    finally:
        sys.setprofile(before)


def calls_of(work: Callable[[], object]) -> int:
    """How many functions of Python, and builtins, doing it again calls on this thread."""
    work()  # what is found once: types, tables, files
    profile = cProfile.Profile()
    gc.disable()  # a collection calls whoever listens to it, and comes when it comes
    try:
        profile.runcall(work)
    finally:
        gc.enable()
    total: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]  # not in typeshed
    return total
