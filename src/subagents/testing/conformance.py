"""Behaviour suites: what every implementation of a port must do, proven by doing it.

A suite is a list of functions, not a test class: each takes a ``Place`` where implementations can
be made and fails with ``Broken``. So a suite runs under any test runner, against SQLite here and
against another database in the package that adds it (6-house-style guideline 31).
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from subagents.ports import Store

E = TypeVar("E", bound=BaseException)


class Broken(AssertionError):
    """The implementation does not do what its port promises; the text says which promise."""


class StorePlace(Protocol):
    """One database, however it is reached."""

    def store(self) -> Store:
        """Return another store object on this database, not opened yet."""
        ...

    def lose_lock(self) -> None:
        """Make the holder's exclusive lock invisible to others, as a network disk would.

        The epoch is then all that is left to tell the old holder from the new one.
        """
        ...


class Behaviour(NamedTuple):
    """One promise of a port and the function that tries it."""

    requirement: str
    check: Callable[[StorePlace], None]

    @property
    def name(self) -> str:
        return self.check.__name__


class Suite:
    """Collects the behaviours of one port."""

    def __init__(self) -> None:
        self.behaviours: list[Behaviour] = []

    def behaviour(
        self, requirement: str
    ) -> Callable[[Callable[[StorePlace], None]], Callable[[StorePlace], None]]:
        """Add a function to the suite under the requirement that it proves."""

        def add(check: Callable[[StorePlace], None]) -> Callable[[StorePlace], None]:
            self.behaviours.append(Behaviour(requirement, check))
            return check

        return add


def expect(promise: str, *, found: object, wanted: object) -> None:
    """Raise ``Broken`` unless what was found is what was promised."""
    if found != wanted:
        raise Broken(f"{promise}\n  promised: {wanted!r}\n  found:    {found!r}")


def expect_error(promise: str, kind: type[E], work: Callable[[], object]) -> E:
    """Return the error that ``work`` must raise; raise ``Broken`` when it does not."""
    try:
        work()
    except kind as error:
        return error
    raise Broken(f"{promise}: {kind.__name__} was not raised")
