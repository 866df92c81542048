"""How much of a run's news reaches its requester: an allowance per hour, then one digest line.

Every alert is journaled and on the event stream; only what is pushed into somebody's context is
counted here. Questions, blockers, the announcement and a worker's own notices are no alerts and
are never held back.
"""

from typing import Final

from subagents.domain.run.alert import Alert, AlertKind
from subagents.domain.run.run import AlertLedger, Message, MessageKind, Run
from subagents.domain.run.values import MessageId, replace
from subagents.text import counted, one_line

HOUR_MS: Final = 3_600_000
CHARS_PER_TOKEN: Final = 3
"""An estimate on the safe side: these lines have names, paths and signs in them."""
DIGEST_TOKENS: Final = 60
"""Set aside in each hour for the digest of the hour before."""

URGENT_SHARE: Final = 4
"""One in so many parts of the allowance is kept for what needs somebody: commits cannot use it."""
DIGEST: Final = "digest"
_URGENT: Final = frozenset(
    {
        AlertKind.API_ERROR,
        AlertKind.STUCK,
        AlertKind.BUDGET_ALERT,
        AlertKind.FAILURE_LOOP,
        AlertKind.SAME_PATH,
    }
)
_NAMES: Final = {
    AlertKind.API_ERROR: "API error",
    AlertKind.STUCK: "silence",
    AlertKind.BUDGET_ALERT: "budget alert",
    AlertKind.TASK_MILESTONE: "milestone",
    AlertKind.BUILD_RESULT: "build result",
    AlertKind.GIT_COMMIT: "commit",
    AlertKind.CONTEXT_PRESSURE: "context alert",
    AlertKind.SUBAGENT_SPAWN: "sub-agent spawn",
    AlertKind.FAILURE_LOOP: "failure loop",
    AlertKind.SAME_PATH: "shared file",
}


def tokens_of(text: str) -> int:
    """What a line costs in the requester's context, roughly and rather too much."""
    return len(text.encode()) // CHARS_PER_TOKEN + 1


def admit(run: Run, alert: Alert, *, at_ms: int) -> tuple[Run, tuple[Message, ...]]:
    """Count one alert, and push it when the hour's allowance has room for it.

    Returns:
        The run with its counts, and the message for the requester's inbox, or none. The digest of
        an hour that ended comes first.
    """
    rules = run.resolved.alerts
    if alert.kind in rules.off:
        return run, ()
    run, digest = roll(run, at_ms=at_ms)
    ledger = run.alerts
    if ledger.since_ms is None:
        ledger = replace(ledger, since_ms=at_ms)
    message = _message(run, one_line(alert.text), alert.kind.value, at_ms=at_ms)
    cost = tokens_of(message.text)
    urgent = alert.kind in _URGENT
    room = rules.tokens_per_hour - DIGEST_TOKENS
    if not urgent:
        room -= rules.tokens_per_hour // URGENT_SHARE
    # News are read in their order: once some are held, only what is urgent overtakes them.
    if ledger.tokens + cost > max(room, 0) or (ledger.held and not urgent):
        held = {**ledger.held, alert.kind.value: ledger.held.get(alert.kind.value, 0) + 1}
        return replace(run, alerts=replace(ledger, held=held)), digest
    pushed = replace(ledger, number=ledger.number + 1, tokens=ledger.tokens + cost)
    return replace(run, alerts=pushed), (*digest, message)


def digest_due_ms(run: Run) -> int | None:
    """When the held alerts become their digest line; None = nothing is held."""
    ledger = run.alerts
    if not ledger.held or ledger.since_ms is None:
        return None
    return ledger.since_ms + HOUR_MS


def roll(run: Run, *, at_ms: int) -> tuple[Run, tuple[Message, ...]]:
    """End the hour when it is over: what was held becomes one line."""
    ledger = run.alerts
    if ledger.since_ms is None or at_ms < ledger.since_ms + HOUR_MS:
        return run, ()
    if not ledger.held or run.resolved.alerts.tokens_per_hour < DIGEST_TOKENS:
        # An allowance of nothing allows no digest, either.
        fresh = replace(ledger, since_ms=None, tokens=0, held={})
        return replace(run, alerts=fresh), ()
    message = _message(run, _digest(run), DIGEST, at_ms=at_ms)
    fresh = AlertLedger(
        number=ledger.number + 1, since_ms=at_ms, tokens=tokens_of(message.text), held={}
    )
    return replace(run, alerts=fresh), (message,)


def _digest(run: Run) -> str:
    held = run.alerts.held
    parts = [counted(count, _NAMES[AlertKind(kind)]) for kind, count in sorted(held.items())]
    return f"🗂 {sum(held.values())} more alerts held back: {', '.join(parts)}"


def is_urgent(message_id: str) -> bool:
    """Whether an alert's message is worth waking an idle session for; by its id.

    The others are read with whatever wakes it next.
    """
    return message_id.rpartition(":")[2] in _URGENT


def _message(run: Run, text: str, kind: str, *, at_ms: int) -> Message:
    return Message(
        id=MessageId(f"{run.id}:a{run.alerts.number + 1}:{kind}"),
        session_key=run.requester,
        run_id=run.id,
        kind=MessageKind.ALERT,
        created_at_ms=at_ms,
        text=f"[subagent:{one_line(run.resolved.label)}] {text}",
    )
