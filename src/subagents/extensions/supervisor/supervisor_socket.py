"""The socket itself: who may come in, and one conversation with each who did.

Several supervisors at once, each with its own session and subscriptions. Commands of one are done
one after the other; what is pushed goes between their answers, never into them.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from subagents.api.calls.auth import (
    Caller,
    Connection,
    note_refusal,
    peer_uid,
    refuse_worker_without_token,
    run_concerned,
)
from subagents.api.calls.refusals import is_refusal
from subagents.api.calls.services import Services
from subagents.api.server.listeners import Listener, Serving, stop_accepting
from subagents.api.server.unix_sockets import bound_again, listening
from subagents.api.wire.wire_struct import Document
from subagents.config.paths import Paths
from subagents.config.settings import DaemonSettings
from subagents.domain.transcript.feed_entry import FeedDocument
from subagents.errors import (
    Conflict,
    RateLimited,
    SubagentsError,
    Unauthorized,
    Unavailable,
)
from subagents.extensions.supervisor import supervisor_actions, supervisor_messages
from subagents.extensions.supervisor.supervisor_actions import SupervisorSession
from subagents.extensions.supervisor.supervisor_messages import Command, Register, Unreadable, lines
from subagents.extensions.supervisor.supervisor_stream import Stream

log = logging.getLogger(__name__)

SUPERVISORS_MAX: Final = 64
"""Connected at once."""
STOP_S: Final = 2.0
"""How long a command under way at a stop may take to end."""


class SupervisorServer:
    """Lets supervisors in from ``open`` to ``close``."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._server: asyncio.Server | None = None
        self._talking: set[asyncio.Task[None]] = set()

    async def open(self, listener: socket.socket) -> None:
        """Accept connections on a socket that listens already, instead of the one before."""
        before = self._server
        self._server = await asyncio.start_unix_server(self._accepted, sock=listener)
        if before is not None:
            await stop_accepting([before])
        log.info("supervisors connect at %s", listener.getsockname())

    async def close(self) -> None:
        """End every conversation; returns when all are over. Idempotent."""
        if self._server is not None:
            await stop_accepting([self._server])
        for task in self._talking:
            task.cancel()
        if self._talking:
            await asyncio.wait(self._talking, timeout=STOP_S)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        self._talking.add(task)
        try:
            await self._talk(reader, writer)
        except asyncio.CancelledError:
            # The daemon stops; asyncio would report it as a failure of its own callback.
            log.debug("a supervisor was disconnected: the daemon stops")
        except Exception:
            log.exception("a conversation with a supervisor failed")
        finally:
            self._talking.discard(task)
            # Aborted: what a supervisor that does not read has not taken must not hold us up.
            writer.transport.abort()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        end: socket.socket = writer.get_extra_info("socket")
        uid = peer_uid(end)
        if uid is not None and uid != os.getuid():
            log.warning("refused a supervisor of user %s", uid)
            return
        conversation = Conversation(self._services, Connection.on(end), writer)
        with contextlib.suppress(ConnectionError):
            if len(self._talking) > SUPERVISORS_MAX:
                full = RateLimited(f"at most {SUPERVISORS_MAX} supervisors at once")
                await conversation.say(supervisor_messages.failure(None, full))
                await _flushed(writer)
                return
            await conversation.run(reader)
            await _flushed(writer)


async def _flushed(writer: asyncio.StreamWriter) -> None:
    """The last answers have left, for a client that only closed its own side."""
    writer.close()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(writer.wait_closed(), STOP_S)


