"""The place's side of attempts that other nodes decide about: the same runtimes, asked from afar.

Served on the node door only, to nodes of the cluster. Nothing here decides, and nothing here is
needed for a worker to go on: the door may close at any moment.
"""

import asyncio
import contextlib
import errno
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Final

import msgspec

from subagents.domain.run.signals import Signal
from subagents.domain.run.values import AttemptId, replace
from subagents.domain.run.worker_output import OutputBatch
from subagents.errors import RuntimeUnavailable, SubagentsError, UsageError, lack_of
from subagents.extensions.cluster.node_ports import LACK, NodeAnswer
from subagents.extensions.cluster.remote.attempt_calls import (
    AttemptCall,
    WatchLine,
    decode_call,
    encode,
)
from subagents.extensions.cluster.remote.slots import Slots
from subagents.ports import (
    AttemptRef,
    Freezable,
    Launch,
    LongResult,
    OffLoop,
    Permitting,
    Runtime,
    Tidied,
)

log = logging.getLogger(__name__)

QUIET_S: Final = 5.0
"""How long a watch may have nothing to say before it says that it is there."""
REFUSED: Final = 409
NOT_NOW: Final = 503


class AttemptHost:
    """Performs calls of owners on the runtimes of this node: ``POST /node/v1/attempts/<name>``.

    Args:
        runtimes: By name.
        slots: What is free here.
        off_loop: Reads long results.
        env: What a worker here must be told otherwise than at its owner: where our socket is.
    """

    def __init__(
        self,
        runtimes: Mapping[str, Runtime],
        slots: Slots,
        off_loop: OffLoop,
        env: Mapping[str, str],
    ) -> None:
        self._runtimes, self._slots = runtimes, slots
        self._off_loop, self._env = off_loop, env
        self._watches: dict[AttemptId, asyncio.Event] = {}

    async def call(self, name: str, body: bytes) -> NodeAnswer:
        """Answer one call; an error is answered, too, as its document."""
        try:
            perform = _CALLS.get(name)
            if perform is None:
                raise UsageError(f"a node of this version knows no call {name!r} about attempts")
            call = _decoded(body)
            return NodeAnswer(200, encode(await perform(self, self._runtime(call), call)))
        except SubagentsError as error:
            return refused(error)

    async def watch(self, body: bytes) -> NodeAnswer | AsyncGenerator[bytes, None]:
        """The lines of a watch as they come, or why there is none.

        Of two that watch one attempt the later one does: an owner that was frozen or cut off may
        not know yet that it is none any more.
        """
        try:
            call = _decoded(body)
            runtime, ref = self._runtime(call), _ref(call)
        except SubagentsError as error:
            return refused(error)
        return self._lines(runtime, ref, call)

    async def _lines(
        self, runtime: Runtime, ref: AttemptRef, call: AttemptCall
    ) -> AsyncGenerator[bytes, None]:
        earlier, replaced = self._watches.get(ref.attempt_id), asyncio.Event()
        self._watches[ref.attempt_id] = replaced
        if earlier is not None:
            earlier.set()
        watching = runtime.watch(ref, cursor=call.cursor, positions=call.positions)
        try:
            async for line in _with_signs_of_life(self._told(watching, call), replaced):
                yield line
        except Exception as error:
            log.exception("watching %s for its owner failed", ref.attempt_id)
            yield _line(WatchLine(error=str(error) or type(error).__name__))
        finally:
            if self._watches.get(ref.attempt_id) is replaced:
                del self._watches[ref.attempt_id]
            if isinstance(watching, AsyncGenerator):
                await watching.aclose()

    async def _told(
        self,
        watching: AsyncIterator[tuple[Signal | OutputBatch | LongResult, int]],
        call: AttemptCall,
    ) -> AsyncGenerator[bytes, None]:
        async for seen, cursor in watching:
            match seen:
                case LongResult():
                    pieces = await self._off_loop(partial(seen.pieces, call.result_bytes_max))
                    while (piece := await self._off_loop(lambda: next(pieces, None))) is not None:  # noqa: B023
                        yield _line(WatchLine(piece=piece))
                    yield _line(WatchLine(long=seen.seen, cursor=cursor))
                case OutputBatch():
                    yield _line(WatchLine(batch=seen, cursor=cursor))
                case _:
                    yield _line(WatchLine(signal=seen, cursor=cursor))

    def _runtime(self, call: AttemptCall) -> Runtime:
        runtime = self._runtimes.get(call.runtime)
        if runtime is None:
            raise RuntimeUnavailable(f'runtime "{call.runtime}" is not available here')
        return runtime

    async def start(self, runtime: Runtime, call: AttemptCall) -> object:
        """Start one in a slot of ours."""
        launch = _launch(call)
        with self._slots.starting(launch):
            return await runtime.start(replace(launch, env={**launch.env, **self._env}))

    async def resume(self, runtime: Runtime, call: AttemptCall) -> object:
        """Begin a further turn of one."""
        ref = _ref(call)
        with self._slots.resuming(ref, ref.turns):
            return await runtime.resume(ref, call.message, env={**call.env, **self._env})


