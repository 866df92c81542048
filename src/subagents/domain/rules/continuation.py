"""Continuing an ended run's session: what a later run takes over, and when there is nothing to.

A session is a conversation that can be resumed, not a live process: each message to an idle one
starts another run, with its own result. That is never wider than the run before it.

See docs/decisions/0024.
"""

from subagents.domain.run.outcome import VerificationState
from subagents.domain.run.run import Run
from subagents.domain.run.spec import Cleanup, RunSpec
from subagents.domain.run.values import replace
from subagents.errors import Conflict, UsageError


def check_resumable(run: Run) -> str:
    """What the worker's program calls the session of an ended run.

    Raises:
        Conflict: There is nothing to continue; says why, and what to do instead.
    """
    is_deleted = run.spec.cleanup is Cleanup.DELETE
    again = "spawn a new run" if is_deleted else f"start again: subagents retry {run.id}"
    if not run.resolved.abilities.resume:
        raise Conflict(
            f'runtime "{run.resolved.runtime}" cannot continue a session: it has none', hint=again
        )
    if is_deleted:
        raise Conflict(
            f"the session of run {run.id} was deleted when it ended (cleanup: delete)", hint=again
        )
    native = run.native_session
    if native is None:
        raise Conflict(
            f"run {run.id} has no session to continue: its worker's program never named one",
            hint=again,
        )
    return native


def way_on(run: Run) -> str:
    """What can be done with a run that has ended, for whoever asked for something else."""
    try:
        check_resumable(run)
    except Conflict as error:
        return f"{error.hint}"
    return (
        f"go on in its session: subagents continue {run.id} TEXT; or start again: subagents retry "
        f"{run.id}"
    )


def inherited(spec: RunSpec, run: Run) -> RunSpec:
    """The parameters of a run that continues the session of ``run``; what it omits is as before.

    The tools are not taken over here but narrowed where they are resolved. A contract that was not
    met holds on; one that was met is done with.

    Raises:
        UsageError: It asks for another directory; programs keep sessions by theirs.
    """
    before, resolved = run.spec, run.resolved
    if spec.cwd is not None and spec.cwd != resolved.cwd:
        raise UsageError(
            f'cwd must be that of the session, "{resolved.cwd}", not "{spec.cwd}"',
            hint="leave cwd out, or start a run of its own there",
            details={"field": "cwd"},
        )
    # Stored with a run whose runtime took none: handed on, the spawn would be refused for it.
    takes_model = resolved.abilities.model
    is_met = run.verification.state in {None, VerificationState.PASSED}
    again = spec if is_met or spec.retry_until_verified else before
    return replace(
        spec,
        continues=run.id,
        label=spec.label or resolved.label,
        agent_id=spec.agent_id or resolved.agent_id,
        cwd=resolved.cwd,
        model=spec.model or (resolved.model if takes_model else None),
        thinking=spec.thinking or (resolved.thinking if takes_model else None),
        run_timeout_seconds=before.run_timeout_seconds
        if spec.run_timeout_seconds is None
        else spec.run_timeout_seconds,
        mode=spec.mode or resolved.mode,
        thread=spec.thread or before.thread,
        lane=spec.lane or before.lane,
        place=spec.place or before.place,
        tags=spec.tags or before.tags,
        budget=spec.budget or before.budget,
        verification=spec.verification or (None if is_met else before.verification),
        retry_until_verified=again.retry_until_verified,
        retry_afresh=again.retry_afresh,
        completion_report=spec.completion_report or before.completion_report,
        progress_reporting=spec.progress_reporting or before.progress_reporting,
    )
