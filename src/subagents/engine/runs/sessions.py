"""Messages to a session: one reaches the run at work in it, or starts the run that continues it."""

from functools import partial
from typing import Final, NamedTuple

from subagents.domain.rules.budgets import budgets, reservations
from subagents.domain.rules.idempotency import differing, digest_of
from subagents.domain.run import spending
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.usage import Amounts
from subagents.domain.run.values import RunId, SessionKey, replace
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.runs.control import Control
from subagents.engine.runs.queries import Queries
from subagents.engine.runs.session_chain import SessionTaken, newest_of
from subagents.engine.runs.spawn import Spawner
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.errors import Conflict, IdempotencyConflict
from subagents.ports import RememberedKey

TRIES_MAX: Final = 5
"""A session whose newest run ends, or begins, while a message is on its way is read again."""
STEER: Final = "steer"
FOLLOWUP: Final = "followup"
EITHER: Final = "either"
MODES: Final = (STEER, FOLLOWUP)


class Sent(NamedTuple):
    """What became of a message."""

    status: str
    """``steered``, ``queued`` or ``accepted``."""
    run: Run
    """The run that has it: the one at work, or the one that it started."""
    warnings: tuple[str, ...] = ()
    is_new: bool = False
    """The message started this run."""
    repeated: bool = False
    """It was known by its key: this is what became of it then."""


class Sessions:
    """See the module."""

    def __init__(
        self, kernel: Kernel, queries: Queries, control: Control, spawner: Spawner
    ) -> None:
        self._ledger = kernel.ledger
        self._queries = queries
        self._control = control
        self._spawner = spawner

    async def newest(self, run_id: RunId) -> Run:
        """The newest run of the session that this one belongs to; mostly itself.

        Raises:
            NotFound: No such run.
        """
        return await newest_of(self._queries, await self._queries.run(run_id))

    async def send(
        self,
        run_id: RunId,
        message: str,
        context: SpawnContext,
        *,
        mode: str = EITHER,
        key: str | None = None,
        added: Amounts | None = None,
    ) -> Sent:
        """A message for the session of a run, whoever works in it now.

        Args:
            run_id: Any run of the session.
            message: At most 4,000 characters for a run at work, 256 KiB to start one.
            context: Who sends it, and is told of the end of a run that it starts, with the
                configuration where the session works. In a cluster a session stays with its tree,
                so a sender of another partition leaves that to whoever asked for the tree. What
                its ceiling means for a run at work: see ``Control.steer``.
            mode: ``steer`` = only to a run at work; ``followup`` = not into its present turn.
            key: The same one twice is one message, for 24 hours.
            added: Raises the budget of a run at work, or what was left of that of one that ended.

        Raises:
            IdempotencyConflict: The key stands for another message; nothing was sent.
            Conflict: No run is at work there and it cannot be continued; or, with ``steer``, no
                run is at work there.
            Forbidden: A guardrail; nothing was stored.
            RateLimited: Sooner than 2 s after the last message to a run at work.
        """
        by = context.session
        owner = self._ledger.inbox_of(by)
        for _ in range(TRIES_MAX):
            run = await self.newest(run_id)
            if key is not None and (known := self._spawner.keys.known(owner, key)) is not None:
                return await self._repeated(known, run, message)
            try:
                if not run.is_settled:
                    return await self._tell(run, message, context, mode=mode, key=key, added=added)
                if mode == STEER:
                    raise Conflict(
                        f"run {run.id} is {run.phase}: there is no attempt to steer",
                        hint=f"continue its session: subagents continue {run.id} MESSAGE "
                        "(mode followup)",
                    )
                budget = None
                if added is not None:
                    reservations.check_raise(run, (), added, now_ms=0)
                    budget = budgets.raised(run.spec.budget, added, spending.spent(run))
                spec = RunSpec(task=message, continues=run.id, idempotency_key=key, budget=budget)
                # Its directory is the session's own.
                starting = replace(context, session=await self._requester(run, by), cwd="")
                started = await self._spawner.spawn(spec, starting)
                return Sent("accepted", started.run, started.warnings, is_new=True)
            except SessionTaken:
                await self._ledger.committed()  # until then the newest run is the one before
        raise SessionTaken(
            f"the session of run {run_id} changes too quickly", hint="send it again in a moment"
        )

    async def _requester(self, run: Run, by: SessionKey) -> SessionKey:
        """The session that asks for the run that goes on with this one: mostly the sender.

        Raises:
            Elsewhere: Another node decides about the session.
        """
        partitions = self._ledger.partitions
        partition = await partitions.partition_of_run(run.id)
        if partition is None:
            return by
        partitions.require(partition)
        if await partitions.partition_of_session(by) == partition:
            return by
        while run.lineage.requester_run is not None:
            run = await self._queries.run(run.lineage.requester_run)
        return run.requester

    async def _tell(
        self,
        run: Run,
        message: str,
        context: SpawnContext,
        *,
        mode: str,
        key: str | None,
        added: Amounts | None,
    ) -> Sent:
        if run.phase is Phase.VERIFYING:
            raise Conflict(
                f"run {run.id} is verifying what its worker did: it takes no message now",
                hint="send it again in a moment",
            )
        then = None
        if key is not None:
            digest, owner = _digest(run.id, message), self._ledger.inbox_of(context.session)
            then = partial(self._spawner.keys.remember, owner, key, run.id, digest=digest)
        try:
            status = await self._control.steer(
                run.id,
                message,
                by=context.session,
                ceiling=context.ceiling,
                next_turn=mode == FOLLOWUP,
                added=added,
                then=then,
            )
        except Conflict as error:
            if (await self._queries.run(run.id)).is_settled:
                raise SessionTaken(error.message) from error
            raise
        return Sent(status, await self._queries.run(run.id))

    async def _repeated(self, known: RememberedKey, run: Run, message: str) -> Sent:
        """What became of the message that was sent under this key.

        Raises:
            IdempotencyConflict: It was another message, or went to another session.
        """
        await self._ledger.committed()
        made = await self._queries.run(known.run_id)
        names = differing(known.digest, _digest(run.id, message))
        # Which run of the session it named depends on when it was sent.
        names = tuple(name for name in names if name not in {"continues", "budget"})
        differs = ["message" if name == "task" else name for name in names]
        if known.digest is not None and made.root != run.root:
            differs.append("session")
        if differs:
            raise IdempotencyConflict.of(known.key, run_id=made.id, differs=differs)
        return Sent("accepted", made, repeated=True)


def _digest(run_id: RunId, message: str) -> str:
    """The same digest as that of the run which the message starts when none is at work."""
    return digest_of(RunSpec(task=message, continues=run_id))
