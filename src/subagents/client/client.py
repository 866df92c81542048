"""Speaks to the daemon over its Unix socket: ``Client`` blocks, ``AsyncClient`` awaits.

The command line starts with this module, so it reads and writes JSON with the standard library:
importing msgspec takes three times as long as an interpreter that does nothing.
"""

import json
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from subagents import errors
from subagents.client.transport import (
    Absence,
    Answer,
    AsyncConnection,
    Connection,
    Gone,
    NotHttp,
    Silent,
    request,
)
from subagents.errors import (
    DaemonUnreachable,
    RuntimeUnavailable,
    StoreUnavailable,
    SubagentsError,
    Unavailable,
)
from subagents.version import __version__, is_other_code

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

Document = dict[str, object]
Query = Mapping[str, str | int | None]
T = TypeVar("T")

DEFAULT_SESSION: Final = "agent:main:main"
TIMEOUT_S: Final = 30.0
"""The longest wait for one answer; long polls add the time they ask the daemon to wait."""
RECONNECT_POLL_S: Final = 0.2
IDLE_CONNECTIONS_MAX: Final = 4
ACKNOWLEDGED_S: Final = 5.0
"""A caller that lives so long after it was handed a message has it; a lease holds for a minute."""
VERSION_HEADER: Final = "x-subagents-version"
CODE_HEADER: Final = "x-subagents-code"
_PLAIN: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~")
"""What stands for itself in any part of a URL."""


class _Codec:
    """Documents to requests, and answers to documents; no I/O."""

    def __init__(self, session: str, reader: str, headers: Mapping[str, str]) -> None:
        for name, value in (("session", session), ("reader", reader), *headers.items()):
            if not value or not value.isascii() or not value.isprintable():
                raise errors.UsageError(f"{name} must be printable ASCII, not {value!r}")
        self._headers = {
            "x-subagents-session": session,
            "x-subagents-reader": reader,
            "accept": "application/json",
            **headers,
        }

    def request(self, method: str, path: str, query: Query | None, body: object) -> bytes:
        given = "&".join(
            f"{name}={segment(str(value))}"
            for name, value in (query or {}).items()
            if value is not None
        )
        target = f"{path}?{given}" if given else path
        return request(method, target, self._headers, None if body is None else encoded(body))

    @staticmethod
    def answer(status: int, body: bytes) -> Document:
        """The document of a 2xx answer.

        Raises:
            SubagentsError: The class that the error document of any other answer names.
        """
        try:
            document = json.loads(body) if body else {}
        except (ValueError, RecursionError) as error:
            raise _unreachable("", NotHttp()) from error
        if not isinstance(document, dict):
            raise _unreachable("", NotHttp())
        if 200 <= status < 300:
            return document
        raise error_from(document)


