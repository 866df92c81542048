"""Attempts whose place is another node: a ``Runtime`` over that node's door.

The worker runs there behind the same shim and depends on nobody who asks about it: when its owner
dies, the next one watches it on from the cursor of the lease. A place that does not answer is
waited for as long as it is alive, by its row in the store: it may be at work, and nobody else may
start that attempt. A place that is over has ended its workers before (``cluster.watchdog``).
"""

import asyncio
import codecs
import contextlib
import logging
import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from functools import partial
from typing import IO, Final

from subagents.domain.run.signals import TERMINAL, Signal, Vanished
from subagents.domain.run.spec import Abilities
from subagents.domain.run.worker_output import OutputBatch
from subagents.errors import NodeOver, NodeUnreachable, RuntimeUnavailable
from subagents.extensions.cluster.node_ports import SURE, NodeClient
from subagents.extensions.cluster.remote.attempt_calls import (
    PATH,
    WATCH,
    AttemptCall,
    CallName,
    decode_line,
    decode_started,
    encode,
    refusal,
)
from subagents.ports import (
    AttemptRef,
    Clock,
    Launch,
    LongResult,
    OffLoop,
    Runtime,
    StartedInfo,
)

log = logging.getLogger(__name__)

CALL_S: Final = 30.0
"""How long the answer of a call may take; one that has to wait for a worker says so."""
END_S: Final = 15.0
"""How much longer than the grace a stop may take, which ends with SIGKILL."""
QUIET_S: Final = 15.0
"""A watch says something every few seconds; after so long it counts as cut off."""
REST_S: Final = 1.0
"""How long the end of an answer may take after the end of its attempt: it comes with it, or was cut
off."""
AGAIN_FIRST_S: Final = 0.1
AGAIN_S_MAX: Final = 2.0
"""The longest wait between two tries to reach a place."""
LINE_BYTES_MAX: Final = 64 * 1024 * 1024
SPOOL_BYTES: Final = 1024 * 1024
"""A long result is kept in memory up to here, else in a file without a name."""
PIECE_BYTES: Final = 256 * 1024


