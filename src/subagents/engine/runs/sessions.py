"""Sessions: a message reaches the run at work in them, or starts the run that goes on with them.

The runs of a session form a chain, each with ``continues``; its first one knows the newest
(``continued_by``), so an old id, label or key finds that in two looks, however long it became.

Source: 2-lifecycle §2, §10; 3-tools ``sessions_send``; docs/decisions/0024.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, Protocol

from subagents.config.settings import Settings
from subagents.domain.rules.continuation import check_resumable
from subagents.domain.run.run import Continues, Phase, Run
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import RunId, SessionKey
from subagents.engine.kernel.addresses import spoken_under
from subagents.engine.kernel.ledger import Ledger
from subagents.engine.runs.control import Control
from subagents.engine.runs.dependencies import Draft
from subagents.engine.runs.queries import Queries
from subagents.errors import Conflict, Forbidden, NotFound, UsageError
from subagents.ports import Runtime

TRIES_MAX: Final = 5
"""A session whose newest run ends, or begins, while a message is on its way is looked at again."""
DEPTH_MAX: Final = 64
"""More than ``max_spawn_depth`` can be."""

STEER: Final = "steer"
FOLLOWUP: Final = "followup"
EITHER: Final = "either"
MODES: Final = (STEER, FOLLOWUP)

Previous = Sequence[Run | None]
"""The run whose session each spec goes on with."""


class SessionTaken(Conflict):
    """The session has a run at work, or was gone on with in this moment."""


class Sent(NamedTuple):
    """What became of a message."""

    status: str
    """``steered``, ``queued`` or ``accepted``."""
    run: Run
    """Which run has it: the one at work, or the one that it started."""
    warnings: tuple[str, ...] = ()
    is_new: bool = False
    """The message started this run."""
    repeated: bool = False
    """It was known by its key: this is what became of it then."""


class Stored(Protocol):
    """The receipt of a spawn."""

    @property
    def run(self) -> Run: ...

    @property
    def warnings(self) -> tuple[str, ...]: ...


class Spawn(Protocol):
    """See ``Engine.spawn``."""

    def __call__(
        self,
        spec: RunSpec,
        *,
        requester: SessionKey,
        settings: Settings,
        cwd: str,
        is_operator: bool,
    ) -> Awaitable[Stored]: ...


class Sessions:
    """See the module's text."""

    def __init__(
        self,
        ledger: Ledger,
        queries: Queries,
        control: Control,
        *,
        spawn: Spawn,
        known: Callable[[SessionKey, str], RunId | None],
        remember: Callable[[SessionKey, str, RunId], None],
        inbox_of: Callable[[SessionKey], SessionKey],
    ) -> None:
        self._ledger = ledger
        self._queries = queries
        self._control = control
        self._spawn = spawn
        self._known = known
        self._remember = remember
        self._inbox_of = inbox_of

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
        *,
        by: SessionKey,
        settings: Settings,
        is_operator: bool,
        mode: str = EITHER,
        key: str | None = None,
    ) -> Sent:
        """A message for the session of a run, whoever works in it now.

        Args:
            run_id: Any run of the session.
            message: At most 4,000 characters for a run at work, 256 KiB to start one.
            by: Who says it; hears of the end of a run that it starts.
            settings: The configuration that holds where the session works.
            is_operator: A person or their program.
            mode: ``steer`` = only to a run at work; ``followup`` = not into its present turn.
            key: The same one twice is one message, for 24 hours.

        Raises:
            Conflict: Nobody works there and it cannot be gone on with; or, with ``steer``, nobody
                works there.
            Forbidden: A guardrail; nothing was stored.
            RateLimited: Sooner than 2 s after the last message to a run at work.
        """
        owner = self._inbox_of(by)
        for _ in range(TRIES_MAX):
            run = await self.newest(run_id)
            if key is not None and (known := self._known(owner, key)) is not None:
                await self._ledger.committed()
                return Sent("accepted", await self._queries.run(known), repeated=True)
            try:
                if not run.is_settled:
                    return await self._tell(run, message, by=by, mode=mode, key=key)
                if mode == STEER:
                    raise Conflict(
                        f"run {run.id} is {run.phase}: there is no attempt to steer",
                        hint=f"go on with its session: subagents continue {run.id} MESSAGE "
                        "(mode followup)",
                    )
                spec = RunSpec(task=message, continues=run.id, idempotency_key=key)
                started = await self._spawn(
                    spec,
                    requester=by,
                    settings=settings,
                    cwd="/",  # the session's own is taken over
                    is_operator=is_operator,
                )
            except SessionTaken:
                continue
            return Sent("accepted", started.run, started.warnings, is_new=True)
        raise SessionTaken(
            f"the session of run {run_id} changes too quickly", hint="send it again in a moment"
        )

    async def _tell(
        self, run: Run, message: str, *, by: SessionKey, mode: str, key: str | None
    ) -> Sent:
        if run.phase is Phase.VERIFYING:
            raise Conflict(
                f"run {run.id} is verifying what its worker did: it takes no message now",
                hint="send it again in a moment",
            )
        owner = self._inbox_of(by)
        before = None if key is None else self._remembering(owner, key, run.id)
        try:
            status = await self._control.steer(
                run.id, message, by=by, next_turn=mode == FOLLOWUP, before=before
            )
        except Conflict as error:
            if (await self._queries.run(run.id)).is_settled:
                raise SessionTaken(error.message) from error
            raise
        return Sent(status, await self._queries.run(run.id))

    def _remembering(self, by: SessionKey, key: str, run_id: RunId) -> Callable[[], None]:
        return lambda: self._remember(by, key, run_id)


