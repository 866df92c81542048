"""Messages for the worker: into its live attempt where its runtime takes them, else kept."""

from subagents.domain.lifecycle import open_questions
from subagents.domain.lifecycle.steps import join, steered
from subagents.domain.run.effects import ResolveMessages, SteerAttempt, Transition
from subagents.domain.run.events import SteerRequested, SteerSettled
from subagents.domain.run.run import Answer, Decision, Phase, Run, Steer
from subagents.domain.run.values import MessageId, replace


def requested(run: Run, event: SteerRequested) -> Transition:
    """Whoever writes to the worker has read its notices: the message answers them all."""
    run = replace(run, control=replace(run.control, last_steer_ms=event.at_ms))
    notices = tuple(each for each in run.pending_requests if each.priority is not None)
    given = Answer(decision=Decision.ANSWER, text=event.message, by=event.by, at_ms=event.at_ms)
    for notice in notices:
        run = open_questions.answer(run, notice.id, given)
    step = send(run, event.message, by=event.by, at_ms=event.at_ms, next_turn=event.next_turn)
    answered = tuple(MessageId(notice.id) for notice in notices)
    return join(step, (ResolveMessages(messages=answered),) if answered else ())


def send(run: Run, message: str, *, by: str, at_ms: int, next_turn: bool = False) -> Transition:
    """A message for the worker: into the live attempt where its runtime can, else kept."""
    number = run.control.steers_total + 1
    steer = Steer(number=number, message=message, by=by, at_ms=at_ms, next_turn=next_turn)
    control = replace(run.control, steers=(*run.control.steers, steer), steers_total=number)
    run = replace(run, control=control)
    if run.phase is Phase.RUNNING and run.resolved.abilities.steer and not next_turn:
        effect = SteerAttempt(attempt=run.attempt.number, number=number, message=message)
        return Transition(run, effects=(effect,))
    return Transition(run)


def settled(run: Run, event: SteerSettled) -> Transition:
    if not event.taken:
        return Transition(run)
    left = tuple(steer for steer in run.control.steers if steer.number != event.number)
    return Transition(steered(run, left))