async def _permit(runtime: Runtime, call: AttemptCall) -> None:
    if isinstance(runtime, Permitting):
        await runtime.permit(_ref(call), call.key, allow=call.allow, lasting=call.lasting)


async def _tidy(runtime: Runtime, call: AttemptCall) -> None:
    if isinstance(runtime, Tidied):
        await runtime.tidy(_ref(call))
    else:
        await runtime.discard(_ref(call), cursor=0, positions={}, ended=True)


async def _freeze(runtime: Runtime, call: AttemptCall, *, is_frozen: bool) -> None:
    if isinstance(runtime, Freezable):
        await (runtime.freeze if is_frozen else runtime.thaw)(_ref(call))


async def _with_signs_of_life(
    lines: AsyncGenerator[bytes, None], replaced: asyncio.Event
) -> AsyncGenerator[bytes, None]:
    """The lines, and an empty one whenever there was none for ``QUIET_S``; ends when replaced."""
    ended = asyncio.ensure_future(replaced.wait())
    coming: asyncio.Future[bytes | None] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(lines, None))
            waited_for: set[asyncio.Future[object]] = {coming, ended}  # type: ignore[arg-type]  # invariant
            done, _ = await asyncio.wait(
                waited_for, timeout=QUIET_S, return_when=asyncio.FIRST_COMPLETED
            )
            if ended in done:
                return
            if coming not in done:
                yield b"\n"
                continue
            line, coming = coming.result(), None
            if line is None:
                return
            yield line
    finally:
        ended.cancel()
        if coming is not None:
            coming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await coming
        await lines.aclose()


_CALLS: Final[Mapping[str, Callable[[AttemptHost, Runtime, AttemptCall], Awaitable[object]]]] = {
    "start": AttemptHost.start,
    "resume": AttemptHost.resume,
    "discard": lambda _, there, call: there.discard(
        _ref(call), cursor=call.cursor, positions=call.positions, ended=call.ended
    ),
    "stop": lambda _, there, call: there.stop(_ref(call), grace_s=call.grace_s),
    "steer": lambda _, there, call: there.steer(_ref(call), call.message, key=call.key),
    "permit": lambda _, there, call: _permit(there, call),
    "interrupt": lambda _, there, call: there.interrupt(_ref(call), key=call.key),
    "tidy": lambda _, there, call: _tidy(there, call),
    "forget": lambda _, there, call: there.forget(_ref(call)),
    "freeze": lambda _, there, call: _freeze(there, call, is_frozen=True),
    "thaw": lambda _, there, call: _freeze(there, call, is_frozen=False),
}


def _decoded(body: bytes) -> AttemptCall:
    try:
        return decode_call(body)
    except msgspec.DecodeError as error:
        raise UsageError(f"not a call about an attempt: {error}") from error


def _ref(call: AttemptCall) -> AttemptRef:
    if call.ref is None:
        raise UsageError("the call names no attempt", details={"field": "ref"})
    return call.ref


def _launch(call: AttemptCall) -> Launch:
    if call.launch is None:
        raise UsageError("the call has nothing to start", details={"field": "launch"})
    return call.launch


def _line(line: WatchLine) -> bytes:
    return encode(line) + b"\n"


def refused(error: SubagentsError) -> NodeAnswer:
    """An error as the answer of a call."""
    if (lack := lack_of(error)) is not None:
        error.details = {**error.details, LACK: errno.errorcode[lack]}
    return NodeAnswer(NOT_NOW if error.retryable else REFUSED, encode(error.to_wire()))
