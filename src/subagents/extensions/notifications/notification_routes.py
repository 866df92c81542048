"""``/v1/notifications/{channel}/test``: whether a person would hear of the daemon's runs."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from subagents.api.calls.auth import Caller
from subagents.api.calls.call import answer, path_part, require_operator
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.services import services_of
from subagents.api.wire.message_answers import ChannelState
from subagents.api.wire.wire_struct import made
from subagents.engine.kernel.threads import DaemonThreads
from subagents.errors import NotFound


async def send_test(request: Request) -> Response:
    """POST /v1/notifications/{channel}/test: send one now; `problem` = it did not get through."""
    from subagents.extensions.notifications.notifier import Notifier  # noqa: PLC0415 - seldom

    services, name = services_of(request), path_part(request, "channel")
    require_operator(Caller.of(request), "a test of notifications")
    followers = services.followers.get("notifications", ())
    channels = {each.name: each for each in followers if isinstance(each, Notifier)}
    if name not in channels:
        raise NotFound(
            f"no channel {name[:40]!r} is known (known: {', '.join(sorted(channels)) or 'none'})",
            hint="one that was configured meanwhile: subagents down --yes && subagents up",
        )
    # It may take half a minute, which nothing else of the daemon waits for.
    threads = DaemonThreads("notification test", threads_max=1)
    try:
        state = await threads(channels[name].test)
    finally:
        threads.close()
    return answer(made(ChannelState, state, to=state.endpoint, problem=state.last_error))


OPERATIONS: Final = {
    ("POST", "/v1/notifications/{channel}/test"): Operation(send_test, answers=(ChannelState,)),
}
ROUTES: Final = routes(OPERATIONS)
PATH_WORDS: Final = {"channel": "A channel of `[notifications.<name>]`."}
