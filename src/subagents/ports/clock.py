"""Time, names and threads, as the engine asks for them."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from subagents.domain.run.values import RunId

T = TypeVar("T")


class Clock(Protocol):
    """Wall-clock time and waiting; the simulator has its own."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, for what is kept, shown and compared with stored times."""

    async def sleep(self, seconds: float) -> None: ...


class EngineClock(Clock, Protocol):
    """A clock that goes on evenly while the machine's own is set.

    ``now_ms`` goes on evenly when the machine's clock is set or the machine was suspended, until
    the engine follows it with ``take_step_ms`` and moves its stored deadlines along.
    """

    def steady_ms(self) -> int:
        """Milliseconds since some moment, without steps: for what lives in memory only."""

    def elapsed_ms(self) -> int:
        """As ``steady_ms``, while the machine is suspended, too: for what others count as well."""

    def take_step_ms(self) -> int:
        """Follow the machine's clock; returns by how far ``now_ms`` was moved by that, or 0."""


class Ids(Protocol):
    def run_id(self) -> RunId: ...

    def session_uuid(self) -> str: ...

    def token_secret(self) -> str:
        """43 url-safe characters that nobody can guess."""


class OffLoop(Protocol):
    """Runs blocking work away from the event loop; the simulator runs it in line."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class OwnLoop(Protocol):
    """Runs what must go on while the event loop is busy, to its end, on another loop.

    The simulator runs it in line. What the work raises is raised.
    """

    # What is renewed in time (a store's right, a place's attempts) must not be lost because a large
    # answer keeps the event loop busy for seconds.
    def __call__(self, work: Callable[[], Coroutine[Any, Any, None]], /) -> Awaitable[None]: ...
