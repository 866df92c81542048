"""Local receivers of notifications: an HTTP server and a mail server that keep what they get."""

import contextlib
import threading
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tests.free_ports import free_port


class Request(NamedTuple):
    """What came over HTTP."""

    method: str
    path: str
    authorization: str | None
    body: str


class HttpReceiver:
    """Answers every request with ``status`` and ``answer``."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.status = 200
        self.answer = "{}"
        self.port = 0


@contextlib.contextmanager
def http_receiver() -> Iterator[HttpReceiver]:
    """One on a free port of this machine."""
    kept = HttpReceiver()

    class Handler(BaseHTTPRequestHandler):
        def take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            sent_by = self.headers.get("Authorization")
            kept.requests.append(Request(self.command, self.path, sent_by, body))
            self.send_response(kept.status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(kept.answer.encode())

        do_GET = do_POST = do_PUT = take  # noqa: N815 - the names http.server asks for

        def log_message(self, *_args: Any) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Letters:
    def __init__(self) -> None:
        self.kept: list[Message] = []

    async def handle_DATA(  # noqa: N802 - the name aiosmtpd asks for
        self, _server: object, _session: object, envelope: Any
    ) -> str:
        self.kept.append(message_from_bytes(envelope.content))
        return "250 taken"


@contextlib.contextmanager
def mail_receiver() -> Iterator[tuple[int, list[Message]]]:
    """A mail server's port, and the letters it got."""
    from aiosmtpd.controller import Controller  # noqa: PLC0415 - only this one needs it

    letters = _Letters()
    # It asks at its port whether it is up, and cannot do that at port 0.
    port = free_port()
    controller = Controller(letters, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield port, letters.kept
    finally:
        controller.stop()