async def newest_of(queries: Queries, run: Run) -> Run:
    """See ``Sessions.newest``; a first run that was pruned is walked past."""
    try:
        current = await queries.run(run.root)
    except NotFound:
        current = run
    while current.continued_by is not None:
        current = await queries.run(current.continued_by)
    return current


async def previous(
    queries: Queries, selector: str, *, requester: SessionKey, is_operator: bool
) -> Run:
    """The run whose session a spawn goes on with: the newest of the session that is named.

    Raises:
        NotFound: No such run.
        Forbidden: It is not below the one who asks.
        SessionTaken: It is at work.
        Conflict: Its session cannot be gone on with.
    """

    async def is_below(run: Run) -> bool:
        return is_operator or await _is_below(queries, run, requester)

    found = await queries.run(await queries.resolve(selector, requester, may_see=is_below))
    if not await is_below(found):
        raise Forbidden(
            f"run {found.id} belongs to another session; {requester} can go on only with those of "
            "the runs below it",
            guardrail="ownership",
        )
    run = await newest_of(queries, found)
    if not run.is_settled:
        raise SessionTaken(
            f"run {run.id} is at work in this session ({run.phase})",
            hint=f"send it the message: subagents steer {run.id} MESSAGE",
        )
    check_resumable(run)
    return run


async def _is_below(queries: Queries, run: Run, session: SessionKey) -> bool:
    current = run
    for _ in range(DEPTH_MAX):
        if session == current.requester or session in spoken_under(current):
            return True
        if current.requester_run is None:
            return False
        current = await queries.run(current.requester_run)
    return False


# -- a spawn that goes on with a session -----------------------------------------------------


async def load(ledger: Ledger, before: Previous) -> None:
    """Load the runs whose sessions are gone on with, and the first ones of those sessions."""
    wanted = {name for run in before if run is not None for name in (run.id, run.root)}
    while missing := [name for name in wanted if name not in ledger.live]:
        for name in missing:
            try:
                await ledger.bring(name)
            except NotFound:
                wanted.discard(name)  # pruned: what names the session is only a name now


def evict(ledger: Ledger, before: Previous) -> None:
    """Nothing was stored: those that are over need not stay in memory."""
    for run in before:
        for name in () if run is None else (run.id, run.root):
            brought = ledger.live.get(name)
            if brought is not None:
                ledger.let_go(brought)


def check_free(ledger: Ledger, drafts: Sequence[Draft]) -> None:
    """One session has one run at work; asked in the step that stores.

    Raises:
        SessionTaken: Somebody else went on with it meanwhile.
    """
    taken: set[RunId] = set()
    for draft in drafts:
        if draft.previous is None:
            continue
        run = ledger.live.get(draft.previous.id, draft.previous)
        if run.continued_by is not None or run.root in taken:
            raise SessionTaken(f"the session of run {run.id} is gone on with already")
        taken.add(run.root)


def bound_requester(before: Previous) -> SessionKey | None:
    """A session that is bound to a thread tells that thread of all its runs, whoever goes on.

    Raises:
        UsageError: Several such sessions at once.
    """
    found = {
        run.requester
        for run in before
        if run is not None and run.spec.thread and run.requester_run is None
    }
    if found and len(before) > 1:
        raise UsageError("a session that is bound to a thread is gone on with alone, in no batch")
    return next(iter(found), None)


def check_same_worker(previous: Run, agent_id: str, runtime: Runtime) -> None:
    """Only the program that has the session can go on with it.

    Raises:
        Conflict: It is another agent's, or that agent has another runtime by now.
    """
    before = previous.resolved
    if before.agent_id != agent_id or before.runtime != runtime.name:
        raise Conflict(
            f'the session of run {previous.id} is one of agent "{before.agent_id}" (runtime '
            f'"{before.runtime}"); "{agent_id}" (runtime "{runtime.name}") cannot go on with it',
            hint=f"leave agentId out, or start anew: subagents retry {previous.id}",
        )


def depth(parent: Run | None, previous: Run | None) -> int:
    """A session does not come nearer to the top by being gone on with."""
    above = parent.depth if parent is not None else 0
    return max(above + 1, 0 if previous is None else previous.depth)


def continues(previous: Run | None) -> Continues | None:
    """The link to the run before; None = a session of its own."""
    if previous is None:
        return None
    native = check_resumable(previous)
    return Continues(run_id=previous.id, root=previous.root, native_session=native)