class Client:
    """Calls the daemon and blocks; one connection, one call at a time."""

    def __init__(
        self,
        socket_path: "Path | str",
        *,
        session: str = DEFAULT_SESSION,
        reader: str | None = None,
        timeout_s: float = TIMEOUT_S,
        headers: Mapping[str, str] | None = None,
        start: Callable[[], bool] | None = None,
    ) -> None:
        """Connects at the first call.

        Args:
            socket_path: The daemon's Unix socket.
            session: In whose name the calls are made, for example ``agent:main:main``.
            reader: Names this process as a reader of the inbox: messages are leased per reader.
            timeout_s: Seconds to wait for one answer.
            headers: Sent with every call besides ours; printable ASCII, names in lower case. A
                worker's token goes along by itself.
            start: Called when no daemon listens on the socket; true = one does now, and the call,
                which has reached none, is made again.
        """
        sent = {**own_authorization(socket_path), **(headers or {})}
        self._codec = _Codec(session, reader or os.urandom(16).hex(), sent)
        self._path = str(socket_path)
        self._timeout_s = timeout_s
        self._start = start
        self._connection: Connection | None = None
        self.received = b""
        """The document of the last answer as the daemon wrote it."""
        self.daemon_version: str | None = None
        """The version that the last answer named, and whether its code is another; None before one,
        "" of a daemon of 0.1.0, which does not say."""

    def get(
        self, path: str, query: Query | None = None, *, timeout_s: float | None = None
    ) -> Document:
        """GET; ``timeout_s`` is added to the client's own, for long polls.

        Raises:
            DaemonUnreachable: No daemon answers; whether it acted is unknown.
            SubagentsError: What the daemon refused, as the class it names.
        """
        return self._call("GET", path, query, None, timeout_s or 0.0)

    def post(self, path: str, body: object = None, *, timeout_s: float | None = None) -> Document:
        """POST ``body`` as JSON; raises like ``get``."""
        return self._call("POST", path, None, {} if body is None else body, timeout_s or 0.0)

    def delete(self, path: str) -> Document:
        """DELETE; raises like ``get``."""
        return self._call("DELETE", path, None, None, 0.0)

    def get_bytes(self, path: str, query: Query | None = None) -> bytes:
        """GET what is no document; raises like ``get``."""
        answer, content = self._asked("GET", path, query, None, 0.0)
        # A refusal is a document here, too.
        if not 200 <= answer.status < 300:
            self._codec.answer(answer.status, content)
        return content

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(
        self, method: str, path: str, query: Query | None, body: object, more_s: float
    ) -> Document:
        answer, self.received = self._asked(method, path, query, body, more_s)
        return self._codec.answer(answer.status, self.received)

    def _asked(
        self, method: str, path: str, query: Query | None, body: object, more_s: float
    ) -> tuple[Answer, bytes]:
        sent = self._codec.request(method, path, query, body)
        try:
            answer, content = self._exchange(sent, self._timeout_s + more_s)
        except Gone as gone:
            # Once sent, the daemon may have acted: only the caller knows whether to repeat it.
            if gone.was_sent or self._start is None or not self._start():
                raise _unreachable(self._path, gone) from gone
            try:
                answer, content = self._exchange(sent, self._timeout_s + more_s)
            except Gone as again:
                raise _unreachable(self._path, again) from again
        theirs = answer.headers.get(VERSION_HEADER, "")
        if theirs == __version__ and is_other_code(answer.headers.get(CODE_HEADER, "")):
            theirs += " (other code)"
        self.daemon_version = theirs
        return answer, content

    def _exchange(self, sent: bytes, timeout_s: float) -> tuple[Answer, bytes]:
        if self._connection is not None and not self._connection.is_reusable:
            self.close()
        # By a name of its own: another thread may close this client meanwhile.
        connection = self._connection = self._connection or Connection(self._path)
        try:
            answer, content = connection.exchange(sent, timeout_s=timeout_s)
        except BaseException:
            # An answer half read (Ctrl-C, say) would be taken for the next call's.
            self.close()
            raise
        if not answer.keeps_alive:
            self.close()
        return answer, content


