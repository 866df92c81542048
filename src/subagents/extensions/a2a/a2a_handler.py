"""The methods of A2A over runs: nothing is kept besides them, so a restart loses no task."""

import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Final, NoReturn

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.types import a2a_pb2 as wire
from a2a.utils import errors as a2a_errors
from starlette.requests import Request

from subagents.api.answers import run_questions
from subagents.api.calls.auth import Caller, note_if_refused
from subagents.api.calls.call import path_part, require_own
from subagents.api.calls.services import Services, services_of
from subagents.api.wire.decoding import decode
from subagents.api.wire.requests import RespondBody
from subagents.domain.rules.idempotency import digest_of
from subagents.domain.rules.parameter_checks import check_spec
from subagents.domain.run.outcome import Status
from subagents.domain.run.run import SETTLED, Phase, Run
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import RunId, replace
from subagents.domain.transcript.feed_entry import NAMES
from subagents.engine.runs.feed import Follower, Scope
from subagents.engine.runs.sessions import STEER
from subagents.errors import Conflict, Forbidden, NotFound, SubagentsError, UsageError
from subagents.extensions.a2a import a2a_tasks
from subagents.extensions.a2a.run_pushes import PushTarget, RunPushes, pushes_in
from subagents.ports import RunFilter

RESULT_BYTES_MAX: Final = 4 * 1024 * 1024
"""The longest result in an artifact; the end of a longer one is left out."""
PAGE: Final = 50
PAGE_MAX: Final = 100
PAGE_TOKEN: Final = re.compile(r"[0-9]{0,15}")
"""Where the next page begins, as ``nextPageToken`` said it; empty = at the first."""
OPEN_MAX: Final = 10_000
"""How many of one session's open tasks are looked at for a list by state."""
LIVE: Final = tuple(each for each in Phase if each not in SETTLED)
LOOK_S: Final = 15.0
"""How long a wait for news lasts before it looks whether the daemon is stopping."""
KEY: Final = "a2a:"
"""What precedes a message's id in its idempotency key."""
_WRITTEN: Final = {
    "task": "message.parts",
    "tags": "message.contextId",
    "idempotencyKey": "message.messageId",
}
"""What a client calls the parameters of its run."""
_EXCHANGE: Final = "exchange"
_ENDED: Final = {
    wire.TaskState.TASK_STATE_COMPLETED: (Status.OK, Status.PARTIAL),
    wire.TaskState.TASK_STATE_CANCELED: (Status.CANCELLED,),
    wire.TaskState.TASK_STATE_FAILED: (Status.ERROR, Status.TIMEOUT, Status.LOST),
}
_STOPS: Final = frozenset(
    {
        *_ENDED,
        wire.TaskState.TASK_STATE_INPUT_REQUIRED,
    }
)
"""Where a client that waits is answered: nothing happens before it does something."""


@dataclass(frozen=True, slots=True)
class _Exchange:
    request: Request
    services: Services
    caller: Caller
    agent_id: str


class ExchangeBuilder(DefaultServerCallContextBuilder):
    """Hands the request's caller and agent to the handler."""

    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        context.state[_EXCHANGE] = _Exchange(
            request, services_of(request), Caller.of(request), path_part(request, "agent")
        )
        return context


