"""What a supervisor can have done: one function for each action, and a table of them.

``agentId`` names a run, as everywhere: label, id, unique prefix of it, session key or ``last``; the
supervisor's own runs come first. It acts as the person whose daemon this is, under its session.

See docs/supervisor.md.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final, NamedTuple

import msgspec

from subagents.api.answers import log_pages, run_building
from subagents.api.answers.status import status as status_of
from subagents.api.calls.auth import SESSION, Caller
from subagents.api.calls.call import find_run
from subagents.api.calls.services import Services
from subagents.api.wire import requests as wire
from subagents.api.wire.decoding import decode, one_of
from subagents.api.wire.wire_struct import Document, document_of
from subagents.domain.run.outcome import Status
from subagents.domain.run.parameter import NAME_CHARS_MAX
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import RunId, SessionKey, announcement_id
from subagents.domain.transcript.feed_entry import NAMES, NEWS
from subagents.engine.runs.feed import Scope
from subagents.engine.runs.sessions import EITHER
from subagents.engine.runs.spawn import Receipt
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.errors import (
    Conflict,
    NotFound,
    RateLimited,
    UsageError,
)
from subagents.extensions.supervisor.supervisor_stream import (
    SUBSCRIPTIONS_MAX,
    Stream,
    Subscription,
)

PING: Final = "ping"
EVERYTHING: Final = "*"
"""Names the subscription that is to no agent of its own."""
LISTED_MAX: Final = 100
LOG_BYTES_MAX: Final = 1024 * 1024
MS_AGO_MAX: Final = 365 * 24 * 3_600_000
LIVE: Final = frozenset({Phase.SPAWNING, Phase.RUNNING})

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARS_MAX)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorSession:
    """One registered supervisor."""

    services: Services
    caller: Caller
    stream: Stream


class Done(NamedTuple):
    """What is answered, and what begins only after that answer has left."""

    result: Document
    then: Callable[[], None] | None = None


Action = Callable[[SupervisorSession, Mapping[str, object]], Awaitable[Done]]


class OfAgent(wire.Body, frozen=True):
    agent_id: Name


class MaybeOfAgent(wire.Body, frozen=True):
    agent_id: Name | None = None


class ToAgent(wire.Body, frozen=True):
    agent_id: Name
    message: wire.Message | None = None
    text: wire.Message | None = None
    """Another word for ``message``."""


class GetLog(wire.Body, frozen=True):
    agent_id: Name
    offset: Annotated[int, msgspec.Meta(ge=0, le=log_pages.NUMBER_MAX)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=log_pages.LOG_LINES_MAX)] | None = None
    grep: str | None = None
    since: Annotated[int, msgspec.Meta(ge=0, le=MS_AGO_MAX)] | None = None
    """How many milliseconds ago the first line may have been recorded."""
    type: str | None = None
    attempt: Annotated[int, msgspec.Meta(ge=1, le=log_pages.ATTEMPT_MAX)] | None = None


class Subscribe(wire.Body, frozen=True):
    agent_id: Name | None = None
    session: str | None = None
    from_: Annotated[int, msgspec.Meta(ge=0)] | None = msgspec.field(default=None, name="from")
    """Number of the last event that was seen; None = only what is new."""
    events: tuple[str, ...] = NEWS


class Ending(wire.Body, frozen=True):
    agent_id: Name
    reason: wire.Message | None = None


def named(word: str) -> Action:
    """The action of that name.

    Raises:
        UsageError: There is none; the nearest is named.
    """
    return _ACTIONS[one_of("action", word, [PING, *_ACTIONS])]


# -- look ---------------------------------------------------------------------------------------


async def status(session: SupervisorSession, params: Mapping[str, object]) -> Done:
    """One agent; without ``agentId`` all that have not ended, newest first."""
    asked = decode(params, MaybeOfAgent)
    if asked.agent_id is not None:
        return Done(await _status(session, await _run(session, asked.agent_id)))
    published = session.services.engine.queries.open_runs
    open_runs = [run for run in published if not run.is_settled]
    open_runs.sort(key=lambda run: run.times.created_at_ms, reverse=True)
    shown = [await _status(session, run) for run in open_runs[:LISTED_MAX]]
    return Done({"agents": shown, "total": len(open_runs)})


async def _status(session: SupervisorSession, run: Run) -> Document:
    found = await status_of(session.services, run)
    # To a supervisor an agent is the worker it named; what we call agent is how that is configured.
    state = "active" if found.state == "running" else found.state
    return {
        **document_of(found),
        "agentId": run.resolved.label,
        "agent": run.resolved.agent_id,
        "state": state,
    }


async def get_log(session: SupervisorSession, params: Mapping[str, object]) -> Done:
    """A page of the transcript: ``{totalLines, returnedLines, offset, lines[]}``, and more."""
    asked = decode(params, GetLog)
    run = await _run(session, asked.agent_id)
    since = None
    if asked.since is not None:
        then_ms = session.services.now_ms() - asked.since
        since = datetime.fromtimestamp(then_ms / 1000, tz=UTC).isoformat()
    wanted = log_pages.Asked(
        offset=asked.offset,
        limit=asked.limit,
        grep=asked.grep,
        since=since,
        type=asked.type,
        attempt=asked.attempt,
    )
    page = await log_pages.log_page(session.services, run, wanted, bytes_max=LOG_BYTES_MAX)
    return Done(document_of(page))


# -- talk ---------------------------------------------------------------------------------------


async def send_message(session: SupervisorSession, params: Mapping[str, object]) -> Done:
    """Into the live attempt where its runtime takes messages, else for its next turn.

    To one that has ended: a new run of the same name continues its session, where it has one.
    """
    asked = decode(params, ToAgent)
    run = await _run(session, asked.agent_id)
    text = _text(asked)
    if run.is_settled and not run.resolved.abilities.resume:
        run = await _open_run(session, asked.agent_id)
    sent = await session.services.send(
        run, text, by=session.caller.session, mode=EITHER, key=None, is_operator=True
    )
    return Done({**_names(sent.run), "status": sent.status})


async def send_to_cc(session: SupervisorSession, params: Mapping[str, object]) -> Done:
    """Into the live attempt, and nowhere else."""
    asked = decode(params, ToAgent)
    run = await _open_run(session, asked.agent_id)
    text = _text(asked)
    if not run.resolved.abilities.steer:
        raise _unable(run, "takes no messages while it runs", ability="steer")
    if run.phase not in LIVE:
        raise Conflict(
            f'agent "{run.resolved.label}" has no live attempt: run {run.id} is {run.phase}',
            hint="send_message keeps a message for its next turn",
        )
    taken = await session.services.engine.control.steer(run.id, text, by=session.caller.session)
    return Done({**_names(run), "status": taken})


async def cancel_turn(session: SupervisorSession, params: Mapping[str, object]) -> Done:
    """End its turn: it ends with what it has so far, and ``send_message`` continues it."""
    asked = decode(params, Ending)
    run = await _open_run(session, asked.agent_id)
    if not run.resolved.abilities.interrupt:
        raise _unable(run, "cannot interrupt a turn", ability="interrupt")
    await session.services.engine.control.interrupt(
        run.id, by=session.caller.session, reason=asked.reason
    )
    return Done({**_names(run), "status": "interrupting"})


# -- begin and end ------------------------------------------------------------------------------


async def create_agent(session: SupervisorSession, params: Mapping[str, object]) -> Done:
    """Spawn a run for the supervisor's session, and push its news from its first event on.

    ``agentId`` becomes the label, ``agent`` says which configured one works, ``message`` is another
    word for ``task``; everything else is as for ``sessions_spawn``.
    """
    services, requester = session.services, session.caller.session
    given = dict(params)
    label = decode({"agentId": given.pop("agentId", None)}, OfAgent).agent_id
    subscribes = given.pop("subscribe", True)
    if not isinstance(subscribes, bool):
        raise UsageError("subscribe must be true or false", details={"field": "subscribe"})
    if subscribes:
        _require_room(session, label)
    message = given.pop("message", None)
    if message is not None and "task" in given:
        raise UsageError("task and message exclude each other", details={"field": "message"})
    renamed = {"label": label, "agentId": given.pop("agent", None)}
    text = {} if message is None else {"task": message}
    spec = wire.parse_spec({**given, **text, **renamed})
    if spec.cwd is None:
        raise UsageError("cwd is required: where the agent works", details={"field": "cwd"})
    if spec.idempotency_key is None:
        await _require_free(session, label)
    config = await services.config_in(spec.cwd, is_operator=True)
    number = await services.engine.feed.newest()
    with config.explaining():
        receipt = await services.engine.spawner.spawn(
            spec, SpawnContext(session=requester, settings=config.settings, cwd=spec.cwd)
        )
    subscription = Subscription(Scope(run=receipt.run.id), frozenset(NEWS), number)
    return Done(
        _receipt(receipt, config.ignored),
        (lambda: session.stream.add(label, subscription)) if subscribes else None,
    )


async def _require_free(session: SupervisorSession, label: str) -> None:
    """Refuse a name under which an agent of this supervisor is at work.

    Raises:
        Conflict: Names its run.
    """
    for run in session.services.engine.queries.unsettled(session.caller.session):
        if run.resolved.label == label:
            raise Conflict(
                f'agent "{label}" is there already: run {run.id} is {run.phase}',
                hint="destroy_agent first, or give another agentId",
            )


def _receipt(receipt: Receipt, ignored: tuple[str, ...]) -> Document:
    found = run_building.receipt(receipt, ignored)
    return {**document_of(found), **_names(receipt.run), "agent": receipt.run.resolved.agent_id}


async def kill_cc(session: SupervisorSession, params: Mapping[str, object]) -> Done:
    """End the attempt's processes: the run is cancelled, with all it spawned."""
    asked = decode(params, Ending)
    return Done(await _cancel(session, await _run(session, asked.agent_id), asked.reason))


