"""One call of the daemon: which run it may touch, what came with it, how it is answered."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Final, TypeVar
from urllib.parse import unquote

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope

from subagents.api.calls.auth import Caller
from subagents.api.calls.services import Services, services_of
from subagents.api.wire.decoding import guess, one_of
from subagents.api.wire.parameters import FLAG_WORDS, Parameter
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId
from subagents.errors import (
    AlreadyRunning,
    Conflict,
    Forbidden,
    NotFound,
    OutcomeUnknown,
    RateLimited,
    SubagentsError,
    Unauthorized,
    Unavailable,
    UsageError,
)

BODY_BYTES_MAX: Final = 1024 * 1024
SPAWN_BODY_BYTES_MAX: Final = 4 * 1024 * 1024
"""A task of 256 KiB can take six times as much when its characters are escaped."""
PLAN_BODY_BYTES_MAX: Final = 64 * 1024 * 1024
"""A plan has up to a thousand tasks."""
DRAIN_BYTES_MAX: Final = 16 * 1024 * 1024
"""How much of a body that is too large is still read, so that its sender hears the answer."""
DEPTH_MAX: Final = 64
"""More than ``max_spawn_depth`` can be, so the walk up a tree ends."""

_IS_SETTLED: Final = "is_settled"

T = TypeVar("T")


class BodyTooLarge(UsageError):
    """The request body is larger than the call allows; nothing was stored."""


class AnswerTooLarge(UsageError):
    """More bytes than one answer may have; the hint says how to read them."""


class RangeNotSatisfiable(UsageError):
    """There are no such bytes."""


_STATUS: Final[Mapping[type[SubagentsError], int]] = {
    BodyTooLarge: 413,
    AnswerTooLarge: 413,
    RangeNotSatisfiable: 416,
    UsageError: 422,
    NotFound: 404,
    Unauthorized: 401,
    RateLimited: 429,
    Forbidden: 403,
    Conflict: 409,
    AlreadyRunning: 409,
    OutcomeUnknown: 502,
    Unavailable: 503,
}


# -- whose run is it ----------------------------------------------------------------------------


async def on_run(request: Request) -> tuple[Services, Caller, Run]:
    """Who calls, and the run that the path's selector names, when the caller may touch it.

    Raises:
        NotFound: No such run.
        Forbidden: It is somebody else's.
    """
    services, caller = services_of(request), Caller.of(request)
    run = await find_run(services, path_part(request, "sel"), caller)
    request.scope.setdefault("state", {})[_IS_SETTLED] = run.is_settled
    return services, caller, run


def is_about_settled_run(scope: Scope) -> bool:
    """Whether the call that was answered named a run that is over."""
    return bool(scope.get("state", {}).get(_IS_SETTLED))


def path_part(request: Request, name: str) -> str:
    """A variable part of the path, with its escapes resolved (``RawPaths`` left them alone).

    Raises:
        UsageError: The escapes are not UTF-8.
    """
    try:
        return unquote(request.path_params[name], errors="strict")
    except UnicodeDecodeError as error:
        raise UsageError("the path must be valid UTF-8") from error


async def find_run(services: Services, selector: str, caller: Caller) -> Run:
    """The run that a selector names, when the caller may touch it; raises as ``on_run`` does."""
    run = await services.engine.queries.run(await resolve(services, selector, caller))
    await require_own(services, run, caller)
    return run


async def resolve(services: Services, selector: str, caller: Caller) -> RunId:
    """The id of the run that a selector names; the caller's own runs come first."""

    async def is_own(run: Run) -> bool:
        try:
            await require_own(services, run, caller)
        except (Forbidden, NotFound):
            return False
        return True

    inbox = services.engine.queries.inbox_of(caller.session)
    may_see = None if caller.is_operator else is_own
    return await services.engine.queries.resolve(selector, inbox, may_see=may_see)


async def plan_id_of(services: Services, selector: str, caller: Caller) -> str:
    """The id of the plan that a selector names; the caller's own plans come first."""
    session = services.engine.queries.inbox_of(caller.session)
    return await services.engine.queries.resolve_plan(
        selector, session, sees_all=caller.is_operator
    )