class AsyncClient:
    """Calls the daemon from an event loop; each concurrent call has a connection of its own."""

    def __init__(
        self,
        socket_path: "Path | str",
        *,
        session: str = DEFAULT_SESSION,
        reader: str | None = None,
        timeout_s: float = TIMEOUT_S,
        headers: Mapping[str, str] | None = None,
        start: Callable[[], bool] | None = None,
    ) -> None:
        """Like ``Client``; ``start`` is called in a thread."""
        sent = {**own_authorization(socket_path), **(headers or {})}
        self._codec = _Codec(session, reader or os.urandom(16).hex(), sent)
        self._path = str(socket_path)
        self._timeout_s = timeout_s
        self._start = start
        self._idle: list[AsyncConnection] = []
        self._handed: list[str] = []
        self._last_moment: asyncio.TimerHandle | None = None
        self._acknowledging: asyncio.Task[None] | None = None

    def hand_over(self, message_ids: Iterable[str]) -> None:
        """Acknowledge these once the caller has them: whoever is killed before loses nothing.

        That is: before its next call, after ``ACKNOWLEDGED_S`` in which it lives on, or when the
        block of this client ends without an error. Until then they stay leased to this reader.
        """
        self._handed += message_ids
        if self._handed and self._last_moment is None:
            import asyncio  # noqa: PLC0415  the command line blocks, and starts sooner without it

            loop = asyncio.get_running_loop()

            def acknowledge_now() -> None:
                self._last_moment = None
                self._acknowledging = loop.create_task(self.acknowledge())

            self._last_moment = loop.call_later(ACKNOWLEDGED_S, acknowledge_now)

    async def acknowledge(self) -> None:
        """Acknowledge what was handed over; what cannot be now, is later."""
        if not self._handed:
            return
        import asyncio  # noqa: PLC0415  see ``hand_over``

        if self._last_moment is not None:
            self._last_moment.cancel()
            self._last_moment = None
        message_ids, self._handed = self._handed, []
        try:
            await self._call("POST", "/v1/inbox/ack", None, {"messageIds": message_ids}, 0.0)
        except errors.Unavailable:
            self.hand_over(message_ids)
        except SubagentsError:
            # Pruned meanwhile, say. What is still there comes again once its lease is over.
            return
        except asyncio.CancelledError:
            self.hand_over(message_ids)  # the caller has them all the same
            raise

    async def get(
        self, path: str, query: Query | None = None, *, timeout_s: float | None = None
    ) -> Document:
        """Like ``Client.get``."""
        await self.acknowledge()
        return await self._call("GET", path, query, None, timeout_s or 0.0)

    async def post(
        self, path: str, body: object = None, *, timeout_s: float | None = None
    ) -> Document:
        """Like ``Client.post``."""
        await self.acknowledge()
        return await self._call("POST", path, None, {} if body is None else body, timeout_s or 0.0)

    async def delete(self, path: str) -> Document:
        """Like ``Client.delete``."""
        await self.acknowledge()
        return await self._call("DELETE", path, None, None, 0.0)

    async def get_bytes(self, path: str, query: Query | None = None) -> bytes:
        """Like ``Client.get_bytes``."""
        answer, content = await self._asked("GET", path, query, None, 0.0)
        if not 200 <= answer.status < 300:
            self._codec.answer(answer.status, content)
        return content

    async def aclose(self) -> None:
        """Close the connections that no call uses. Idempotent."""
        if self._last_moment is not None:
            self._last_moment.cancel()
            self._last_moment = None
        while self._idle:
            await self._idle.pop().close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self.acknowledge()
        await self.aclose()

    async def _call(
        self, method: str, path: str, query: Query | None, body: object, more_s: float
    ) -> Document:
        answer, content = await self._asked(method, path, query, body, more_s)
        return self._codec.answer(answer.status, content)

    async def _asked(
        self, method: str, path: str, query: Query | None, body: object, more_s: float
    ) -> tuple[Answer, bytes]:
        sent = self._codec.request(method, path, query, body)
        try:
            return await self._exchange(sent, self._timeout_s + more_s)
        except Gone as gone:
            if gone.was_sent or self._start is None or not await self._started(self._start):
                raise _unreachable(self._path, gone) from gone
            try:
                return await self._exchange(sent, self._timeout_s + more_s)
            except Gone as again:
                raise _unreachable(self._path, again) from again

    @staticmethod
    async def _started(start: Callable[[], bool]) -> bool:
        # In a thread: a start takes seconds, in which the loop has other work.
        import asyncio  # noqa: PLC0415

        return await asyncio.to_thread(start)

    async def _exchange(self, sent: bytes, timeout_s: float) -> tuple[Answer, bytes]:
        connection = await self._connected()
        answer, content = await connection.exchange(sent, timeout_s=timeout_s)
        if connection.is_reusable and len(self._idle) < IDLE_CONNECTIONS_MAX:
            self._idle.append(connection)
        else:
            await connection.close()
        return answer, content

    async def _connected(self) -> AsyncConnection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable:
                return connection
            await connection.close()
        return await AsyncConnection.open(self._path)


def persistently(
    call: Callable[[], T],
    *,
    until: float | None = None,
    for_s: float | None = None,
    is_repeatable: bool = True,
) -> T:
    """Repeat ``call`` while the daemon is away; its client starts one that crashed.

    A daemon that was told to stop is not started again.

    Args:
        call: Of a client's.
        until: When the time of a call that waits is up, by ``time.monotonic``; ``math.inf`` = it
            waits as long as it takes. It survives any number of daemons until then. None = the call
            is answered at once.
        for_s: How long a daemon may be away, in seconds; None = half a minute.
        is_repeatable: It may reach the daemon twice; otherwise only connecting is repeated.

    Raises:
        DaemonUnreachable: It did not come back in time, will not come back, or may have acted on
            what must not be repeated.
        Unavailable: The daemon is stopping, and none came after it.
    """
    absence = Absence(until=until, for_s=for_s, now=time.monotonic)
    while True:
        absence.asking()
        try:
            return call()
        except Unavailable as error:
            if not _is_asked_again(error, absence, is_repeatable=is_repeatable):
                raise
        time.sleep(RECONNECT_POLL_S)


