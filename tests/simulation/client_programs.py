"""Programs that read with the real clients, over a wire in memory, and are killed at any await.

Their requests are the bytes that ``AsyncClient`` sends, and are answered by the daemon's real HTTP
application. A program has a message from the moment in which its own code was given it, and one
that acknowledges by reading from the moment in which it read the bytes.
"""

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Protocol, cast

from starlette.applications import Starlette
from starlette.types import Message
from tests.simulation.delivery_channels import Channels
from tests.simulation.virtual_loop import Process, VirtualClock, VirtualLoop, context_of

from subagents.api.calls.hand_over import WIRE, Wire
from subagents.api.calls.refusals import Refusals
from subagents.api.calls.services import DaemonInfo, Services
from subagents.api.server.app import create_app
from subagents.api.wire.run_answers import RunStatus
from subagents.client.agent_tools import Tools
from subagents.client.client import AsyncClient
from subagents.client.orchestrator import UnreadMessages
from subagents.client.run_handle import RunHandle
from subagents.client.transport import Answer, AsyncConnection, Gone
from subagents.config.paths import Paths
from subagents.domain.run.values import RunId, SessionKey, announcement_id
from subagents.errors import SubagentsError
from subagents.ports import OffLoop

KILLED: Final = 0.08
"""At each await of a program."""
ACK_S: Final = 8.0
"""A program that has what it wanted lives on for at most so long."""


class Host(Protocol):
    """The daemon, as programs reach it over every crash."""

    loop: VirtualLoop
    clock: VirtualClock
    channels: Channels
    is_calm: bool
    life: Any

    @property
    def off_loop(self) -> OffLoop:
        """See ``ports.OffLoop``."""
        ...


def application(host: Host, life: Any) -> Starlette:
    """What the daemon of that life answers with."""
    here = Path("/nowhere")
    paths = Paths(config_file=here, state_dir=here, cache_dir=here, runtime_dir=here, socket=here)
    services = Services(
        engine=life.engine,
        load_config=lambda *_: _refused(),
        paths=paths,
        info=DaemonInfo(version="simulated", pid=1, started_at_ms=0),
        database=life.store,
        off_loop=host.off_loop,
        reading=host.off_loop,
        refusals=Refusals(here, host.off_loop, life.engine),
        now_ms=host.clock.now_ms,
    )
    return create_app(services)


def _refused() -> Any:
    raise AssertionError("nothing is configured here")


class Program(Process):
    """A client's process: dies at any await, and takes along what lies unread in its sockets."""

    def __init__(self, host: Host, rng: random.Random) -> None:
        self.host, self.rng = host, rng
        self.wires: list[MemoryWire] = []
        self.is_over = asyncio.Event()

    async def point(self) -> None:
        """An await: time passes, or it is the last one."""
        await asyncio.sleep(self.rng.choice((0.0, 0.0, 0.004, 0.05)) * self.rng.random())
        if not self.host.is_calm and self.rng.random() < KILLED:
            self.die()
            await self.host.loop.create_future()

    def die(self) -> None:
        self.is_dead = True
        self.is_over.set()
        for wire in self.wires:
            wire.break_off()


