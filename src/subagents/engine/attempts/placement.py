"""Where attempts run, and where the files of runs are: here, for a daemon by itself.

The place of an attempt is in its journal before anything is started there, and never changes.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from subagents.domain.rules import provider_limits
from subagents.domain.run.run import Run
from subagents.ports import Launch, Runtime, StartedInfo, Workplace

RuntimeOf: TypeAlias = Callable[[Run, int | None], Runtime | None]
"""The runtime of one of a run's attempts, None = the newest; None = there is none."""
WorkplaceOf: TypeAlias = Callable[[Run], Workplace]


class Placement:
    """All attempts run here; an extension brings one that knows other places, see ``Sharing``.

    Args:
        runtimes: The runtimes of this node, by their names.
        workplace: The files of this node.
        node: The name of this node; None = attempts record none.
    """

    def __init__(
        self, runtimes: Mapping[str, Runtime], workplace: Workplace, node: str | None
    ) -> None:
        self._runtimes, self._workplace, self._node = runtimes, workplace, node

    def at_grant(self, _run: Run) -> str | None:
        """The place of the attempt that is granted a slot now; None = it is not decided yet."""
        return self._node

    def runtime_of(self, run: Run, number: int | None = None) -> Runtime | None:
        """The runtime of one of the run's attempts, at its place; None = there is none.

        Args:
            run: The run.
            number: The attempt; None = the newest, if there is any.
        """
        agent = run.resolved if number is None else provider_limits.agent_of(run, number)
        return self._runtimes.get(agent.runtime)

    def workplace_of(self, _run: Run) -> Workplace:
        """Where the files of a run are: at its newest attempt's place."""
        return self._workplace

    async def place(self, run: Run) -> Run:
        """The run with its newest attempt's place on record; waits as long as none is free.

        Raises:
            RuntimeUnavailable: It is to end before it had one, or the place that it had is over.
        """
        return run

    def start(self, _run: Run, runtime: Runtime, launch: Launch) -> Awaitable[StartedInfo]:
        """Start its newest attempt at its place.

        Raises:
            RuntimeUnavailable, UsageError: As ``Runtime.start``.
        """
        return runtime.start(launch)
