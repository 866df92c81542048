"""What a runtime is handed: composed from the committed run, by value, for every attempt alike."""

from collections.abc import Mapping

from subagents.domain.rules import provider_limits
from subagents.domain.run.run import Run
from subagents.domain.run.values import attempt_id
from subagents.domain.text import prompt
from subagents.ports import AttemptRef, Launch


def set_in(env: Mapping[str, str | None]) -> dict[str, str]:
    """Of an environment that may say None for "not set", what is set."""
    return {name: value for name, value in env.items() if value is not None}


def launch_of(run: Run, env: Mapping[str, str | None]) -> Launch:
    """The newest attempt of ``run``, ready to start; None in ``env`` = not set for its worker."""
    attempt, resolved = run.attempt, run.resolved
    deadline = provider_limits.inherited_deadline_ms(run)
    if deadline is None and resolved.timeout_ms:
        deadline = attempt.times.requested_at_ms + resolved.timeout_ms
    return Launch(
        attempt_id=run.attempt_id,
        run_id=run.id,
        number=attempt.number,
        session_key=attempt.session.key,
        requester=run.requester,
        agent_id=resolved.agent_id,
        label=resolved.label,
        task=run.spec.task,
        prompt=attempt.session.opening or prompt.compose(run),
        previous_results=prompt.dependency_results(run),
        system_prompt=prompt.system_prompt(run),
        cwd=resolved.cwd,
        options=resolved.options,
        retry_reason=attempt.retry.reason,
        deadline_ms=deadline,
        model=resolved.model,
        thinking=resolved.thinking,
        tools=resolved.effective_tools,
        tools_deny=resolved.tools_deny,
        access=resolved.access,
        setup=resolved.worktree.setup if resolved.worktree is not None else "",
        env=set_in(env),
        unset=tuple(sorted(name for name, value in env.items() if value is None)),
        native_session=run.goes_on_in,
    )


def ref_of(run: Run, number: int | None = None) -> AttemptRef:
    """Names an attempt to its runtime; None = the newest."""
    number = len(run.attempts) if number is None else number
    return AttemptRef(
        attempt_id=attempt_id(run.id, number),
        run_id=run.id,
        number=number,
        options=provider_limits.agent_of(run, number).options,
        turns=run.attempts[number - 1].turn.number,
        native_session=run.attempts[number - 1].session.native,
        usage=run.attempts[number - 1].usage,
    )
