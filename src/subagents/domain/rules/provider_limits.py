"""When a model's provider takes no more for now: waiting is not failing.

An attempt that the provider ended (429, 529) is no failed one: its run waits, uncounted, and then
continues in the same session where its program can, else from the beginning. Its budgets hold
meanwhile; its timeout is one of attempts, and the next attempt has all of it. The first wait is
15 s, each further one in a row twice as long up to 5 min, or what the provider asked for; after
6 h in a row the run ends, or as ``on_limit`` says: after another time, or with another agent.

``Gate`` is the other half: what all runs of one provider and key have learned together. While it
is closed none of them starts; when it opens one goes first, and the others after it got through.
Only refusals that ended an attempt make the next wait longer: a program that tries again by itself
can be refused ten times in as many seconds, and that says nothing of the minutes to come.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from subagents.domain.run.outcome import Outcome, Reason, Status
from subagents.domain.run.run import Limited, Run
from subagents.domain.run.spec import LimitStep, ResolvedAgent
from subagents.domain.run.values import RunId, Value, replace
from subagents.errors import UsageError
from subagents.text import duration, parse_duration

FIRST_WAIT_MS: Final = 15_000
WAIT_MS_MAX: Final = 300_000
TOTAL_MS_MAX: Final = 6 * 3_600_000
PROBE_MS: Final = 30_000
"""The first start behind a closed gate that was not refused for so long got through."""
LIMIT_STATUSES: Final = frozenset({429, 529})
TEXT_CHARS_MAX: Final = 300

RESUME_TEXT: Final = (
    "[System Message] The model's provider refused for a while and takes requests again. "
    "Go on where you stopped."
)


def wait_ms(number: int, retry_after_ms: int | None) -> int:
    """How long to wait before try ``number`` (1, 2, …) after a refusal."""
    if retry_after_ms is not None and retry_after_ms > 0:
        return retry_after_ms
    return min(FIRST_WAIT_MS << min(number - 1, 10), WAIT_MS_MAX)


# -- one run ------------------------------------------------------------------------------------


class Wanted(NamedTuple):
    """One step of ``onLimit`` as it was asked for."""

    wait_ms: int
    agent_id: str | None = None
    model: str | None = None


def wanted(texts: Sequence[str]) -> list[Wanted]:
    """The steps that are meant: each wait belongs to what comes behind it.

    Raises:
        UsageError: One of them is none.
    """
    found, wait_ms = list[Wanted](), 0
    for text in texts:
        what, _, name = (each.strip() for each in text.partition(":"))
        if text.startswith("wait "):
            wait_ms += parse_duration(text.removeprefix("wait "), field="onLimit")
        elif what in {"agent", "model"} and name:
            found.append(Wanted(wait_ms, **{"agent_id" if what == "agent" else what: name}))
            wait_ms = 0
        else:
            how = '"wait 3d", "agent:ID" or "model:NAME"'
            details = {"field": "onLimit"}
            raise UsageError(f'onLimit: "{text}" is none of {how}', details=details)
    return [*found, Wanted(wait_ms)] if wait_ms else found


def step_of(run: Run) -> LimitStep:
    """What comes next at a limit."""
    steps, at = run.resolved.on_limit, run.retry.handed_over
    return steps[at] if at < len(steps) else LimitStep(TOTAL_MS_MAX)


def handed_over(run: Run, why: str) -> Run:
    """The run with the next agent of its ``on_limit``, where it is and with its work as it is."""
    number = run.retry.handed_over + 1
    after = run.resolved.handed_over(number)
    retry = replace(run.retry, limited=None, handed_over=number)
    if run.attempts:
        cause = replace(run.attempt.retry, reason=f"{why}; {after.taken_over}")
        retry = replace(retry, cause=cause)
    return replace(run, retry=retry, resolved=after)


def agent_of(run: Run, number: int) -> ResolvedAgent:
    """The agent of one of its attempts: another may have taken over since."""
    times = run.attempts[number - 1].handed_over
    if times == run.retry.handed_over:
        return run.resolved
    return (run.resolved.on_limit[times - 1].agent if times else None) or (
        run.resolved.began_as or run.resolved
    )


def limited(run: Run, outcome: Outcome, at_ms: int) -> tuple[Run, int] | None:
    """The run that tries again, after a wait or with another agent, and when; None = it ends."""
    has_worked = run.attempt.usage is not None and bool(run.attempt.usage.tokens_out)
    # An attempt that worked before it was refused got through: the patience begins again.
    before = None if has_worked else run.retry.limited
    before = before or Limited(since_ms=at_ms, waits=0, text="")
    delay = wait_ms(before.waits + 1, run.attempt.evidence.retry_after_ms)
    text, step = (outcome.error or "provider limit")[:TEXT_CHARS_MAX], step_of(run)
    # Decided before the wait: six hours that end in a refusal help less than an end now.
    if at_ms + delay > before.since_ms + step.wait_ms:
        return None if step.agent is None else (handed_over(run, text), at_ms)
    retry = replace(
        run.retry,
        limited=Limited(since_ms=before.since_ms, waits=before.waits + 1, text=text),
        # The attempt after the wait does what the refused one was for, a retry included.
        cause=run.attempt.retry,
    )
    return replace(run, retry=retry), at_ms + delay


def given_up(run: Run, outcome: Outcome, at_ms: int) -> Outcome:
    """The end of a run that its provider kept waiting for too long."""
    since_ms = run.retry.limited.since_ms if run.retry.limited else at_ms
    asked = run.attempt.evidence.retry_after_ms
    why = f"waited {duration(at_ms - since_ms)}"
    if asked is not None:
        why += f", and the provider asks for {duration(asked)} more"
    return replace(outcome, error=f"{outcome.error or 'provider limit'} ({why})")


def deadline_ms(run: Run) -> int | None:
    """When a run of 0.1.0 ends though it waits for its provider: there its timeout went on."""
    if run.rules or run.retry.limited is None or not run.attempts:
        return None
    return run.attempt.times.deadline_ms


def past_deadline(run: Run, at_ms: int) -> Outcome | None:
    """How such a run ends."""
    due = deadline_ms(run)
    if due is None or at_ms < due or run.retry.limited is None:
        return None
    return Outcome(
        status=Status.TIMEOUT,
        reason=Reason.DEADLINE,
        error=f"its deadline passed while it waited for the provider: {run.retry.limited.text}",
    )


def inherited_deadline_ms(run: Run) -> int | None:
    """The deadline that a new attempt of a run of 0.1.0 has from the one that was refused."""
    before = run.attempts[-2] if not run.rules and len(run.attempts) > 1 else None
    if before is None or before.outcome is None:
        return None
    is_limit = before.outcome.reason is Reason.PROVIDER_LIMIT
    return before.times.deadline_ms if is_limit else None


# -- all runs of one provider and key -----------------------------------------------------------


class Provider(Value, frozen=True):
    """Whose limits an attempt shares."""

    name: str
    """Its name for people; never a key."""
    key: str
    """The same for all attempts that share a limit; reveals nothing of the secret in it."""


class Gate(Value, frozen=True):
    """What is known of one provider and key while it refuses."""

    provider: str
    """The provider's name for people: ``anthropic``."""
    until_ms: int
    status: int | None = None
    waits: int = 1
    """Attempts in a row that were ended by a refusal, each after the wait before was over; 0 = only
    programs that try again by themselves were refused."""
    told_until_ms: int = 0
    """What the provider said, which may be later."""
    probe: RunId | None = None
    """The one that went first, after ``until_ms``."""
    probe_at_ms: int = 0

    def is_closed(self, now_ms: int) -> bool:
        """Whether no run may start."""
        return now_ms < self.until_ms

    def is_probing(self, now_ms: int) -> bool:
        """Whether one went first, and it is not known yet whether it got through."""
        return self.probe is not None and now_ms < self.probe_at_ms + PROBE_MS


