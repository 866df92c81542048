"""The agents' tools over plain HTTP: ``GET /v1/tools`` and ``POST /v1/tools/{name}``.

The same tools as over MCP, for clients without it: our Python library, a gateway, curl. A tool that
refuses answers 200 with ``isError``, as over MCP; only a call that reached no tool is a problem
document.

An answer names the messages it hands over in ``offered``. They are leased to the reader until it
acknowledges them (``POST /v1/inbox/ack``); a client that says
``X-Subagents-Ack: auto`` consumes them by reading the answer (docs/decisions/0015).
"""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from subagents.api.calls.auth import Caller
from subagents.api.calls.call import (
    SPAWN_BODY_BYTES_MAX,
    answer,
    body_of,
    path_part,
    query_of,
    while_connected,
)
from subagents.api.calls.hand_over import is_taken
from subagents.api.calls.operation import Anything, Operation, routes
from subagents.api.calls.services import Services, services_of
from subagents.api.wire.daemon_answers import ToolAnswer, ToolDescription, ToolList
from subagents.api.wire.decoding import one_of, parse_object, texts_in
from subagents.api.wire.wire_struct import made
from subagents.domain.rules.parameter_checks import check_name
from subagents.domain.run.spec import IDEMPOTENCY_KEY_CHARS_MAX
from subagents.domain.run.values import MessageId
from subagents.errors import UsageError

if TYPE_CHECKING:
    from subagents.api.tools.tool import Tool

ACKS: Final = ("explicit", "auto")
# A call's id becomes an idempotency key, with the place of each run of a batch behind it.
CALL_ID_CHARS_MAX: Final = IDEMPOTENCY_KEY_CHARS_MAX - 10


async def list_tools(request: Request) -> Response:
    """GET /v1/tools: the tools that the caller is shown, with their tool_schemas."""
    from subagents.api.tools.tool_registry import visible  # noqa: PLC0415 - as in use_tool

    services, caller = services_of(request), Caller.of(request)
    query_of(request, ())
    return answer(ToolList(tools=[_described(tool) for tool in visible(services, caller)]))


def _described(tool: "Tool") -> ToolDescription:
    from subagents.api.tools.tool_schemas import OUTPUTS  # noqa: PLC0415 - as in use_tool

    return ToolDescription(
        name=tool.name,
        description=tool.description,
        audience=tool.audience,
        input_schema=dict(tool.schema),
        output_schema=dict(OUTPUTS[tool.name]),
        annotations=tool.hints,
    )


async def use_tool(request: Request) -> Response:
    """POST /v1/tools/{name}: call one; the body is its arguments, nothing is the empty object."""
    # A tenth of a daemon's start, for agents alone.
    from subagents.api.tools.tool import Call  # noqa: PLC0415
    from subagents.api.tools.tool_registry import call_tool  # noqa: PLC0415

    services, caller = services_of(request), Caller.of(request)
    query_of(request, ())
    ack = one_of("X-Subagents-Ack", request.headers.get("x-subagents-ack", "explicit"), ACKS)
    if ack == "auto" and "x-subagents-reader" not in request.headers:
        # Else two calls of one session at once would both be handed the same result.
        caller = replace(caller, reader=f"tools-{uuid.uuid4().hex}")
    body = await body_of(request, bytes_max=SPAWN_BODY_BYTES_MAX)
    arguments = parse_object(body)
    for field, text in texts_in(arguments, ""):
        _check_utf8(field, text)
    call = Call(services=services, caller=caller, arguments=arguments, call_id=_call_id_of(request))
    found = await while_connected(
        request,
        call_tool(path_part(request, "name"), call),
        unwanted=lambda found: services.engine.mailbox.release(found.offered, reader=caller.reader),
    )
    await services.engine.mailbox.note_returned(found.offered, session=caller.session)
    content = msgspec.json.encode(made(ToolAnswer, found))
    if ack == "auto" and found.offered:
        return Handover(content, services, caller, found.offered)
    return Response(content, media_type="application/json")


def _check_utf8(field: str, text: str) -> None:
    """Refuse what no answer could quote.

    Raises:
        UsageError: Half a surrogate pair.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{field} must be valid UTF-8", details={"field": field}) from error


def _call_id_of(request: Request) -> str | None:
    call_id = request.headers.get("x-subagents-call-id")
    if call_id is not None:
        check_name("X-Subagents-Call-Id", call_id, chars_max=CALL_ID_CHARS_MAX)
    return call_id


class Handover(Response):
    """An answer whose messages are consumed once it was read, and given back when it was not."""

    media_type = "application/json"

    def __init__(
        self, content: bytes, services: Services, caller: Caller, offered: Sequence[MessageId]
    ) -> None:
        super().__init__(content)
        self._services = services
        self._caller = caller
        self._offered = offered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reader, services = self._caller.reader, self._services
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            # Held open until the messages are consumed: the end of an answer says that they are.
            await send(_piece(bytes(self.body)))
            if await is_taken(scope, receive, services.stopping):
                await services.engine.mailbox.acknowledge(self._offered, reader=reader)
                self._offered = ()
            await send(_piece(b"", is_last=True))
        finally:
            services.engine.mailbox.release(self._offered, reader=reader)


def _piece(data: bytes, *, is_last: bool = False) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": not is_last}


OPERATIONS: Final = {
    ("GET", "/v1/tools"): Operation(list_tools, answers=(ToolList,)),
    ("POST", "/v1/tools/{name}"): Operation(
        use_tool,
        body=Anything,
        headers=("X-Subagents-Ack", "X-Subagents-Call-Id"),
        answers=(ToolAnswer,),
    ),
}
ROUTES: Final = routes(OPERATIONS)