class Conversation:
    """One connected supervisor."""

    def __init__(
        self, services: Services, connection: Connection, writer: asyncio.StreamWriter
    ) -> None:
        self._services = services
        self._connection = connection
        self._writer = writer
        self._writing = asyncio.Lock()
        self._stream = Stream(services.engine.feed, self._push)
        self._session: SupervisorSession | None = None

    async def run(self, reader: asyncio.StreamReader) -> None:
        """Answer until the supervisor hangs up."""
        pushing = asyncio.create_task(self._stream.run(), name="supervisor events")
        answering = asyncio.create_task(self._answer_all(reader), name="supervisor commands")
        try:
            await asyncio.wait({pushing, answering}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (pushing, answering):
                task.cancel()
            ended = await asyncio.gather(pushing, answering, return_exceptions=True)
        for each in ended:
            if isinstance(each, Exception):
                raise each

    async def say(self, document: Document) -> None:
        """Send one line; returns when there is room for the next."""
        line = msgspec.json.encode(document) + b"\n"
        async with self._writing:
            self._writer.write(line)
            await self._writer.drain()

    async def _push(self, entry: FeedDocument) -> None:
        await self.say(supervisor_messages.pushed(entry))

    async def _answer_all(self, reader: asyncio.StreamReader) -> None:
        async for line in lines(reader):
            if line is None or line.strip():
                await self._answer(line)

    async def _answer(self, line: bytes | None) -> None:
        request_id = None
        try:
            incoming = supervisor_messages.parse(line)
            if isinstance(incoming, Register):
                registered = await self._register(incoming)
                self._services.engine.require_ownership()
                await self.say(registered)
                return
            request_id = incoming.request_id
            done = await self._perform(incoming)
            self._services.engine.require_ownership()
            await self.say(supervisor_messages.result(request_id, done.result))
            if done.then is not None:
                done.then()
        except Unreadable as error:
            await self.say(supervisor_messages.failure(error.request_id, error.error))
        except SubagentsError as error:
            await self.say(supervisor_messages.failure(request_id, error))
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:
            log.exception("a supervisor's command failed")
            file = self._services.paths.log_file
            broken = SubagentsError(f"the daemon failed to do this; its log says why: {file}")
            await self.say(supervisor_messages.failure(request_id, broken))

    async def _register(self, asked: Register) -> Document:
        """Give the supervisor its session.

        Raises:
            Conflict: It has another one.
            Unauthorized: It is a worker.
        """
        try:
            refuse_worker_without_token(self._services, asked.session, self._connection)
        except SubagentsError as error:
            self._note(error)
            raise
        session = self._session
        if session is not None and session.caller.session != asked.session:
            raise Conflict(
                f"this connection is {session.caller.session}",
                hint="open another one for each name",
            )
        if session is None:
            caller = Caller(
                session=asked.session,
                reader=f"supervisor:{asked.session}",
                is_operator=True,
                peer=self._connection.peer,
            )
            self._session = SupervisorSession(
                services=self._services, caller=caller, stream=self._stream
            )
            log.info("supervisor %s came, %s", asked.session, self._connection.peer)
        return {
            "type": "registered",
            "agentId": asked.agent_id,
            "session": asked.session,
            "seq": await self._services.engine.feed.newest(),
            "version": self._services.info.version,
        }

    def _note(self, error: SubagentsError) -> None:
        if is_refusal(error):
            note_refusal(
                self._services,
                None,
                "register_supervisor",
                error.message,
                peer=self._connection.peer,
                run_id=run_concerned(error),
            )

    async def _perform(self, command: Command) -> supervisor_actions.Done:
        """Do what is asked.

        Raises:
            SubagentsError: It was refused, or could not be done.
        """
        if command.action == supervisor_actions.PING:
            return supervisor_actions.Done({"pong": True, "ts": self._services.now_ms()})
        action = supervisor_actions.named(command.action)
        if self._session is None:
            raise Unauthorized(
                "register first: before that only ping is answered",
                hint='send {"type":"register_supervisor","agentId":"<your name>"}',
            )
        if self._services.stopping.is_set():
            raise Unavailable(
                "the daemon is stopping", hint="connect again: the next one continues"
            )
        return await action(self._session, command.params)


class SupervisorListener:
    """Lets them in at the home's second socket; see ``Listener``."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @contextlib.asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Nothing of it lives longer than the serving."""
        yield

    def bind(self, addresses: contextlib.ExitStack) -> None:
        """Nobody else can have it: whoever holds the home's lock makes it again."""

    @contextlib.asynccontextmanager
    async def serving(self, serving: Serving) -> AsyncIterator[None]:
        """Within the block supervisors are let in."""
        paths, server = serving.paths, SupervisorServer(self._services)
        with listening(paths.supervisor_socket) as listener:
            await server.open(listener)
            try:
                async with bound_again(paths, paths.supervisor_socket, server.open, serving.later):
                    yield
            finally:
                await server.close()


def listeners(services: Services, _paths: Paths, _settings: DaemonSettings) -> list[Listener]:
    """See ``Extension.listeners``."""
    return [SupervisorListener(services)]