async def destroy_agent(session: SupervisorSession, params: Mapping[str, object]) -> Done:
    """Cancel the run, or put away one that has ended: nobody needs its announcement any more."""
    asked = decode(params, Ending)
    run = await _run(session, asked.agent_id)
    ended = await _cancel(session, run, asked.reason)
    session.stream.remove(asked.agent_id)
    session.stream.remove(run.resolved.label)
    engine = session.services.engine
    if run.is_settled and run.requester == session.caller.session:
        await engine.mailbox.acknowledge([announcement_id(run.id)], reader=session.caller.reader)
    try:
        await engine.control.archive(run.id)
    except Conflict:
        # Not over yet: it is archived with all others, after ``archive_after_minutes``.
        return Done(ended)
    return Done({**ended, "status": "archived"})


async def _cancel(session: SupervisorSession, run: Run, reason: str | None) -> Document:
    has_ended = run.is_settled
    if not has_ended:
        run = await session.services.engine.control.cancel(
            run.id, by=session.caller.session, reason=reason
        )
    found = run_building.changed(run, "already ended" if has_ended else "cancelling")
    return {**_names(run), "status": found.status, "outcome": found.outcome}


# -- events -------------------------------------------------------------------------------------


async def subscribe(session: SupervisorSession, params: Mapping[str, object]) -> Done:
    """Push events from now on, or everything behind number ``from`` first."""
    asked = decode(params, Subscribe)
    names = frozenset(one_of("events", name, NAMES) for name in asked.events)
    if asked.agent_id is not None and asked.session is not None:
        raise UsageError("agentId and session exclude each other", details={"field": "session"})
    name = asked.agent_id or asked.session or EVERYTHING
    _require_room(session, name)
    scope = await _scope(session, asked)
    number, is_reset = await session.services.engine.feed.begin(asked.from_)
    subscription = Subscription(scope, names, number, is_replay=asked.from_ is not None)
    result: Document = {
        "subscribed": name,
        "runId": scope.run,
        "seq": number,
        "reset": is_reset,
        "events": sorted(names),
    }
    return Done(result, lambda: session.stream.add(name, subscription))