async def persistently_async(
    call: Callable[[], Awaitable[T]],
    *,
    until: float | None = None,
    for_s: float | None = None,
) -> T:
    """The same for an event loop, for calls that may reach the daemon twice.

    Args:
        call: Of an ``AsyncClient``'s.
        until: As for ``persistently``, by the loop's clock.
        for_s: See there.

    Raises:
        DaemonUnreachable: As there.
        Unavailable: As there.
    """
    import asyncio  # noqa: PLC0415

    absence = Absence(until=until, for_s=for_s, now=asyncio.get_running_loop().time)
    while True:
        absence.asking()
        try:
            return await call()
        except Unavailable as error:
            if not _is_asked_again(error, absence, is_repeatable=True):
                raise
        await asyncio.sleep(RECONNECT_POLL_S)


def _is_asked_again(error: Unavailable, absence: Absence, *, is_repeatable: bool) -> bool:
    match error:
        case StoreUnavailable() | RuntimeUnavailable():
            return False  # it is there, and says what it cannot do
        case DaemonUnreachable(is_lasting=True):
            return False
        case DaemonUnreachable():
            gone = error.__cause__ if isinstance(error.__cause__, Gone) else None
            was_sent, was_there = gone is None or gone.was_sent, gone is not None and gone.was_there
            return (is_repeatable or not was_sent) and absence.goes_on(was_there=was_there)
        case _:
            # It is stopping and did nothing; the one behind it serves the same call.
            return absence.goes_on(was_there=absence.was_held)


def own_authorization(socket_path: "Path | str") -> dict[str, str]:
    """The header that proves which worker this process is; empty for any other daemon's socket.

    Raises:
        UsageError: SUBAGENTS_TOKEN is not printable.
    """
    given, token = os.environ.get("SUBAGENTS_SOCKET"), os.environ.get("SUBAGENTS_TOKEN")
    if not given or not token or os.path.abspath(given) != os.path.abspath(socket_path):  # noqa: PTH100  # quicker than Path, and no links are followed
        return {}
    if not token.isascii() or not token.isprintable():
        raise errors.UsageError("SUBAGENTS_TOKEN must be printable ASCII")
    return {"authorization": f"Bearer {token}"}


def encoded(body: object) -> bytes:
    """JSON of what a request says: dicts, lists, plain values, and structs in them.

    A number that is not finite is null: JSON has none.

    Raises:
        UsageError: A text is not valid UTF-8.
    """
    try:
        text = json.dumps(
            body, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
        )
        return text.encode()
    except UnicodeEncodeError as error:
        raise errors.UsageError("the request must be valid UTF-8") from error
    except ValueError:
        # An infinity or NaN, which `allow_nan=False` refuses.
        import msgspec  # noqa: PLC0415  writes null

        return msgspec.json.encode(body)


def _plain(value: Any) -> object:
    import msgspec  # noqa: PLC0415  who brings a struct has it already

    return msgspec.to_builtins(value)


def segment(text: str) -> str:
    """One path segment, or value of a query, of a URL: a selector may hold any character."""
    if _PLAIN.issuperset(text):
        return text
    from urllib.parse import quote  # noqa: PLC0415  ids and most labels need none of it

    return quote(text, safe="")


def error_from(document: Mapping[str, object]) -> SubagentsError:
    """The exception an error document stands for, by its ``code``.

    An unknown code (a newer daemon) gives ``SubagentsError``, with the code in its details.
    """
    code = str(document.get("code", ""))
    found = document.get("details")
    details = dict(found) if isinstance(found, dict) else {}
    message = str(document.get("message") or document.get("error") or "the daemon gave no reason")
    given = document.get("hint")
    hint = given if isinstance(given, str) else None
    kind = _classes().get(code)
    # An illegal transition is a mistake inside the daemon, about which no caller can do anything.
    if kind is None or kind is errors.IllegalTransition:
        return SubagentsError(message, hint=hint, details={**details, "code": code})
    return kind.restored(message, hint=hint, details=details)


def _classes() -> dict[str, type[SubagentsError]]:
    found: dict[str, type[SubagentsError]] = {}
    pending = [SubagentsError]
    while pending:
        kind = pending.pop()
        # Bases come first: a code stands for the class that declares it, not one that inherits it.
        found.setdefault(kind.code, kind)
        pending += kind.__subclasses__()
    return found


def _unreachable(path: str, gone: Gone) -> DaemonUnreachable:
    match gone:
        case Silent():
            message = f"the daemon {str(gone).removeprefix('it ')}"
        case NotHttp():
            message = "what answers on the socket is not a subagents daemon"
        case _:
            return DaemonUnreachable(
                f"no daemon answers at {path}: {gone}",
                hint="start it: subagents up; find out why: subagents doctor",
                details={"socket": path},
            )
    return DaemonUnreachable(message, hint="see: subagents doctor")
