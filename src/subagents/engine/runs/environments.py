"""What callers bring for the workers of their runs: kept before a run is stored, read for the next.

A run that repeats another has all that was brought for it; one that continues its session has what
was given by name, unless it is given other values.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.run import Run
from subagents.domain.run.spec import Resolved
from subagents.engine.runs.spawn_call import Draft
from subagents.errors import Conflict, StoreUnavailable
from subagents.ports import EnvironmentLog, OffLoop

PassesProvider = Callable[[Resolved, str], bool]
PLAIN_COMMAND: Final = "command"
"""The runtime whose workers get a shell's variables: what a person would have typed there."""


class Environments:
    """See the module.

    Args:
        off_loop: Runs all that blocks.
        log: Where they are kept.
        passes: Whether a run's worker is given a provider's variable.
    """

    def __init__(self, off_loop: OffLoop, log: EnvironmentLog, passes: PassesProvider) -> None:
        self._off_loop = off_loop
        self._log = log
        self._passes = passes

    async def of(self, run: Run) -> CallerEnvironment | None:
        """What the caller brought for this run.

        Raises:
            Conflict: It cannot be read any more.
        """
        if run.resolved.caller_env is None:
            return None
        try:
            return await self._off_loop(partial(self._log.read, run.id))
        except OSError as error:
            raise Conflict(
                f"the variables that run {run.id} was given cannot be read: {error}",
                hint="spawn a new run, with its task and its variables",
            ) from error

    async def load(self, runs: Iterable[Run]) -> None:
        """Read what was brought for them, so that nothing waits for it later on the event loop.

        Raises:
            StoreUnavailable: It cannot be read now.
        """
        ids = [run.id for run in runs if run.resolved.caller_env is not None]
        if not ids:
            return

        def read() -> None:
            for run_id in ids:
                with contextlib.suppress(OSError):  # raised again when it is needed
                    self._log.read(run_id)

        await self._off_loop(read)

    async def keep(self, drafts: list[Draft]) -> list[Draft]:
        """The drafts with the names of what their caller brings; the values are durable.

        Args:
            drafts: Of runs that an operator asks for.

        Raises:
            Conflict: What was given to the run before cannot be read any more.
            StoreUnavailable: They cannot be kept.
        """
        asking = [draft for draft in drafts if draft.asked.environment or draft.asked.previous]
        if not asking:
            return drafts
        # A batch of a thousand runs mostly brings one environment: it is written once.
        groups: list[tuple[CallerEnvironment, list[Draft]]] = []
        for draft in asking:
            theirs = await self._theirs(draft, draft.asked.environment or CallerEnvironment())
            same = next((meant for each, meant in groups if each == theirs), None)
            if same is None:
                groups.append((theirs, [draft]))
            else:
                same.append(draft)
        found = {draft.spawned.run_id: draft for draft in drafts}
        for theirs, meant in groups:
            if theirs.is_empty:
                continue
            ids = [draft.spawned.run_id for draft in meant]
            try:
                await self._off_loop(partial(self._log.keep, ids, theirs))
            except OSError as error:
                for run_id in ids:
                    await self._off_loop(partial(self._log.forget, run_id))
                await self.drop(list(found.values()))
                raise StoreUnavailable(
                    f"the variables for its worker cannot be kept: {error}; nothing was stored"
                ) from error
            found |= {
                draft.spawned.run_id: draft.with_resolved(caller_env=theirs.names)
                for draft in meant
            }
        return list(found.values())

    async def _theirs(self, draft: Draft, brought: CallerEnvironment) -> CallerEnvironment:
        previous = draft.asked.previous
        before = None if previous is None else await self.of(previous)
        given = brought.given if before is None else {**before.given, **brought.given}
        resolved = draft.spawned.resolved
        is_plain = resolved.runtime == PLAIN_COMMAND
        provider = brought.provider or (before.provider if before is not None else {})
        return CallerEnvironment(
            shell=brought.shell if is_plain else {},
            given=given,
            provider={n: v for n, v in provider.items() if self._passes(resolved, n)},
            process=brought.process or (None if before is None else before.process),
        )

    async def drop(self, drafts: Sequence[Draft]) -> None:
        """Forget what was kept for runs that are not stored after all."""
        for draft in drafts:
            if draft.spawned.resolved.caller_env is not None:
                await self._off_loop(partial(self._log.forget, draft.spawned.run_id))