async def require_own(services: Services, run: Run, caller: Caller) -> None:
    """Refuse somebody else's run; the operator may touch every run.

    Raises:
        Forbidden: The run is not in the caller's tree.
    """
    if caller.is_operator:
        return
    # Whoever asked for a run may also touch what that run spawned, on every level below.
    current = run
    for _ in range(DEPTH_MAX):
        if caller.session == current.requester or caller.session in current.session_keys:
            return
        if current.lineage.requester_run is None:
            break
        current = await services.engine.queries.run(current.lineage.requester_run)
    raise Forbidden(
        f"run {run.id} belongs to another session; {caller.session} can read and touch only the"
        " runs below it",
        guardrail="ownership",
        hint="see yours: subagents list",
    )


async def own_attempt(services: Services, run_id: RunId, caller: Caller) -> Run:
    """The run on whose behalf its worker speaks: report, progress, notify, ask.

    Raises:
        Forbidden: The caller is another run's worker.
        Conflict: The caller is the worker of an earlier attempt, which is over.
    """
    run = await services.engine.queries.run(run_id)
    is_current = caller.run_id == run_id and caller.attempt == len(run.attempts)
    if is_current or caller.is_operator:
        return run
    if caller.session in run.session_keys:
        raise Conflict(
            f"attempt {len(run.attempts)} of run {run.id} is under way; this worker's is over",
            hint="end this process; what it says now changes nothing",
        )
    raise Forbidden(f"only the worker of run {run.id} can speak for it", guardrail="ownership")


def require_operator(caller: Caller, act: str) -> None:
    """Refuse what only a person may do.

    Raises:
        Forbidden: The caller is a worker or speaks for an agent.
    """
    if not caller.is_operator:
        raise Forbidden(f"{act} is for the operator, not for {caller.session}", guardrail="role")


# -- reading ------------------------------------------------------------------------------------


async def body_of(request: Request, *, bytes_max: int = BODY_BYTES_MAX) -> bytes:
    """The request's body.

    Raises:
        BodyTooLarge: Over the limit; what came up to then was thrown away.
    """
    kept = bytearray()
    size = 0
    # Read on for a while above the limit: a client that is still sending does not read the refusal.
    async for chunk in request.stream():
        size += len(chunk)
        if size > bytes_max + DRAIN_BYTES_MAX:
            break  # it never ends: better the connection breaks than that we read for ever
        if size <= bytes_max:
            kept += chunk
    if size > bytes_max:
        raise BodyTooLarge(
            f"the request body must have at most {bytes_max} bytes", details={"max": bytes_max}
        )
    return bytes(kept)


class Query(dict[str, str]):
    """The parameters that were given, by name, and how their declarations read them."""

    def __init__(self, known: Sequence[Parameter], given: Mapping[str, str] | None = None) -> None:
        super().__init__(given or {})
        self._schemas = {str(each): each.schema for each in known}

    def number(self, name: str) -> int:
        """A whole number; absent, its default or else its lowest value.

        Raises:
            UsageError: Not a number, or out of bounds.
        """
        schema = self._schemas[name]
        text = self.get(name)
        low, high = int(schema["minimum"]), int(schema["maximum"])
        if text is None:
            return int(schema.get("default", low))
        return whole_number(name, text, low=low, high=high)

    def flag(self, name: str) -> bool:
        """``1``/``true`` or ``0``/``false``; absent is false.

        Raises:
            UsageError: Anything else.
        """
        text = self.get(name, "0").lower()
        if text not in FLAG_WORDS:
            raise UsageError(f'{name} must be 1 or 0, not "{text[:40]}"', details={"field": name})
        return text in {"1", "true"}

    def choice(self, name: str) -> str:
        """One of the declared words; absent, the default.

        Raises:
            UsageError: Another word; lists those there are.
        """
        schema = self._schemas[name]
        return one_of(name, self[name] if name in self else schema["default"], schema["enum"])

    def choices(self, name: str) -> tuple[str, ...] | None:
        """One declared word, or several with commas between them; None when none was given.

        Raises:
            UsageError: Another word; lists those there are.
        """
        if name not in self:
            return None
        known = self._schemas[name]["items"]["enum"]
        return tuple(one_of(name, each.strip(), known) for each in self[name].split(","))


