"""Starts the judge of a contract: an ordinary run below the judged one, spawned by the engine.

Once per attempt: the judged run's list of children, which is written in the same commit, says
whether the judge is there. Nothing is waited for here; its end reaches the judged run as that of
any child does.
"""

from subagents.domain.lifecycle import judging
from subagents.domain.rules import ceilings
from subagents.domain.rules.budgets import reservations
from subagents.domain.run.events import ChildSpawned, Spawned, VerificationFinished
from subagents.domain.run.linked_runs import Child
from subagents.domain.run.run import RULES, Phase, Run
from subagents.domain.run.spec import Budget, Resolved, RunSpec
from subagents.domain.run.values import SessionKey, replace
from subagents.domain.text import judge_task
from subagents.engine.attempts.shared_spending import SharedSpending
from subagents.engine.kernel.addresses import ancestors
from subagents.engine.kernel.kernel import Kernel
from subagents.errors import Forbidden
from subagents.ports import Ids


class Judges:
    """Spawns without a caller: what a judge may do was resolved with the run that it judges."""

    def __init__(self, kernel: Kernel, *, ids: Ids, shared_spending: SharedSpending) -> None:
        self._ledger, self._clock = kernel.ledger, kernel.clock
        self._ids = ids
        self._shared_spending = shared_spending

    def start(self, run: Run, number: int) -> VerificationFinished | None:
        """Put the judge's run into the next commit; repeating it is harmless.

        Args:
            run: The judged one.
            number: Of its attempt.

        Returns:
            The verdict, when there is no budget for a judge; None = it is there, or not needed.
        """
        run = self._ledger.live.get(run.id, run)
        contract, resolved = run.spec.verification, run.resolved.judge
        if contract is None or contract.judge is None or resolved is None:
            return None
        if run.phase is not Phase.VERIFYING or len(run.attempts) != number:
            return None
        if any(child.judges == number for child in run.children):
            return None
        # No await from here on: what is counted and what is stored are one step.
        now = self._clock.now_ms()
        spec = judge_task.judge_spec(run, contract.judge)
        above = [run, *ancestors(self._ledger.live, run)]
        resolved = _placed(run, resolved, spec)
        try:
            # It is part of the contract, so no number of runs keeps it from its work.
            reservations.check(above, [spec.budget], now_ms=now, counts_runs=False)
            self._shared_spending.check(spec, resolved)
        except Forbidden as error:
            check = judging.undecided(resolved.agent_id, error.message)
            verdict = replace(judging.verification_of(run, check), verified_at_ms=now)
            return VerificationFinished(at_ms=now, attempt=number, verification=verdict)
        shared = reservations.left_for(above, spec, now_ms=now)
        run_id = self._ids.run_id()
        child = Child(
            run_id=run_id,
            label=resolved.label,
            told=True,  # its end is for the contract, and nothing that the worker waits for
            judges=number,
            committed=reservations.reserved(spec),
        )
        self._ledger.apply_now(run.id, ChildSpawned(at_ms=now, child=child))
        key = f"agent:{resolved.agent_id}:subagent:{self._ids.session_uuid()}"
        spawned = Spawned(
            at_ms=now,
            run_id=run_id,
            spec=spec,
            resolved=_within(resolved, shared),
            requester=run.session.first_key,
            requester_run=run.id,
            depth=run.lineage.depth + 1,
            session_key=SessionKey(key),
            judges=number,
            rules=RULES,
        )
        self._ledger.apply_now(run_id, spawned)
        return None


def _within(resolved: Resolved, shared: Budget | None) -> Resolved:
    """The clock of a budget above stops nothing while a contract is checked: the deadline does."""
    left_s = None if shared is None else shared.max_seconds
    left_ms = resolved.timeout_ms if left_s is None else max(round(left_s * 1000), 1)
    return replace(resolved, shared_budget=shared, timeout_ms=min(resolved.timeout_ms, left_ms))


def _placed(run: Run, resolved: Resolved, spec: RunSpec) -> Resolved:
    """What the judge came to, under the label and the caps that are known only now."""
    tags, access = (*run.spec.tags, *run.resolved.tags_above), resolved.access
    return replace(
        resolved,
        label=spec.label or resolved.label,
        cwd=run.resolved.cwd,
        access=None if access is None else ceilings.placed(access, run.resolved.cwd),
        plan=run.resolved.plan,
        tags_above=tuple(dict.fromkeys(tags)),
        commands_trusted=run.resolved.commands_trusted,
        contract_root=run.resolved.contract_root,
        max_spawn_depth=run.lineage.depth + 1,
    )
