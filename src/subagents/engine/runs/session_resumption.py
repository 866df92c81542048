"""What a spawn needs that goes on with sessions: their runs in memory, and one at work in each.

Source: 2-lifecycle §2; docs/decisions/0024.
"""

from collections.abc import Sequence

from subagents.domain.rules.continuation import check_resumable
from subagents.domain.run.run import Continues, Run
from subagents.domain.run.values import RunId, SessionKey
from subagents.engine.kernel.ledger import Ledger
from subagents.engine.runs.dependencies import Draft
from subagents.engine.runs.sessions import SessionTaken
from subagents.errors import Conflict, NotFound, UsageError
from subagents.ports import Runtime

Previous = Sequence[Run | None]
"""The run whose session each spec goes on with."""


async def bring(ledger: Ledger, before: Previous) -> None:
    """Load the runs whose sessions are gone on with, and the first ones of those sessions."""
    wanted = {name for run in before if run is not None for name in (run.id, run.root)}
    while missing := [name for name in wanted if name not in ledger.live]:
        for name in missing:
            try:
                await ledger.bring(name)
            except NotFound:
                wanted.discard(name)  # pruned: what names the session is only a name now


def let_go(ledger: Ledger, before: Previous) -> None:
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