async def _scope(session: SupervisorSession, asked: Subscribe) -> Scope:
    """Of a label: the supervisor's own runs of that name, also later ones; else one run.

    Raises:
        UsageError: ``session`` is no session key.
    """
    if asked.session is not None:
        if not SESSION.fullmatch(asked.session):
            raise UsageError("session must be a session key", details={"field": "session"})
        return Scope(session=SessionKey(asked.session))
    if asked.agent_id is None:
        return Scope()
    try:
        run = await _run(session, asked.agent_id)
    except NotFound:
        return Scope(label=asked.agent_id, requester=session.caller.session)
    if run.resolved.label == asked.agent_id and run.requester == session.caller.session:
        return Scope(label=asked.agent_id, requester=session.caller.session)
    return Scope(run=run.id)


async def unsubscribe(session: SupervisorSession, params: Mapping[str, object]) -> Done:
    """End one subscription, or all without ``agentId``."""
    asked = decode(params, MaybeOfAgent)
    return Done({"unsubscribed": session.stream.remove(asked.agent_id)})


# -- names --------------------------------------------------------------------------------------


async def _run(session: SupervisorSession, selector: str) -> Run:
    return await find_run(session.services, selector, session.caller)


async def _open_run(session: SupervisorSession, selector: str) -> Run:
    """The run, when it has not ended.

    Raises:
        Conflict: It has; says how.
    """
    run = await _run(session, selector)
    if run.is_settled:
        status_word = run.outcome.status if run.outcome is not None else Status.OK
        raise Conflict(
            f'agent "{run.resolved.label}" has ended: run {run.id} is {run.phase} ({status_word})',
            hint="start it again: create_agent",
        )
    return run


def _unable(run: Run, what: str, *, ability: str) -> Conflict:
    return Conflict(
        f'runtime "{run.resolved.runtime}" {what}: it lacks the ability "{ability}"',
        hint="kill_cc ends it",
    )


def _text(asked: ToAgent) -> str:
    found = asked.message or asked.text
    if found is None or (asked.message and asked.text):
        raise UsageError("message is required, once", details={"field": "message"})
    return found


def _require_room(session: SupervisorSession, name: str) -> None:
    if len(session.stream) >= SUBSCRIPTIONS_MAX and name not in session.stream:
        raise RateLimited(f"at most {SUBSCRIPTIONS_MAX} subscriptions per connection")


def _names(run: Run) -> dict[str, str | RunId]:
    return {"agentId": run.resolved.label, "runId": run.id}


_ACTIONS: Final[Mapping[str, Action]] = {
    "status": status,
    "get_log": get_log,
    "send_message": send_message,
    "send_to_cc": send_to_cc,
    "kill_cc": kill_cc,
    "subscribe": subscribe,
    "unsubscribe": unsubscribe,
    "create_agent": create_agent,
    "destroy_agent": destroy_agent,
    "cancel_turn": cancel_turn,
}
