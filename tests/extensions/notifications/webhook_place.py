"""A real HTTP server that takes announcements, refuses them, or never answers."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.couriers.courier_places import ELSEWHERE, OUTSIDE, Willingness

from subagents.config.settings import Agent, AgentCourier, Settings
from subagents.domain.run.run import Run
from subagents.domain.run.values import SessionKey
from subagents.extensions.notifications.webhook_courier import WebhookCourier
from subagents.extensions.testing.conformance import Received

BOUND_S = 60.0


class Posted(NamedTuple):
    """One request as the server saw it."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


class Answering(NamedTuple):
    """What it answers."""

    status: int = 204
    headers: Mapping[str, str] = {}
    body: bytes = b""


class Server(ThreadingHTTPServer):
    """Its own queue holds five."""

    daemon_threads = True
    request_queue_size = 128


class WebhookPlace(Willingness):
    """Notes what it was told; told twice, it notes it twice."""

    target = OUTSIDE
    requester: Run | None = None
    stranger: tuple[SessionKey, Run | None] = (ELSEWHERE, None)
    dedupes = False

    def __init__(self, directory: Path, *, secret_env: str | None = None) -> None:
        super().__init__(directory)
        self.posted: list[Posted] = []
        self.answers: Callable[[Posted], Answering] = lambda _: Answering()
        self.environ: dict[str, str] = {}
        self.open = 0
        self.link_local = False
        self._secret_env = secret_env
        self._changed = threading.Condition()
        self._server = Server(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook?to=me"
        self._serving = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._serving.start()

    def close(self) -> None:
        self.mend()
        self._server.shutdown()
        self._server.server_close()
        self._serving.join(BOUND_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def courier(self) -> WebhookCourier:
        return WebhookCourier(self.settings, self.environ)

    def settings(self) -> Settings:
        section = AgentCourier(
            webhook=self.url,
            webhook_secret_env=self._secret_env,
            webhook_link_local=self.link_local,
        )
        return Settings(agents={"main": Agent(courier=section), "other": Agent()})

    def until(self, number: int) -> list[Posted]:
        """What was posted, once it is so many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.posted) >= number, BOUND_S), self.posted
            return list(self.posted)

    def received(self) -> Sequence[Received]:
        return [
            Received(each.headers["Idempotency-Key"], each.document["text"]) for each in self.posted
        ]

    def left_behind(self) -> int:
        """Connections that are still open."""
        with self._changed:
            self._changed.wait_for(lambda: self.open == 0, BOUND_S)
            return self.open

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        place = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                place.take(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        return Handler

    def take(self, request: BaseHTTPRequestHandler) -> None:
        with self._changed:
            self.open += 1
        try:
            body = request.rfile.read(int(request.headers["Content-Length"]))
            found = Posted(request.path, dict(request.headers.items()), body)
            if (self.directory / "hang").exists():
                (self.directory / "begun").touch()
                request.rfile.read(1)  # returns when the other side hangs up
                return
            if (self.directory / "refuse").exists():
                self._answer(request, Answering(503, {}, "\u2603 go away".encode()))
                return
            answer = self.answers(found)
            if 200 <= answer.status < 300:
                with self._changed:
                    self.posted.append(found)
                    self._changed.notify_all()
            self._answer(request, answer)
        finally:
            with self._changed:
                self.open -= 1
                self._changed.notify_all()

    def _answer(self, request: BaseHTTPRequestHandler, answer: Answering) -> None:
        request.send_response(answer.status)
        for name, value in {**answer.headers, "Content-Length": str(len(answer.body))}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(answer.body)
