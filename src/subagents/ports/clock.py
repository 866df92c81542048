"""Time, names and threads, as the engine asks for them."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from subagents.domain.run.values import RunId

T = TypeVar("T")


class Clock(Protocol):
    """Wall-clock time and waiting; the simulator has its own."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch; may jump either way."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Ids(Protocol):
    def run_id(self) -> RunId: ...

    def session_uuid(self) -> str: ...

    def token_secret(self) -> str:
        """43 url-safe characters that nobody can guess."""
        ...


class OffLoop(Protocol):
    """Runs blocking work away from the event loop; the simulator runs it in line."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...