def refused(
    gate: Gate | None, *, provider: str, now_ms: int, status: int | None, retry_after_ms: int | None
) -> Gate:
    """The gate after a refusal ended an attempt; while it is closed it only gets more time."""
    # A provider can ask for days; a run waits six hours, so nothing is gained by a longer gate.
    asked = None if retry_after_ms is None else min(retry_after_ms, TOTAL_MS_MAX)
    told = now_ms + (retry_after_ms or 0)
    if gate is not None and gate.waits and gate.is_closed(now_ms):
        # Others were under way when it closed: their refusals are the same news once more.
        until_ms = max(gate.until_ms, now_ms + (asked or 0))
        told = max(told, gate.told_until_ms)
        return replace(gate, until_ms=until_ms, told_until_ms=told, status=status or gate.status)
    waits = 1 if gate is None else gate.waits + 1
    until_ms = now_ms + wait_ms(waits, asked)
    return Gate(
        provider=provider,
        until_ms=until_ms if gate is None else max(until_ms, gate.until_ms),
        status=status,
        waits=waits,
        told_until_ms=told,
    )


def refused_live(
    gate: Gate | None,
    *,
    provider: str,
    run_id: RunId,
    now_ms: int,
    status: int | None,
    retry_after_ms: int | None,
) -> Gate:
    """The gate after a refusal whose program goes on: it closes an open one, and counts nothing.

    From the one that went first it is no answer yet: the others wait for what its program finds
    out.
    """
    asked = None if retry_after_ms is None else min(retry_after_ms, TOTAL_MS_MAX)
    if gate is None:
        until_ms = now_ms + wait_ms(1, asked)
        return Gate(provider=provider, until_ms=until_ms, status=status, waits=0)
    if gate.probe == run_id:
        return replace(gate, probe_at_ms=now_ms + (asked or 0), status=status)
    return gate


def refusal_text(provider: str, status: int | None) -> str:
    """``anthropic: 429``."""
    return f"{provider}: {status}" if status is not None else f"{provider}: refused"
