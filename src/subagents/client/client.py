"""Speaks to the daemon over its Unix socket: ``Client`` blocks, ``AsyncClient`` awaits.

HTTP/1.1 in a few lines instead of ``http.client``: both clients share one codec that does no I/O,
and the command line starts 20 ms sooner. The daemon answers every request of ours with a
``content-length``, so nothing else is understood here. For the same reason asyncio and subprocess
are imported where they are used.

Source: 5-surfaces §2 (start-up, exit 7), §4 (Unix socket), §6 (``connect``).
"""

import fcntl
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, NoReturn, Self
from urllib.parse import quote, urlencode

import msgspec

from subagents import errors
from subagents.config.paths import Paths
from subagents.errors import (
    DaemonUnreachable,
    Forbidden,
    RateLimited,
    SubagentsError,
)

if TYPE_CHECKING:
    import asyncio
    import subprocess

Document = dict[str, object]
Query = Mapping[str, str | int | None]

DEFAULT_SESSION: Final = "agent:main:main"
TIMEOUT_S: Final = 30.0
"""For one answer; long polls add the time they ask the daemon to wait."""
CONNECT_TIMEOUT_S: Final = 5.0
START_TIMEOUT_S: Final = 10.0
START_POLL_S: Final = 0.02
HEAD_BYTES_MAX: Final = 64 * 1024
BODY_BYTES_MAX: Final = 64 * 1024 * 1024
"""More than any answer of the daemon; a larger one is no daemon of ours."""
IDLE_CONNECTIONS_MAX: Final = 4
IDLE_S: Final = 2.0
"""Less than the five seconds after which uvicorn closes an idle connection: a connection that may
be closing must not carry a request that cannot be repeated."""
LOG_TAIL_BYTES: Final = 4096

_WORKER_VARIABLES: Final = (
    "SUBAGENTS_RUN_ID",
    "SUBAGENTS_SESSION_KEY",
    "SUBAGENTS_SOCKET",
    "SUBAGENTS_TOKEN",
)
"""A daemon that a worker's command happens to start belongs to the user, not to that run."""


class _Head(msgspec.Struct, frozen=True):
    status: int
    length: int
    closes: bool


class _Codec:
    """Bytes of requests and answers; no I/O."""

    def __init__(self, session: str, reader: str, headers: Mapping[str, str]) -> None:
        for name, value in (("session", session), ("reader", reader), *headers.items()):
            if not value or not value.isascii() or not value.isprintable():
                raise errors.UsageError(f"{name} must be printable ASCII, not {value!r}")
        self._headers = (
            "host: subagents\r\n"
            f"x-subagents-session: {session}\r\n"
            f"x-subagents-reader: {reader}\r\n"
            "accept: application/json\r\n"
            + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        )

    def request(self, method: str, path: str, query: Query | None, body: object) -> bytes:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        target = f"{path}?{urlencode(given)}" if given else path
        try:
            content = b"" if body is None else msgspec.json.encode(body)
        except UnicodeEncodeError as error:
            raise errors.UsageError("the request must be valid UTF-8") from error
        kind = "" if body is None else "content-type: application/json\r\n"
        head = f"{method} {target} HTTP/1.1\r\n{self._headers}{kind}"
        return f"{head}content-length: {len(content)}\r\n\r\n".encode("ascii") + content

    @staticmethod
    def head(raw: bytes) -> _Head:
        """Parse an answer's head, the empty line included.

        Raises:
            DaemonUnreachable: Not an answer of the daemon.
        """
        try:
            status_line, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
            version, status, *_ = status_line.split(" ")
            pairs = (line.partition(":") for line in lines)
            headers = {name.strip().lower(): value.strip().lower() for name, _, value in pairs}
            head = _Head(
                int(status), int(headers["content-length"]), headers.get("connection") == "close"
            )
        except (ValueError, KeyError) as error:
            raise _not_ours() from error
        if not version.startswith("HTTP/1.") or not 0 <= head.length <= BODY_BYTES_MAX:
            raise _not_ours()
        return head

    @staticmethod
    def answer(status: int, body: bytes) -> Document:
        """The document of a 2xx answer.

        Raises:
            SubagentsError: The class that the error document of any other answer names.
        """
        try:
            document = msgspec.json.decode(body, type=Document) if body else {}
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _not_ours() from error
        if 200 <= status < 300:
            return document
        raise error_from(document)


