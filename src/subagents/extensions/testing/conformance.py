"""Behaviour suites: what every implementation of a port must do, proven by doing it.

A suite is a list of functions, not a test class: each takes a ``Place`` where implementations can
be made and fails with ``Broken``. So a suite runs under any test runner, against SQLite here and
against another database in the package that adds it (6-house-style guideline 31).
"""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from subagents.domain.run.run import Run
from subagents.domain.run.values import SessionKey
from subagents.ports import Courier, Store

E = TypeVar("E", bound=BaseException)
P = TypeVar("P")


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


class Received(NamedTuple):
    """One announcement as it reached a receiver."""

    message_id: str
    text: str


class CourierPlace(Protocol):
    """One receiver, willing at first, and the courier that reaches it."""

    target: SessionKey
    """A session that the courier serves."""
    requester: Run | None
    """The run that speaks under it; None = a session outside."""
    stranger: tuple[SessionKey, Run | None]
    """One that it does not serve."""
    dedupes: bool
    """The receiver drops what it had before; else it gets the message id and may be told twice."""

    async def courier(self) -> Courier:
        """Return a courier for this receiver, ready to carry."""
        ...

    def received(self) -> Sequence[Received]:
        """What was handed over so far, oldest first."""
        ...

    def refuse(self) -> None:
        """From now on the receiver answers and takes nothing."""
        ...

    def hang(self) -> None:
        """From now on the receiver takes the line and never answers."""
        ...

    def mend(self) -> None:
        """It is willing again."""
        ...

    def has_begun(self) -> bool:
        """Whether a try that hangs has reached the receiver."""
        ...

    def left_behind(self) -> int:
        """How many processes, connections or threads of tries that are over are still there."""
        ...


class Behaviour(NamedTuple, Generic[P]):
    """One promise of a port and the function that tries it."""

    requirement: str
    check: Callable[[P], None]

    @property
    def name(self) -> str:
        return self.check.__name__


class Suite(Generic[P]):
    """Collects the behaviours of one port."""

    def __init__(self) -> None:
        self.behaviours: list[Behaviour[P]] = []

    def behaviour(self, requirement: str) -> Callable[[Callable[[P], None]], Callable[[P], None]]:
        """Add a function to the suite under the requirement that it proves."""

        def add(check: Callable[[P], None]) -> Callable[[P], None]:
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