class RemoteRuntime:
    """One runtime as it is on one node.

    What an agent's options mean is the same there: that is answered by the runtime of the same
    name here.

    Args:
        local: That one.
        node: The node's name.
        client: Reaches it.
        clock: Only waits.
        off_loop: Reads long results.
        result_bytes_max: Of a long result, the last so many bytes are asked for.
    """

    def __init__(
        self,
        local: Runtime,
        node: str,
        client: NodeClient,
        clock: Clock,
        off_loop: OffLoop,
        *,
        result_bytes_max: int,
    ) -> None:
        self._local = local
        self.node = node
        self._client, self._clock, self._off_loop = client, clock, off_loop
        self._result_bytes_max = result_bytes_max

    @property
    def name(self) -> str:
        return self._local.name

    @property
    def abilities(self) -> Abilities:
        return self._local.abilities

    def check(self, options: Mapping[str, object]) -> None:
        """See ``ports.Runtime.check``."""
        self._local.check(options)

    def check_scope(
        self, options: Mapping[str, object], tools: tuple[str, ...] | None, deny: tuple[str, ...]
    ) -> None:
        """See ``ports.Runtime.check_scope``."""
        self._local.check_scope(options, tools, deny)

    def marker(self, ref: AttemptRef) -> Mapping[str, str]:
        """See ``ports.Runtime.marker``; of processes here, where none of the attempt's are."""
        return self._local.marker(ref)

    async def start(self, launch: Launch) -> StartedInfo:
        """See ``ports.Runtime.start``; tried until the place answers or is over.

        Raises:
            NodeOver: The place is over, and what it may have started is ended; see ``SURE``.
            RuntimeUnavailable, UsageError: As the runtime raises there.
        """
        call = AttemptCall(runtime=self.name, launch=launch)
        return decode_started(await self._until_answered("start", call))

    async def resume(self, ref: AttemptRef, message: str, *, env: Mapping[str, str]) -> StartedInfo:
        """See ``ports.Runtime.resume``; tried until the place answers.

        Raises:
            RuntimeUnavailable: Also when the place is over, and the session with it.
            UsageError: As the runtime raises there.
        """
        call = AttemptCall(runtime=self.name, ref=ref, message=message, env=dict(env))
        try:
            return decode_started(await self._until_answered("resume", call))
        except NodeOver as error:
            raise RuntimeUnavailable(f"{error.message}, and the session with it") from error

    async def watch(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int]
    ) -> AsyncIterator[tuple[Signal | OutputBatch | LongResult, int]]:
        """See ``ports.Runtime.watch``; goes on from where it was when the place comes back."""
        pause_s, is_over = AGAIN_FIRST_S, False
        while not is_over:
            try:
                async for seen, at in self._watched_once(ref, cursor=cursor, positions=positions):
                    pause_s, cursor = AGAIN_FIRST_S, max(cursor, at)
                    if isinstance(seen, OutputBatch):
                        positions = {**positions, **seen.positions}
                    is_over = isinstance(seen, TERMINAL)
                    yield seen, at
            except NodeOver as error:
                yield Vanished(key=f"{ref.attempt_id}:vanished", error=error.message), cursor
                return
            except NodeUnreachable as error:
                log.info("watching %s goes on in %s s: %s", ref.attempt_id, pause_s, error)
            if not is_over:
                await self._clock.sleep(pause_s)
                pause_s = min(pause_s * 2, AGAIN_S_MAX)

    async def _watched_once(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int]
    ) -> AsyncGenerator[tuple[Signal | OutputBatch | LongResult, int], None]:
        """Over one connection; ends without a terminal signal when another owner watches."""
        call = AttemptCall(
            runtime=self.name,
            ref=ref,
            cursor=cursor,
            positions=dict(positions),
            result_bytes_max=self._result_bytes_max,
        )
        stream = self._client.stream(self.node, "POST", PATH + WATCH, encode(call), idle_s=QUIET_S)
        async with stream as (status, pieces):
            if status != 200:
                body = b"".join([each async for each in pieces])
                raise refusal(body, status=status, node=self.node)
            with tempfile.SpooledTemporaryFile(SPOOL_BYTES) as text:
                is_whole = False
                lines = _lines(pieces)
                async for raw in lines:
                    if not raw:
                        continue
                    line = decode_line(raw)
                    if line.error is not None:
                        raise RuntimeUnavailable(f"on node {self.node}: {line.error}")
                    if line.piece is not None:
                        write = partial(_append, text, line.piece.encode(), anew=is_whole)
                        await self._off_loop(write)
                        is_whole = False
                    elif line.long is not None:
                        is_whole = True
                        yield LongResult(line.long, partial(_read, text)), line.cursor
                    elif line.batch is not None:
                        yield line.batch, line.cursor
                    elif line.signal is not None:
                        if isinstance(line.signal, TERMINAL):
                            # Whoever reads stops here, and a connection is kept only behind the
                            # end of an answer.
                            with contextlib.suppress(NodeUnreachable, TimeoutError):
                                async with asyncio.timeout(REST_S):
                                    await anext(lines, None)
                        yield line.signal, line.cursor

    async def discard(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int], ended: bool = False
    ) -> None:
        """See ``ports.Runtime.discard``."""
        call = AttemptCall(
            runtime=self.name, ref=ref, cursor=cursor, positions=dict(positions), ended=ended
        )
        await self._unless_over("discard", call)

    async def stop(self, ref: AttemptRef, *, grace_s: float) -> None:
        """See ``ports.Runtime.stop``; nothing of it is left on a place that is over.

        Raises:
            RuntimeUnavailable: As the runtime raises there.
            NodeUnreachable: Nobody knows; repeat it.
        """
        call = AttemptCall(runtime=self.name, ref=ref, grace_s=grace_s)
        await self._unless_over("stop", call, timeout_s=grace_s + END_S)

    async def steer(self, ref: AttemptRef, message: str, *, key: str) -> None:
        """See ``ports.Runtime.steer``."""
        call = AttemptCall(runtime=self.name, ref=ref, message=message, key=key)
        await self._while_live("steer", call)

    async def permit(self, ref: AttemptRef, call_id: str, *, allow: bool, lasting: bool) -> None:
        """See ``ports.Permitting``."""
        call = AttemptCall(runtime=self.name, ref=ref, key=call_id, allow=allow, lasting=lasting)
        await self._while_live("permit", call)

    async def interrupt(self, ref: AttemptRef, *, key: str) -> None:
        """See ``ports.Runtime.interrupt``."""
        await self._while_live("interrupt", AttemptCall(runtime=self.name, ref=ref, key=key))

    async def forget(self, ref: AttemptRef) -> None:
        """See ``ports.Runtime.forget``; where the place does not do it, small files stay there."""
        try:
            await self._unless_over("forget", AttemptCall(runtime=self.name, ref=ref))
        except (NodeUnreachable, RuntimeUnavailable) as error:
            # Else nothing at all is pruned until it does.
            log.warning("files of %s stay: %s", ref.attempt_id, error)

    async def tidy(self, ref: AttemptRef) -> None:
        """See ``ports.Tidied``."""
        await self._unless_over("tidy", AttemptCall(runtime=self.name, ref=ref))

    async def freeze(self, ref: AttemptRef) -> None:
        """See ``ports.Freezable``."""
        await self._unless_over("freeze", AttemptCall(runtime=self.name, ref=ref))

    async def thaw(self, ref: AttemptRef) -> None:
        """See ``ports.Freezable``."""
        await self._unless_over("thaw", AttemptCall(runtime=self.name, ref=ref))

    async def _call(self, name: CallName, call: AttemptCall, *, timeout_s: float = CALL_S) -> bytes:
        status, body = await self._client.request(
            self.node, "POST", PATH + name, encode(call), timeout_s=timeout_s
        )
        if status != 200:
            raise refusal(body, status=status, node=self.node)
        return body

    async def _until_answered(self, name: CallName, call: AttemptCall) -> bytes:
        # Whether it was done is not known without an answer, and repeating it is safe there: only
        # there. Whoever called may give up by a time of its own.
        pause_s, is_sure = AGAIN_FIRST_S, True
        while True:
            try:
                return await self._call(name, call)
            except NodeUnreachable as error:
                is_sure = is_sure and bool(error.details.get(SURE))
            except NodeOver as error:
                error.details = {SURE: is_sure}
                raise
            await self._clock.sleep(pause_s)
            pause_s = min(pause_s * 2, AGAIN_S_MAX)

    async def _unless_over(
        self, name: CallName, call: AttemptCall, *, timeout_s: float = CALL_S
    ) -> None:
        try:
            await self._call(name, call, timeout_s=timeout_s)
        except NodeOver:
            return

    async def _while_live(self, name: CallName, call: AttemptCall) -> None:
        try:
            await self._call(name, call)
        except (NodeOver, NodeUnreachable) as error:
            raise RuntimeUnavailable(error.message) from error


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The body line by line; what comes behind the last newline was cut off."""
    held = bytearray()
    async for piece in pieces:
        held += piece
        while (end := held.find(b"\n")) >= 0:
            yield bytes(held[:end])
            del held[: end + 1]
        if len(held) > LINE_BYTES_MAX:
            raise NodeUnreachable(f"a line of more than {LINE_BYTES_MAX:,} bytes")
    if held:
        raise NodeUnreachable("the answer ended in the middle of a line")


def _append(text: IO[bytes], piece: bytes, *, anew: bool) -> None:
    if anew:
        text.seek(0)
        text.truncate()
    text.seek(0, os.SEEK_END)
    text.write(piece)


def _read(text: IO[bytes], bytes_max: int) -> Iterator[str]:
    """See ``ports.LongResult.pieces``."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    size = text.seek(0, os.SEEK_END)
    at, held = max(size - bytes_max, 0), b""
    while at < size:
        text.seek(at)
        piece = text.read(min(PIECE_BYTES, size - at))
        at += len(piece)
        held += piece
        end = held.rfind(b"\n") + 1 or len(held)
        yield decoder.decode(held[:end])
        held = held[end:]
    yield decoder.decode(held, final=True)