class Client:
    """Calls the daemon and blocks; one connection, one call at a time."""

    def __init__(
        self,
        socket_path: Path | str,
        *,
        session: str = DEFAULT_SESSION,
        reader: str | None = None,
        timeout_s: float = TIMEOUT_S,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Connects at the first call.

        Args:
            socket_path: The daemon's Unix socket.
            session: In whose name the calls are made; see 1-product "session".
            reader: Names this process as a reader of the inbox: offers are made per reader.
            timeout_s: Seconds to wait for one answer.
            headers: Sent with every call besides ours; printable ASCII, names in lower case. A
                worker's token goes along by itself.
        """
        sent = {**own_authorization(socket_path), **(headers or {})}
        self._codec = _Codec(session, reader or os.urandom(16).hex(), sent)
        self._path = str(socket_path)
        self._timeout_s = timeout_s
        self._connection: socket.socket | None = None
        self._used_at = 0.0

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
        request = self._codec.request(method, path, query, body)
        connection = self._connected()
        connection.settimeout(self._timeout_s + more_s)
        try:
            connection.sendall(request)
            raw, rest = self._receive_head(connection)
            head = self._codec.head(raw)
            content = bytearray(rest)
            while len(content) < head.length:
                content += self._receive(connection)
        except TimeoutError as error:
            self.close()
            raise _no_answer(self._timeout_s + more_s) from error
        except OSError as error:
            self.close()
            raise _gone(self._path, error) from error
        except BaseException:
            # An answer half read (Ctrl-C, say) would be taken for the next call's.
            self.close()
            raise
        if head.closes:
            self.close()
        self._used_at = time.monotonic()
        return self._codec.answer(head.status, bytes(content[: head.length]))

    def _connected(self) -> socket.socket:
        if self._connection is not None and time.monotonic() - self._used_at > IDLE_S:
            self.close()
        if self._connection is None:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(CONNECT_TIMEOUT_S)
            try:
                connection.connect(self._path)
            except OSError as error:
                connection.close()
                raise _gone(self._path, error) from error
            self._connection = connection
        return self._connection

    def _receive_head(self, connection: socket.socket) -> tuple[bytes, bytes]:
        content = bytearray()
        while (end := content.find(b"\r\n\r\n")) < 0:
            if len(content) > HEAD_BYTES_MAX:
                raise _not_ours()
            content += self._receive(connection)
        return bytes(content[: end + 4]), bytes(content[end + 4 :])

    def _receive(self, connection: socket.socket) -> bytes:
        content = connection.recv(256 * 1024)
        if not content:
            raise ConnectionResetError("it closed the connection")
        return content


class AsyncClient:
    """Calls the daemon from an event loop; each concurrent call has a connection of its own."""

    def __init__(
        self,
        socket_path: Path | str,
        *,
        session: str = DEFAULT_SESSION,
        reader: str | None = None,
        timeout_s: float = TIMEOUT_S,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Like ``Client``."""
        sent = {**own_authorization(socket_path), **(headers or {})}
        self._codec = _Codec(session, reader or os.urandom(16).hex(), sent)
        self._path = str(socket_path)
        self._timeout_s = timeout_s
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def get(
        self, path: str, query: Query | None = None, *, timeout_s: float | None = None
    ) -> Document:
        """Like ``Client.get``."""
        return await self._call("GET", path, query, None, timeout_s or 0.0)

    async def post(
        self, path: str, body: object = None, *, timeout_s: float | None = None
    ) -> Document:
        """Like ``Client.post``."""
        return await self._call("POST", path, None, {} if body is None else body, timeout_s or 0.0)

    async def aclose(self) -> None:
        """Close the connections that no call uses. Idempotent."""
        while self._idle:
            _, _, writer = self._idle.pop()
            await _close(writer)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _call(
        self, method: str, path: str, query: Query | None, body: object, more_s: float
    ) -> Document:
        import asyncio  # noqa: PLC0415

        request = self._codec.request(method, path, query, body)
        reader, writer = await self._connected()
        try:
            async with asyncio.timeout(self._timeout_s + more_s):
                writer.write(request)
                await writer.drain()
                head = self._codec.head(await reader.readuntil(b"\r\n\r\n"))
                content = await reader.readexactly(head.length)
        except TimeoutError as error:
            writer.transport.abort()
            raise _no_answer(self._timeout_s + more_s) from error
        except asyncio.LimitOverrunError as error:
            writer.transport.abort()
            raise _not_ours() from error
        except (OSError, EOFError) as error:
            writer.transport.abort()
            raise _gone(self._path, error) from error
        except BaseException:
            # Cancelled in the middle: the connection's state is unknown.
            writer.transport.abort()
            raise
        if head.closes or len(self._idle) >= IDLE_CONNECTIONS_MAX:
            await _close(writer)
        else:
            self._idle.append((time.monotonic(), reader, writer))
        return self._codec.answer(head.status, content)

    async def _connected(self) -> "tuple[asyncio.StreamReader, asyncio.StreamWriter]":
        import asyncio  # noqa: PLC0415

        while self._idle:
            used_at, reader, writer = self._idle.pop()
            if time.monotonic() - used_at <= IDLE_S and not reader.at_eof():
                return reader, writer
            await _close(writer)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                return await asyncio.open_unix_connection(self._path, limit=HEAD_BYTES_MAX)
        except OSError as error:
            raise _gone(self._path, error) from error


async def _close(writer: "asyncio.StreamWriter") -> None:
    writer.close()
    try:
        await writer.wait_closed()
    except OSError:
        # It was closed from the other side first, which is what was wanted.
        return


def own_authorization(socket_path: Path | str) -> dict[str, str]:
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


def segment(text: str) -> str:
    """One path segment of a URL: a selector may hold any character."""
    return quote(text, safe="")


def error_from(document: Mapping[str, object]) -> SubagentsError:
    """The exception an error document stands for, by its ``code``.

    An unknown code (a newer daemon) gives ``SubagentsError``, with the code in its details.
    """
    code = str(document.get("code", ""))
    found = document.get("details")
    details = dict(found) if isinstance(found, dict) else {}
    message = str(document.get("message") or document.get("error") or "the daemon gave no reason")
    said = document.get("hint")
    hint = said if isinstance(said, str) else None
    kind = _classes().get(code)
    if kind is Forbidden:
        return Forbidden(message, guardrail=str(details.get("guardrail", "")), hint=hint)
    if kind is RateLimited:
        return _rate_limited(message, details)
    if kind is None or kind is errors.IllegalTransition:
        return SubagentsError(message, hint=hint, details={**details, "code": code})
    return kind(message, hint=hint, details=details)


def _rate_limited(message: str, details: Mapping[str, object]) -> RateLimited:
    seconds = details.get("retryAfterSeconds")
    limit = str(details.get("limit") or message)
    return RateLimited(limit, retry_after_s=seconds if isinstance(seconds, int) else None)


def _classes() -> dict[str, type[SubagentsError]]:
    found: dict[str, type[SubagentsError]] = {}
    pending = [SubagentsError]
    while pending:
        kind = pending.pop()
        found.setdefault(kind.code, kind)
        pending += kind.__subclasses__()
    return found


def _gone(path: str, error: Exception) -> DaemonUnreachable:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if isinstance(error, EOFError):
        text = "it closed the connection"
    return DaemonUnreachable(
        f"no daemon answers at {path}: {text}",
        hint="start it: subagents up; find out why: subagents doctor",
        details={"socket": path},
    )


def _no_answer(seconds: float) -> DaemonUnreachable:
    return DaemonUnreachable(
        f"the daemon did not answer within {seconds:.0f} s", hint="see: subagents doctor"
    )


def _not_ours() -> DaemonUnreachable:
    return DaemonUnreachable(
        "what answers on the socket is not a subagents daemon", hint="see: subagents doctor"
    )


# -- starting it ---------------------------------------------------------------------------------


def answers(socket_path: Path | str) -> bool:
    """Whether a daemon answers there now; waits two seconds at most."""
    with Client(socket_path, timeout_s=2.0) as client:
        try:
            client.get("/healthz")
        except DaemonUnreachable:
            return False
        return True


def ensure_daemon(paths: Paths, environ: Mapping[str, str] | None = None) -> bool:
    """Start the daemon of this home unless one answers; many at once start one.

    Args:
        paths: The home; its directories are created.
        environ: For the daemon, the process's own when None; less what makes a worker of it.

    Returns:
        Whether this call started it.

    Raises:
        DaemonUnreachable: It did not answer within ten seconds, or ended at once; the message has
            the end of its log.
        ConfigError: A directory cannot be made.

    Source: 1-product "Ways to run it"; 5-surfaces §2.
    """
    if answers(paths.socket):
        return False
    import threading  # noqa: PLC0415

    paths.ensure()
    due = time.monotonic() + START_TIMEOUT_S
    with _start_lock(paths, due):
        if answers(paths.socket):
            return False
        process = _start(paths, dict(os.environ if environ is None else environ))
        while not answers(paths.socket):
            # It also ends at once when there is one that is only slow to answer.
            has_ended = process.poll() is not None and not _is_owned(paths)
            if has_ended or time.monotonic() > due:
                _did_not_start(paths, process.poll())
            time.sleep(START_POLL_S)
    # Nobody asks for its exit status, but a long-lived caller must not keep it as a zombie.
    threading.Thread(target=process.wait, name="daemon-reaper", daemon=True).start()
    return True


@contextmanager
def _start_lock(paths: Paths, due: float) -> Iterator[None]:
    try:
        lock = (paths.state_dir / "start.lock").open("ab")
    except OSError as error:
        raise _cannot_start(error) from error
    with lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # Whoever holds it is starting one; two seconds more, so that it fails first.
                if time.monotonic() > due + 2:
                    _did_not_start(paths, None)
                time.sleep(START_POLL_S)
            else:
                break
        yield


def _start(paths: Paths, environ: dict[str, str]) -> "subprocess.Popen[bytes]":
    import subprocess  # noqa: PLC0415

    for name in _WORKER_VARIABLES:
        environ.pop(name, None)
    if environ.get("SUBAGENTS_HOME"):
        # It may be relative, and the daemon works in /.
        environ["SUBAGENTS_HOME"] = str(paths.state_dir.parent)
    try:
        log = os.open(paths.log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _cannot_start(error) from error
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "subagents", "serve", "--background-child"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=environ,
            start_new_session=True,
        )
    finally:
        os.close(log)


def _is_owned(paths: Paths) -> bool:
    """Whether a daemon holds this home. Asked only after ours ended: it tries the same lock."""
    try:
        lock = paths.lock_file.open("rb")
    except OSError:
        return False
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _cannot_start(error: OSError) -> DaemonUnreachable:
    return DaemonUnreachable(
        f"the daemon cannot be started: {error.filename}: {error.strerror}",
        hint="make room or set SUBAGENTS_HOME to a directory you can write to",
    )


_OWN_NAME: Final = "subagents: "
_HINT: Final = "  hint: "
"""How ``subagents serve`` ends its last words, see ``cli.main``."""


def _did_not_start(paths: Paths, status: int | None) -> NoReturn:
    ended = "in time" if status is None else f"and ended with status {status}"
    lines = log_tail(paths.log_file).strip().splitlines()
    said = [line for line in lines if not line.startswith(_HINT)]
    hints = [line.removeprefix(_HINT) for line in lines[-1:] if line.startswith(_HINT)]
    last = f": {log_message(said[-1]).removeprefix(_OWN_NAME)}" if said else ""
    where = f"read {paths.log_file}, or run it in the foreground: subagents serve"
    raise DaemonUnreachable(
        f"the daemon did not start {ended}{last}",
        hint=hints[0] if hints else where,
        details={"log": str(paths.log_file), "tail": lines[-10:]},
    )


def log_message(line: str) -> str:
    """What a line of the daemon's log says; what it did not log itself stands as it is."""
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return line
    return str(found["message"]) if isinstance(found, dict) and "message" in found else line


def log_tail(file: Path) -> str:
    """The last 4 KiB of a log, "" when there is none."""
    try:
        with file.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - LOG_TAIL_BYTES))
            return log.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
