"""``subagents mcp --server=NAME``: one server of ``[mcp_servers]``, for the program of a worker.

Programs start their servers with little of their own environment, and show arguments to everybody.
So what a server needs is looked for in the environment of the worker above us, where its secrets
are. A command takes our place; one that answers over HTTP is spoken to line by line.
"""

import contextlib
import os
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

import msgspec

from subagents.extensions.mcp.bridge.bridge_rpc import (
    SERVER_ERROR,
    Call,
    decoded,
    error_message,
    event_data,
    version_in,
)
from subagents.extensions.mcp.bridge.daemon_link import say
from subagents.extensions.mcp.bridge.worker_above import (
    ANCESTORS_MAX,
    SECRET,
    SERVERS,
    TOKEN,
    ancestors,
    variables_of,
)

REFERENCE: Final = "secret:"
SILENCE_S: Final = 3_600.0
"""How long a server may say nothing to a request; its client has a shorter patience of its own."""
LINE_BYTES_MAX: Final = 16 * 1024 * 1024


class Definition(msgspec.Struct):
    """One server, with what is secret in it."""

    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}


class _Given(msgspec.Struct):
    servers: dict[str, Definition]
    secrets: dict[str, str]
    """The variable of each secret."""


def serve_named(name: str, environ: Mapping[str, str]) -> int:
    """Be that server until the input ends; returns the exit code."""
    found = definition(name, worker_environment(environ))
    if found is None:
        say(f"no worker above this process was given an MCP server {name!r}")
        return 1
    if found.url is not None:
        return RemoteServer(found.url, found.headers, sys.stdout.fileno()).run(sys.stdin.buffer)
    env = {n: v for n, v in environ.items() if n not in {TOKEN, SERVERS} and SECRET not in n}
    try:
        os.execvpe(str(found.command), [str(found.command), *found.args], env | found.env)  # noqa: S606 - no shell is meant
    except OSError as error:
        say(f"mcp_servers.{name}.command: {found.command} cannot be started: {error.strerror}")
    return 1


def worker_environment(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment of the worker that we are in: our own, or that of a process above us.

    With the token it is whole: some programs leave out just what is called a secret.
    """
    if TOKEN in environ:
        return environ
    above = map(variables_of, ancestors(ANCESTORS_MAX))
    return next((found for found in above if TOKEN in found), {})


def definition(name: str, environ: Mapping[str, str]) -> Definition | None:
    """What the worker was given under that name, with its secrets; None = nothing."""
    if SERVERS not in environ:
        return None
    given = msgspec.json.decode(environ[SERVERS], type=_Given)
    found = given.servers.get(name)
    if found is None:
        return None

    def filled(value: str) -> str:
        before, blank, last = value.rpartition(" ")
        if not last.startswith(REFERENCE):
            return value
        secret = environ[given.secrets[last.removeprefix(REFERENCE)]]
        return f"{before}{blank}{secret}"

    env = {each: filled(value) for each, value in found.env.items()}
    headers = {each: filled(value) for each, value in found.headers.items()}
    return msgspec.structs.replace(found, env=env, headers=headers)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Another place must not get the headers."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class RemoteServer:
    """Speaks with a server over streamable HTTP for a client on stdin and stdout."""

    def __init__(self, url: str, headers: Mapping[str, str], stdout: int) -> None:
        """
        Args:
            url: Where it answers.
            headers: Sent with each request.
            stdout: The descriptor its messages are written to.
        """
        self._url = url
        self._headers = dict(headers)
        self._stdout = stdout
        self._opener = urllib.request.build_opener(_NoRedirects)
        self._lock = threading.Lock()
        self._version: str | None = None
        self._session: str | None = None

    def run(self, stdin: BinaryIO) -> int:
        """Serve until the input ends; returns the exit code."""
        number = 0
        while line := stdin.readline(LINE_BYTES_MAX):
            message = decoded(line)
            number += 1
            params = message.get("params")
            call = Call(
                number,
                message.get("id", 0),
                str(message.get("method", "response")),
                params if isinstance(params, dict) else {},
                line.strip(),
            )
            is_request = "id" in message and "method" in message
            if is_request and call.method != "initialize":
                threading.Thread(target=self._ask, args=(call, True), daemon=True).start()
            elif call.body:
                # What follows needs the session that this begins, or has to come behind it.
                self._ask(call, is_request)
        if self._session is not None:
            self._end()
        return 0

    def _ask(self, call: Call, is_request: bool) -> None:  # noqa: FBT001 - of a thread
        try:
            for data in self._answers(call):
                self._write(data)
        except (OSError, ValueError) as error:
            if is_request:
                text = f"the MCP server at {self._url} did not answer: {error}"
                self._write(error_message(call.id, SERVER_ERROR, text))

    def _answers(self, call: Call) -> Iterator[bytes]:
        headers = {
            **call.headers(self._version),
            **({} if self._session is None else {"mcp-session-id": self._session}),
            "content-type": "application/json",
            **self._headers,
        }
        request = urllib.request.Request(self._url, call.body, headers, method="POST")  # noqa: S310 - the configuration takes http and https alone
        with self._opener.open(request, timeout=SILENCE_S) as answer:
            self._session = answer.headers.get("mcp-session-id") or self._session
            if "text/event-stream" not in answer.headers.get("content-type", ""):
                found = iter([data] if (data := answer.read()).strip() else [])
            else:
                found = _events(answer)
            for data in found:
                if call.method == "initialize":
                    self._version = version_in(decoded(data)) or self._version
                yield data

    def _end(self) -> None:
        headers = {**self._headers, "mcp-session-id": str(self._session)}
        request = urllib.request.Request(self._url, headers=headers, method="DELETE")  # noqa: S310 - as above
        with contextlib.suppress(OSError):  # it knows no end of sessions, or is gone
            self._opener.open(request, timeout=2).close()

    def _write(self, message: bytes) -> None:
        with self._lock:
            left = memoryview(message.replace(b"\n", b" ") + b"\n")
            while left:
                left = left[os.write(self._stdout, left) :]


def _events(answer: Any) -> Iterator[bytes]:
    """The data of each event of a stream, as it comes."""
    event = bytearray()
    for line in answer:
        if line.strip():
            event += line.replace(b"\r", b"")
        elif event:
            if data := event_data(bytes(event)):
                yield data
            event.clear()
