"""The chain of runs that share a session: which is the newest, and what continuing it takes.

Each run names the one it ``continues``; the first one of the session knows the newest
(``continued_by``), so an old id, label or key finds that in two looks, however long the chain is.
"""

from collections.abc import Sequence
from typing import Final

from subagents.domain.rules.continuation import check_resumable
from subagents.domain.run.run import Continues, Run
from subagents.domain.run.values import RunId, SessionKey
from subagents.engine.kernel.ledger import Ledger
from subagents.engine.runs.queries import Queries
from subagents.engine.runs.spawn_call import Draft, SpawnCall
from subagents.errors import Conflict, CorruptState, Forbidden, NotFound, UsageError
from subagents.ports import Runtime

DEPTH_MAX: Final = 64
"""More than ``max_spawn_depth`` can be."""


class SessionTaken(Conflict):
    """The session has a run at work, or was continued in this moment."""


async def newest_of(queries: Queries, run: Run) -> Run:
    """See ``Sessions.newest``; a first run that was pruned is walked past."""
    try:
        current = await queries.run(run.root)
    except NotFound:
        current = run
    while current.session.continued_by is not None:
        current = await queries.run(current.session.continued_by)
    return current


async def previous(queries: Queries, selector: str, call: SpawnCall) -> Run:
    """The run whose session a spawn continues: the newest of the session that is named.

    Args:
        queries: Find it.
        selector: As it was given.
        call: Says who asks.

    Raises:
        UsageError: In a cluster it is of another partition than whoever asks, and a session is of
            one: one node decides who goes on with it.
        NotFound: No such run.
        Forbidden: It is not below the session that asks.
        SessionTaken: It is at work.
        Conflict: Its session cannot be continued.
    """
    requester, partition = call.inbox, call.partition

    async def is_below(run: Run) -> bool:
        return call.context.is_operator or await _is_below(queries, run, requester)

    found = await queries.run(await queries.resolve(selector, requester, may_see=is_below))
    if not await is_below(found):
        raise Forbidden(
            f"run {found.id} belongs to another session; {requester} can continue only those of "
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
    if partition is not None and await queries.partition_of(run.id) not in {None, partition}:
        raise UsageError(
            f"{requester} cannot continue the session of run {run.id}: this cluster decides about"
            " the two apart",
            hint=f"send it a message: subagents continue {run.id} MESSAGE",
            details={"field": "continues"},
        )
    return run


async def _is_below(queries: Queries, run: Run, session: SessionKey) -> bool:
    current = run
    for _ in range(DEPTH_MAX):
        if session == current.requester or session in current.session_keys:
            return True
        if current.lineage.requester_run is None:
            return False
        current = await queries.run(current.lineage.requester_run)
    return False


async def load_runs(ledger: Ledger, before: Sequence[Run]) -> None:
    """Load the runs whose sessions are continued, and the first ones of those sessions.

    Raises:
        NotFound: One of those that are continued was pruned meanwhile.
        CorruptState: What is stored of one of them turned out to be damaged.
    """
    continued = {run.id for run in before}
    wanted = continued | {run.root for run in before}
    # Again and again: while one is read, another that is over may leave memory with a commit.
    while missing := [name for name in wanted if name not in ledger.live]:
        for name in missing:
            try:
                await ledger.load_run(name)
            except (NotFound, CorruptState):
                if name in continued:
                    raise  # no one could record that its session goes on, nor refuse a second
                wanted.discard(name)  # pruned: what names the session is only a name now


def evict_runs(ledger: Ledger, before: Sequence[Run]) -> None:
    """Nothing was stored: those that are over need not stay in memory."""
    for run in before:
        for name in (run.id, run.root):
            loaded = ledger.live.get(name)
            if loaded is not None:
                ledger.evict(loaded)


def check_free(ledger: Ledger, drafts: Sequence[Draft]) -> None:
    """One session has one run at work; asked in the step that stores.

    Raises:
        SessionTaken: Somebody else continued it meanwhile.
    """
    taken: set[RunId] = set()
    for draft in drafts:
        previous = draft.asked.previous
        if previous is None:
            continue
        run = ledger.live.get(previous.id, previous)
        if run.session.continued_by is not None or run.root in taken:
            raise SessionTaken(f"the session of run {run.id} is continued already")
        taken.add(run.root)


def bound_requester(before: Sequence[Run], *, is_alone: bool) -> SessionKey | None:
    """A session that is bound to a thread tells that thread of all its runs, whoever continues it.

    Raises:
        UsageError: Several such sessions at once.
    """
    found = {
        run.requester for run in before if run.spec.thread and run.lineage.requester_run is None
    }
    if found and not is_alone:
        raise UsageError("a session that is bound to a thread is continued alone, in no batch")
    return next(iter(found), None)


def check_same_worker(previous: Run, agent_id: str, runtime: Runtime) -> None:
    """Only the program that has the session can continue it.

    Raises:
        Conflict: It is another agent's, or that agent has another runtime by now.
    """
    before = previous.resolved
    if before.agent_id != agent_id or before.runtime != runtime.name:
        raise Conflict(
            f'the session of run {previous.id} is one of agent "{before.agent_id}" (runtime '
            f'"{before.runtime}"); "{agent_id}" (runtime "{runtime.name}") cannot continue it',
            hint=f"leave agentId out, or start anew: subagents retry {previous.id}",
        )


def depth(parent: Run | None, previous: Run | None) -> int:
    """A session does not come nearer to the top by being continued."""
    above = parent.lineage.depth if parent is not None else 0
    return max(above + 1, 0 if previous is None else previous.lineage.depth)


def continues(previous: Run | None) -> Continues | None:
    """The link to the run before; None = it begins a session."""
    if previous is None:
        return None
    native = check_resumable(previous)
    return Continues(run_id=previous.id, root=previous.root, native_session=native)
