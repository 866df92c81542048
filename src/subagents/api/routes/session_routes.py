"""Sessions and threads: ``/v1/runs/{sel}/send``, ``/interrupt`` and ``/v1/threads/…``.

See docs/decisions/0024.
"""

from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from subagents.api.answers import run_building
from subagents.api.calls.auth import Caller
from subagents.api.calls.call import answer, body_of, on_run, path_part, require_operator
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.services import Services, services_of
from subagents.api.wire import requests as wire
from subagents.api.wire.decoding import one_of
from subagents.api.wire.run_answers import RunState, SentMessage
from subagents.domain.rules.parameter_checks import check_name, check_task
from subagents.domain.run.run import Run
from subagents.domain.run.spec import IDEMPOTENCY_KEY_CHARS_MAX, TASK_BYTES_MAX
from subagents.domain.run.values import RunId
from subagents.engine.runs.sessions import EITHER, MODES
from subagents.errors import NotFound

TEXT_CHARS_MAX: Final = TASK_BYTES_MAX
"""Its bytes are counted where it becomes a task; a live turn takes 4,000 characters."""
KEY_CHARS_MAX: Final = IDEMPOTENCY_KEY_CHARS_MAX - 64
"""The longest message id of a thread: the thread's name goes before it."""

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=TEXT_CHARS_MAX)]


class SendBody(wire.SteerBody, frozen=True):
    message: Text
    mode: str = EITHER
    """``either``, ``steer`` (only to a run at work) or ``followup`` (not into its present turn)."""
    idempotency_key: str | None = None


class ThreadBody(wire.Body, frozen=True):
    text: Text
    message_id: str | None = None
    """The other side's own id: the same one twice is one message."""


async def send(request: Request) -> Response:
    """POST /v1/runs/{sel}/send: a message for the session of a run, whoever works in it now."""
    services, caller, run = await on_run(request)
    body = wire.parse_body(await body_of(request), SendBody)
    mode = one_of("mode", body.mode, (EITHER, *MODES))
    if body.idempotency_key is not None:
        check_name("idempotencyKey", body.idempotency_key, chars_max=IDEMPOTENCY_KEY_CHARS_MAX)
    sent = await services.send(
        run,
        body.message,
        by=caller.session,
        mode=mode,
        key=body.idempotency_key,
        is_operator=caller.is_operator,
        ceiling=caller.ceiling,
        added=body.added,
    )
    return answer(run_building.sent(sent))


async def interrupt(request: Request) -> Response:
    """POST /v1/runs/{sel}/interrupt: end its turn; what it has so far is its partial result.

    With ``after`` it is planned, also over a restart; until then it can be taken back, and nothing
    comes of it when the turn has ended by then.
    """
    services, caller, run = await on_run(request)
    body = wire.parse_body(await body_of(request), wire.CancelBody)
    run = await services.engine.control.interrupt(
        run.id, by=caller.session, after_ms=body.after_ms(), reason=body.reason
    )
    return answer(run_building.changed(run, "planned" if run.planned else "interrupting"))


async def withdraw_interrupt(request: Request) -> Response:
    """DELETE /v1/runs/{sel}/interrupt: take a planned interrupt back; harmless where none is."""
    services, caller, run = await on_run(request)
    run = await services.engine.control.withdraw_cancel(run.id, by=caller.session)
    return answer(run_building.changed(run, "not interrupted"))


async def thread_message(request: Request) -> Response:
    """POST /v1/threads/{thread}/messages: what somebody wrote in the conversation outside.

    It is put into the live turn of the thread's session, or starts the run that continues it.
    The answer comes by the courier that the thread's agent is bound to.
    """
    services, caller = services_of(request), Caller.of(request)
    require_operator(caller, "writing into a thread")
    name = path_part(request, "thread")
    body = wire.parse_body(await body_of(request), ThreadBody)
    key = body.message_id
    if key is not None:
        check_name("messageId", key, chars_max=KEY_CHARS_MAX)
    run = await _first_run(services, name)
    check_task(body.text, field="text")
    sent = await services.send(
        run,
        body.text,
        by=run.requester,
        mode=EITHER,
        key=None if key is None else f"thread:{run.id}:{key}",
        is_operator=True,
    )
    # 202: what comes of the message is answered later, by a courier.
    return answer(run_building.sent(sent), status=200 if sent.repeated else 202)


async def _first_run(services: Services, name: str) -> Run:
    """The run whose id is the thread's.

    Raises:
        NotFound: No session is bound to a thread of that name.
    """
    try:
        run = await services.engine.queries.run(RunId(name))
    except NotFound:
        run = None
    # The thread is named by the first run of its session; the later ones are no names for it.
    if run is None or run_building.thread_id(run) != name:
        raise NotFound(
            f'no thread "{name[:80]}"',
            hint="a thread's id is in the receipt of a spawn with thread=true (threadId)",
        )
    return run


OPERATIONS: Final = {
    ("POST", "/v1/runs/{sel}/send"): Operation(send, body=SendBody, answers=(SentMessage,)),
    ("POST", "/v1/runs/{sel}/interrupt"): Operation(
        interrupt, body=wire.CancelBody, answers=(RunState,)
    ),
    ("DELETE", "/v1/runs/{sel}/interrupt"): Operation(withdraw_interrupt, answers=(RunState,)),
    ("POST", "/v1/threads/{thread}/messages"): Operation(
        thread_message, body=ThreadBody, status=202, answers=(SentMessage,)
    ),
}
ROUTES: Final = routes(OPERATIONS)
