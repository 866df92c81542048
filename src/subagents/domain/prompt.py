"""The first message a worker gets, and the facts its system prompt conveys.

Source: 2-lifecycle §3, §4; 3-tools "System prompt given to a worker"; seed 001 "Sub-agent
System Prompt"; seed 002 step 3; seed 000 §2.5.
"""

from subagents.domain.announcement import duration
from subagents.domain.contract import describe
from subagents.domain.model import Dependency, Run
from subagents.domain.outcome import Outcome, Status


def dependency_results(run: Run) -> str:
    """The results of the dependencies, as data: bare when there is one, labelled when several."""
    if not run.spec.include_dependency_result:
        return ""
    if len(run.dependencies) == 1:
        return run.dependencies[0].result or ""
    return "\n\n".join(
        f"[Previous step result: {d.label}]:\n{d.result or ''}" for d in run.dependencies
    )


def compose(run: Run) -> str:
    """The task as the newest attempt's worker reads it.

    Exactly ``[Previous step result]:\\n<result>\\n\\n[Current task]:\\n<task>`` with one
    dependency; one labelled block each, in the order given, with several; a retry is announced
    before everything else.
    """
    text = _with_results(run)
    failures = _failed_dependencies(run)
    if failures:
        text = f"{failures}\n\n{text}"
    attempt = run.attempt
    early = [s for s in run.steers if s.at_ms <= attempt.requested_at_ms]
    for steer in early:
        text += f"\n\n[Message from {steer.by}]:\n{steer.message}"
    if attempt.retry_reason is None:
        return text
    kind = " verification" if attempt.verification_retry else ""
    return (
        f"[RETRY — Previous attempt failed{kind}]\n"
        f"Failure reason: {attempt.retry_reason}\n"
        f"Original task: {text}"
    )


def _with_results(run: Run) -> str:
    if not run.spec.include_dependency_result or not run.dependencies:
        return run.spec.task
    results = dependency_results(run)
    if len(run.dependencies) == 1:
        results = f"[Previous step result]:\n{results}"
    return f"{results}\n\n[Current task]:\n{run.spec.task}"


def _failed_dependencies(run: Run) -> str:
    """With ``onDependencyFailure: run`` the worker is told what it must do without."""
    failed: list[Dependency] = [
        d for d in run.dependencies if d.outcome is not None and d.outcome.status is not Status.OK
    ]
    return "\n".join(
        f"[Previous step {_how(d.outcome)}: {d.label}]: "
        f"{d.outcome.status}: {d.outcome.error or ''}".rstrip()
        for d in failed
        if d.outcome is not None
    )


def _how(outcome: Outcome) -> str:
    return "completed partially" if outcome.status is Status.PARTIAL else "failed"


def system_prompt(run: Run) -> str:
    """Facts for a worker that reads prose; plain commands ignore it."""
    resolved, spec = run.resolved, run.spec
    may_spawn = run.depth < resolved.max_spawn_depth
    spawning = f"you {'may' if may_spawn else 'may not'} spawn sub-agents"
    depth = f"depth {run.depth} of {resolved.max_spawn_depth}"
    lines = [
        "# You are a sub-agent",
        f"You work for {run.requester} on one task and are not the main agent.",
        "Stay on the task; start no conversations.",
        "Your last message is reported to the requester by itself.",
        f"- Label: {resolved.label}; run: {run.id}; {depth}: {spawning}.",
    ]
    if resolved.timeout_ms:
        lines.append(f"- Deadline: {duration(resolved.timeout_ms)} after the start.")
    if resolved.effective_tools is not None:
        lines.append(f"- Your tools: {', '.join(resolved.effective_tools) or 'none'}.")
    if spec.verification is not None:
        lines.append("- Before you are done these are checked:")
        lines += [f"  - {line}" for line in describe(spec.verification)]
    if spec.completion_report:
        lines.append("- End with report_completion (status, confidence, summary, artifacts).")
    if spec.progress_reporting:
        lines.append("- Report progress with report_progress, at most every 30 seconds.")
    lines.append("- Need a decision? Ask the requester with request_orchestrator.")
    return "\n".join(lines)