class MemoryWire(Wire):
    """One connection: what the daemon wrote, and what of it the client has read."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._unread = bytearray()
        self._is_open = True
        self.was_reset = False
        self.has_more = asyncio.Event()
        self.is_gone: asyncio.Future[None] = loop.create_future()

    @property
    def is_sent(self) -> bool:
        return True

    @property
    def unread(self) -> int:
        return len(self._unread)

    @property
    def is_there(self) -> bool:
        return self._is_open

    def write(self, data: bytes) -> None:
        if self._is_open:
            self._unread += data
        self.has_more.set()

    def read(self) -> bytes:
        data = bytes(self._unread)
        self._unread.clear()
        self.has_more.clear()
        return data

    def break_off(self) -> None:
        """The client's end is closed; the daemon's loop hears of it a moment later."""
        self._is_open = False
        self.was_reset = bool(self._unread)
        self._unread.clear()
        self._loop.call_later(0.002, _finish, self.is_gone)


class MemoryConnection:
    """See ``AsyncConnection``; one exchange, to the daemon that lives at that moment."""

    is_reusable = False

    def __init__(self, program: Program, took: Callable[[bytes], None]) -> None:
        self._program = program
        self._took = took

    async def exchange(self, sent: bytes, *, timeout_s: float) -> tuple[Answer, bytes]:
        """See ``AsyncConnection.exchange``."""
        host = self._program.host
        await self._program.point()
        life = host.life
        if life is None or not life.is_serving:
            raise Gone("nobody listens", was_sent=False)
        wire, lost = MemoryWire(host.loop), host.loop.create_future()
        self._program.wires.append(wire)
        life.calls[lost] = None
        serving = _answer(application(host, life), sent, wire, lost)
        host.loop.create_task(serving, context=context_of(life))
        try:
            async with asyncio.timeout(timeout_s):
                found = await self._read(wire, lost)
        except TimeoutError as error:
            raise Gone("it did not answer", was_sent=True) from error
        finally:
            life.calls.pop(lost, None)
            wire.break_off()
            self._program.wires.remove(wire)
        await self._program.point()
        return found

    async def _read(self, wire: MemoryWire, lost: "asyncio.Future[None]") -> tuple[Answer, bytes]:
        answer, content = Answer(), bytearray()
        while not answer.is_complete:
            more = asyncio.ensure_future(wire.has_more.wait())
            await asyncio.wait((more, lost), return_when=asyncio.FIRST_COMPLETED)
            more.cancel()
            await self._program.point()
            if data := wire.read():
                answer.feed(data)
                content += answer.take()
                self._took(bytes(content))
            elif lost.done():
                raise Gone("it closed the connection", was_sent=True)
        return answer, bytes(content)

    async def close(self) -> None:
        """It carries one exchange."""


async def _answer(
    app: Starlette, sent: bytes, wire: MemoryWire, lost: "asyncio.Future[None]"
) -> None:
    """In the daemon: serve one request, as the HTTP server would."""
    head, _, body = sent.partition(b"\r\n\r\n")
    line, *fields = head.split(b"\r\n")
    method, target, _ = line.decode().split()
    path, _, query = target.partition("?")
    pairs = [field.split(b": ", 1) for field in fields]
    given = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if given:
            return given.pop()
        await asyncio.shield(wire.is_gone)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        wire.write(_bytes_of(message))

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower(), value) for name, value in pairs],
        "state": {WIRE: wire},
    }
    try:
        await app(scope, receive, send)
    except RuntimeError as error:
        if "already started" not in str(error):
            raise  # what fails behind the first byte breaks off the answer
    finally:
        _finish(lost)
        wire.has_more.set()


def _bytes_of(message: Message) -> bytes:
    """In chunks, whatever the length."""
    if message["type"] == "http.response.start":
        return b"HTTP/1.1 %d Answer\r\ntransfer-encoding: chunked\r\n\r\n" % message["status"]
    body = message.get("body", b"")
    chunk = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
    return chunk + (b"" if message.get("more_body") else b"0\r\n\r\n")


class MemoryClient(AsyncClient):
    """The real client, whose connections are in memory."""

    def __init__(self, program: Program, *, took: Callable[[bytes], None], **given: Any) -> None:
        super().__init__("/nowhere/socket", **given)
        self._program, self._took = program, took

    async def _connected(self) -> AsyncConnection:
        return cast("AsyncConnection", MemoryConnection(self._program, self._took))


class ReadingPrograms:
    """One program after the other reads for a session until the simulation becomes calm."""

    def __init__(
        self, seed: int, host: Host, session: SessionKey, known: Callable[[], list[RunId]]
    ) -> None:
        self._rng = random.Random(f"{seed}:{session}:programs")
        self._host, self._session, self._known = host, session, known
        self._is_read_by_them = self._rng.random() < 0.25

    async def go_on(self) -> None:
        """Start them, wait for each to end or to be killed."""
        number = 0
        while self._is_read_by_them and not self._host.is_calm:
            await asyncio.sleep(self._rng.random() * 8)
            number += 1
            await self._run(f"{self._session}/program{number}")

    async def _run(self, reader: str) -> None:
        program = Program(self._host, random.Random(self._rng.random()))
        work = self._rng.choice((self._inbox, self._inbox, self._wait, self._tool, self._auto))
        loop = self._host.loop
        task = loop.create_task(work(program, reader), context=context_of(program))
        task.add_done_callback(_look)
        task.add_done_callback(lambda _: program.is_over.set())
        await program.is_over.wait()

    def _client(self, program: Program, reader: str, **given: Any) -> MemoryClient:
        took = given.pop("took", _nothing)
        return MemoryClient(program, took=took, session=self._session, reader=reader, **given)

    def _has(self, names: Any, reader: str) -> None:
        """The program's own code was given these."""
        self._host.channels.let_go([str(name) for name in names], reader)

    async def _inbox(self, program: Program, reader: str) -> None:
        async with self._client(program, reader) as client:
            most = program.rng.choice((1, 100))
            async with UnreadMessages(client) as messages:
                async for message in messages:
                    self._has([message.id], reader)
                    await program.point()
                    if (most := most - 1) == 0:
                        break

    async def _wait(self, program: Program, reader: str) -> None:
        known = self._known()
        if not known:
            return
        async with self._client(program, reader) as client:
            run_id = program.rng.choice(known)
            receipt = SimpleNamespace(run_id=run_id, label="")
            handle = RunHandle(client, cast("RunStatus", receipt))
            await handle.wait(program.rng.choice((0.0, 5.0)))
            self._has([announcement_id(run_id)], reader)
            await asyncio.sleep(program.rng.random() * ACK_S)
            await program.point()

    async def _tool(self, program: Program, reader: str) -> None:
        async with self._client(program, reader) as client:
            found = await Tools(client).sessions_wait(timeout_seconds=3)
            ended = cast("list[dict[str, str]]", found["completed"])
            self._has([announcement_id(RunId(each["runId"])) for each in ended], reader)
            await asyncio.sleep(program.rng.random() * ACK_S)
            await program.point()

    async def _auto(self, program: Program, reader: str) -> None:
        """The daemon acknowledges by itself what such a client has read."""

        def took(content: bytes) -> None:
            try:
                self._has(json.loads(content).get("offered", ()), reader)
            except ValueError:
                return  # only a part of it

        headers = {"x-subagents-ack": "auto"}
        async with self._client(program, reader, headers=headers, took=took) as client:
            await client.post("/v1/tools/sessions_wait", {"timeoutSeconds": 3}, timeout_s=3)


def _look(task: "asyncio.Task[None]") -> None:
    """What a program is refused, or waits for in vain, ends it as it would end any."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, (SubagentsError, TimeoutError)):
        raise error


def _nothing(_content: bytes) -> None:
    """It does not look at the bytes."""


def _finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