class RunHandler(RequestHandler):
    """Each method as the call of ours that it is."""

    async def on_message_send(
        self, params: wire.SendMessageRequest, context: ServerCallContext
    ) -> wire.Task:
        with _translated(context) as exchange:
            run = await _take(exchange, params)
            if not params.configuration.return_immediately:
                run = await _rest(exchange.services, run, _STOPS)
            return await _task(exchange, run, _history(params.configuration))

    async def on_message_send_stream(
        self, params: wire.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[wire.Task | wire.TaskStatusUpdateEvent | wire.TaskArtifactUpdateEvent]:
        with _translated(context) as exchange:
            run = await _take(exchange, params)
            async for event in _stream(exchange, run.id):
                yield event

    async def on_subscribe_to_task(
        self, params: wire.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[wire.Task | wire.TaskStatusUpdateEvent | wire.TaskArtifactUpdateEvent]:
        with _translated(context) as exchange:
            run = await _run(exchange, params.id)
            if run.is_settled:
                raise a2a_errors.UnsupportedOperationError(
                    f"task {run.id} has ended: GetTask tells its result"
                )
            async for event in _stream(exchange, run.id):
                yield event

    async def on_get_task(
        self, params: wire.GetTaskRequest, context: ServerCallContext
    ) -> wire.Task:
        with _translated(context) as exchange:
            history = _history(params)
            return await _task(exchange, await _run(exchange, params.id), history)

    async def on_list_tasks(
        self, params: wire.ListTasksRequest, context: ServerCallContext
    ) -> wire.ListTasksResponse:
        with _translated(context) as exchange:
            return await _listed(exchange, params)

    async def on_cancel_task(
        self, params: wire.CancelTaskRequest, context: ServerCallContext
    ) -> wire.Task:
        with _translated(context) as exchange:
            run = await _run(exchange, params.id)
            if run.is_settled:
                raise a2a_errors.TaskNotCancelableError(f"task {run.id} has ended")
            by = exchange.caller.session
            await exchange.services.engine.control.cancel(run.id, by=by, reason="CancelTask")
            return await _task(exchange, await _rest(exchange.services, run, frozenset(_ENDED)))

    async def on_create_task_push_notification_config(
        self, params: wire.TaskPushNotificationConfig, context: ServerCallContext
    ) -> wire.TaskPushNotificationConfig:
        with _translated(context) as exchange:
            target = _target(_pushes(exchange), params)
            run = await _run(exchange, params.task_id)
            if run.is_settled:
                raise a2a_errors.UnsupportedOperationError(
                    f"task {run.id} has ended: GetTask tells its result"
                )
            return await _push(exchange, run, target)

    async def on_get_task_push_notification_config(
        self, params: wire.GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> wire.TaskPushNotificationConfig:
        with _translated(context) as exchange:
            pushes = _pushes(exchange)
            run = await _run(exchange, params.task_id)
            for target in pushes.of(run.id):
                if target.id == params.id:
                    return _config(run.id, target)
            raise a2a_errors.TaskNotFoundError(f"nothing {params.id[:100]!r} is pushed of {run.id}")

    async def on_list_task_push_notification_configs(
        self, params: wire.ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> wire.ListTaskPushNotificationConfigsResponse:
        with _translated(context) as exchange:
            pushes = _pushes(exchange)
            run = await _run(exchange, params.task_id)
            found = [_config(run.id, each) for each in pushes.of(run.id)]
            return wire.ListTaskPushNotificationConfigsResponse(configs=found)

    async def on_delete_task_push_notification_config(
        self, params: wire.DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        with _translated(context) as exchange:
            pushes = _pushes(exchange)
            run = await _run(exchange, params.task_id)
            await exchange.services.off_loop(lambda: pushes.remove(run.id, params.id))

    async def on_get_extended_agent_card(self, *_: object, **__: object) -> NoReturn:
        raise a2a_errors.ExtendedAgentCardNotConfiguredError


# -- what a message comes to ----------------------------------------------------------------------


async def _take(exchange: _Exchange, params: wire.SendMessageRequest) -> Run:
    """The run that a message begins, answers or steers."""
    _history(params.configuration)
    target = None
    if params.configuration.HasField("task_push_notification_config"):
        # Before anything begins: a client that waits for a push would wait for ever.
        target = _target(_pushes(exchange), params.configuration.task_push_notification_config)
    message = params.message
    text = a2a_tasks.text_of(message)
    if message.task_id:
        run = await _run(exchange, message.task_id)
        await _go_on(exchange, run, message, text)
        run = await exchange.services.engine.queries.run(run.id)
    else:
        run = await _begin(exchange, message, text)
    if target is not None:
        await _push(exchange, run, target)
    return run


async def _begin(exchange: _Exchange, message: wire.Message, text: str) -> Run:
    services, caller = exchange.services, exchange.caller
    agent = services.config_known().settings.agent(exchange.agent_id)
    config = await services.config_in(agent.cwd, is_operator=False)
    context = (f"{a2a_tasks.CONTEXT_TAG}{message.context_id}",) if message.context_id else ()
    spec = RunSpec(
        task=text,
        agent_id=exchange.agent_id,
        tags=context,
        idempotency_key=_key_of(message),
        # It is read here: nobody is to be pushed.
        expects_completion_message=False,
    )
    _check(spec)
    with config.explaining():
        receipt = await services.engine.spawner.spawn(spec, caller.context(config.settings))
    return receipt.run


async def _go_on(exchange: _Exchange, run: Run, message: wire.Message, text: str) -> None:
    services, caller, key = exchange.services, exchange.caller, _key_of(message)
    spec = RunSpec(task=text, continues=run.id, idempotency_key=key)
    _check(spec)
    keys, owner = services.engine.spawner.keys, services.engine.queries.inbox_of(caller.session)
    known = None if key is None else keys.known(owner, key)
    if known is not None and known.run_id == run.id:
        return  # again, from a client that lost our answer: it must not answer the next question
    if run.is_settled:
        raise a2a_errors.UnsupportedOperationError(
            f"task {run.id} has ended: send the message without its taskId, for a new one"
        )
    asked = a2a_tasks.question_of(run)
    if asked is not None:
        body = decode({"response": text}, RespondBody)
        found = await run_questions.respond(services, caller, asked.id, body)
        if found.status != run_questions.ANSWERED_BEFORE:
            if key is not None:
                keys.remember(owner, key, run.id, digest=digest_of(spec))
            return
    ceiling = caller.ceiling
    await services.send(
        run, text, by=caller.session, mode=STEER, key=key, is_operator=False, ceiling=ceiling
    )


def _key_of(message: wire.Message) -> str | None:
    return f"{KEY}{message.message_id}" if message.message_id else None


def _check(spec: RunSpec) -> None:
    """Refuse what is out of its bounds, by the names that A2A has for it."""
    check_spec(spec, field=lambda parameter: _WRITTEN.get(parameter.name, parameter.name))


# -- pushing --------------------------------------------------------------------------------------


def _pushes(exchange: _Exchange) -> RunPushes:
    """Where addresses are kept.

    Raises:
        PushNotificationNotSupportedError: The user lets nothing be pushed.
    """
    found = pushes_in(exchange.services)
    if found is None:
        raise a2a_errors.PushNotificationNotSupportedError
    return found


def _target(pushes: RunPushes, config: wire.TaskPushNotificationConfig) -> PushTarget:
    """What a client wants pushed.

    Raises:
        UsageError: Nothing may be sent to its address.
    """
    if not pushes.allows(config.url):
        raise UsageError(
            f"nothing is pushed to {config.url[:200]!r}",
            hint="who runs this daemon may allow it in its configuration: [a2a] push_urls",
            details={"field": "url"},
        )
    auth = config.authentication
    authorization = f"{auth.scheme} {auth.credentials}" if auth.credentials else ""
    for field, text in (("token", config.token), ("authentication", authorization)):
        if not (text.isascii() and text.isprintable()):
            raise UsageError(
                f"{field} goes into a header, and holds something other than printable ASCII",
                details={"field": field},
            )
    return PushTarget(id=config.id, url=config.url, token=config.token, authorization=authorization)


async def _push(
    exchange: _Exchange, run: Run, target: PushTarget
) -> wire.TaskPushNotificationConfig:
    """From the state on that this call's answer has: what comes after it is pushed."""
    told, _ = a2a_tasks.pushed(run)
    kept = replace(target, id=target.id or str(run.id), told="" if run.is_settled else told)
    pushes = _pushes(exchange)
    await exchange.services.off_loop(lambda: pushes.put(run.id, kept))
    return _config(run.id, kept)


def _config(run_id: RunId, target: PushTarget) -> wire.TaskPushNotificationConfig:
    found = wire.TaskPushNotificationConfig(
        task_id=run_id, id=target.id, url=target.url, token=target.token
    )
    scheme, _, credentials = target.authorization.partition(" ")
    if scheme:
        found.authentication.scheme, found.authentication.credentials = scheme, credentials
    return found


# -- looking --------------------------------------------------------------------------------------


async def _run(exchange: _Exchange, task_id: str) -> Run:
    """The run of a task, when it is the caller's to see and this agent's.

    Raises:
        TaskNotFoundError: It is not, or there is none such.
    """
    try:
        run = await exchange.services.engine.queries.run(RunId(task_id))
        await require_own(exchange.services, run, exchange.caller)
    except (NotFound, Forbidden) as error:
        if isinstance(error, Forbidden):
            note_if_refused(exchange.request, error)
        raise a2a_errors.TaskNotFoundError(f"no task {task_id[:100]}") from error
    return run


async def _task(exchange: _Exchange, run: Run, history: int | None = None) -> wire.Task:
    return a2a_tasks.task_of(run, await _result(exchange.services, run), history=history)


def _history(
    params: wire.SendMessageConfiguration | wire.GetTaskRequest | wire.ListTasksRequest,
) -> int | None:
    """How many messages of a task are asked for; None = all.

    Raises:
        UsageError: Fewer than none.
    """
    if not params.HasField("history_length"):
        return None
    if params.history_length < 0:
        raise UsageError("historyLength must be 0 or more", details={"field": "historyLength"})
    return params.history_length


async def _result(services: Services, run: Run) -> str | None:
    """The whole result, up to ``RESULT_BYTES_MAX``; None = it has not ended, or gave none."""
    if not run.is_settled:
        return None
    pages = services.engine.results.pages(run, offset=0, limit=RESULT_BYTES_MAX)
    return b"".join([page async for page in pages]).decode(errors="ignore") or None


async def _listed(exchange: _Exchange, params: wire.ListTasksRequest) -> wire.ListTasksResponse:
    if not PAGE_TOKEN.fullmatch(params.page_token):
        raise UsageError("pageToken is none of ours", details={"field": "pageToken"})
    offset = int(params.page_token or 0)
    size = params.page_size if params.HasField("page_size") else PAGE
    if not 1 <= size <= PAGE_MAX:
        raise UsageError(f"pageSize must be 1 to {PAGE_MAX}", details={"field": "pageSize"})
    history = _history(params)
    where = RunFilter(
        requester=exchange.services.engine.queries.inbox_of(exchange.caller.session),
        agent_id=exchange.agent_id,
        tags=(f"{a2a_tasks.CONTEXT_TAG}{params.context_id}",) if params.context_id else (),
        outcomes=_ENDED.get(params.status),
        active_since_ms=params.status_timestamp_after.ToMilliseconds() or None,
        limit=size,
        offset=offset,
    )
    queries = exchange.services.engine.queries
    if not params.status or params.status in _ENDED:
        page = await queries.page(where)
        # The protocol has no "at least so many": a long list's size is where counting ended.
        runs, total, more = page.runs, page.total.number, page.has_more
    else:
        # Whether it works or waits for words is no column: the open ones are looked at.
        live = replace(where, phases=LIVE, limit=OPEN_MAX, offset=0)
        open_ones = await queries.runs(live)
        fitting = tuple(each for each in open_ones if a2a_tasks.state_of(each) == params.status)
        runs = fitting[where.offset : where.offset + size]
        total, more = len(fitting), len(fitting) > where.offset + size
    found = wire.ListTasksResponse(
        page_size=size,
        total_size=total,
        next_page_token=str(where.offset + len(runs)) if more else "",
    )
    for run in runs:
        if params.include_artifacts:
            found.tasks.append(await _task(exchange, run, history))
        else:
            found.tasks.append(a2a_tasks.task_of(run, None, history=history))
    return found


async def _stream(
    exchange: _Exchange, run_id: RunId
) -> AsyncIterator[wire.Task | wire.TaskStatusUpdateEvent | wire.TaskArtifactUpdateEvent]:
    """The task, then each change of its state or words, and its result before the end."""
    told: wire.TaskStatus | None = None
    async for run in _news(exchange.services, run_id):
        status = a2a_tasks.status_of(run)
        if told is None:
            yield await _task(exchange, run)
        elif (status.state, status.message.parts) != (told.state, told.message.parts):
            result = await _result(exchange.services, run)
            if result is not None:
                yield a2a_tasks.artifact_update(run, result)
            yield a2a_tasks.status_update(run)
        told = status
        if status.state in _STOPS:
            return


async def _rest(services: Services, run: Run, states: frozenset[wire.TaskState]) -> Run:
    """The run once it is in one of the states, or as it is when the daemon stops."""
    async for now in _news(services, run.id):
        run = now
        if a2a_tasks.state_of(run) in states:
            break
    return run


async def _news(services: Services, run_id: RunId) -> AsyncIterator[Run]:
    """The run as it is, and again whenever something happened to it, until it has ended.

    It stops also when the daemon does: a client comes again with what it knows.
    """
    feed = services.engine.feed
    number, _ = await feed.begin(None)
    follower = Follower(feed, after=number, scope=Scope(run=run_id), names=frozenset(NAMES))
    while True:
        run = await services.engine.queries.run(run_id)
        yield run
        if run.is_settled:
            return
        while not await follower.more(LOOK_S):
            if services.stopping.is_set():
                return


@contextlib.contextmanager
def _translated(context: ServerCallContext) -> Iterator[_Exchange]:
    """The call; our errors as those of A2A, with the way out in their words."""
    exchange: _Exchange = context.state[_EXCHANGE]
    try:
        yield exchange
    except SubagentsError as error:
        note_if_refused(exchange.request, error)
        words = error.message if error.hint is None else f"{error.message} ({error.hint})"
        match error:
            case UsageError():
                raise a2a_errors.InvalidParamsError(words) from error
            case Forbidden() | Conflict():
                raise a2a_errors.UnsupportedOperationError(words) from error
            case _:
                raise a2a_errors.InternalError(words) from error