def query_of(request: Request, known: Sequence[Parameter]) -> Query:
    """The query's parameters, each at most once.

    Raises:
        UsageError: An unknown one, with the nearest known, or one given twice.
    """
    found = Query(known)
    for name, value in request.query_params.multi_items():
        if name not in known:
            raise UsageError(
                f'unknown query parameter "{name}"{guess(name, known)}',
                hint=f"known: {', '.join(known) or 'none'}",
                details={"field": name},
            )
        if name in found:
            raise UsageError(f"{name} is given twice", details={"field": name})
        if "\0" in value:
            raise UsageError(f"{name} must not contain a NUL byte", details={"field": name})
        found[name] = value
    return found


def whole_number(name: str, text: str, *, low: int = 0, high: int) -> int:
    """The number that a parameter or a header of this name says.

    Raises:
        UsageError: Not a number, or outside ``low`` to ``high``.
    """
    # int() alone takes "1_000", " 7 " and digits of every script.
    if not re.fullmatch(r"-?[0-9]{1,18}", text) or not low <= int(text) <= high:
        raise UsageError(
            f'{name} must be a whole number from {low} to {high}, not "{text[:40]}"',
            details={"field": name, "min": low, "max": high},
        )
    return int(text)


# -- answering ----------------------------------------------------------------------------------


def answer(document: msgspec.Struct | Mapping[str, object], *, status: int = 200) -> Response:
    """An answer of the wire, as JSON."""
    content = msgspec.json.encode(document)
    return Response(content, status_code=status, media_type="application/json")


def status_of(error: SubagentsError) -> int:
    """The HTTP status of an error; 500 for a broken promise of ours."""
    for kind in type(error).__mro__:
        if kind in _STATUS:
            return _STATUS[kind]
    return 500


def problem(
    document: Mapping[str, object], status: int, headers: Mapping[str, str] | None = None
) -> Response:
    """An error document as RFC 9457 wants it answered."""
    # RFC 9110 requires it of every 401.
    if status == 401:
        headers = {"WWW-Authenticate": "Bearer", **(headers or {})}
    return Response(
        msgspec.json.encode(document),
        status_code=status,
        headers=headers,
        media_type="application/problem+json",
    )


async def while_connected(
    request: Request,
    work: Coroutine[object, object, T],
    *,
    unwanted: Callable[[T], None] = lambda _: None,
) -> T:
    """Do ``work`` unless the client goes away or the daemon stops first; then it is cancelled.

    Work without a client must not take messages for a reader that is gone. Call it after the body
    was read: what the client sends from then on is its leaving.

    Args:
        request: The client's.
        work: What the client waits for.
        unwanted: Called with a result that came in the moment in which the client went away.

    Raises:
        ClientDisconnect: The client is gone.
        Unavailable: The daemon is stopping; the same call to the next one can succeed.
    """
    working: asyncio.Task[T] = asyncio.create_task(work)
    leaving = asyncio.create_task(disconnected(request.receive))
    stopping = asyncio.create_task(services_of(request).stopping.wait())
    helpers = (leaving, stopping)
    try:
        await asyncio.wait({working, *helpers}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        # Before they are cancelled: a cancelled task is done, too.
        is_gone = leaving.done()
        for task in (working, *helpers):
            task.cancel()
        await asyncio.gather(working, *helpers, return_exceptions=True)
    if is_gone:
        # It may have ended before it could be cancelled; then what it took has to be given back.
        if not working.cancelled() and working.exception() is None:
            unwanted(working.result())
        raise ClientDisconnect
    if not working.cancelled():
        return working.result()
    raise Unavailable("the daemon is stopping", hint="call again: the next one continues")


async def disconnected(receive: Receive) -> None:
    """Return when the client has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass
