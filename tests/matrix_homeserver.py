"""A homeserver with one room, as far as the client-server API says what a bot meets."""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from subagents.extensions.notifications.matrix_room import MatrixRoom

ROOM = "!room:example.org"
BOT = "@bot:example.org"
YOU = "@you:example.org"
BOUND_S = 90.0
Document = dict[str, Any]


class Homeserver:
    """What was said, in its order; a token of ``sync`` is how much of it was seen."""

    def __init__(self) -> None:
        self.events: list[Document] = []
        self.transactions: dict[str, str] = {}
        self.sends = 0
        self.is_encrypted = False
        self.down: tuple[int, Document] | None = None
        """Every request is answered with this; None = it works."""
        self.timeline_max = 100
        self.changed = threading.Condition()
        self.is_closed = False
        self.url = ""

    def room(self) -> MatrixRoom:
        return MatrixRoom(self.url, ROOM, "token", lambda name: f"the secret {name}")

    def add(self, sender: str, kind: str, content: Document) -> str:
        with self.changed:
            event_id = f"$event{len(self.events)}"
            self.events.append(
                {"event_id": event_id, "sender": sender, "type": kind, "content": content}
            )
            self.changed.notify_all()
            return event_id

    def reply(self, thread: str, text: str, *, sender: str = YOU, to: str | None = None) -> str:
        """What a person's program sends when they write into a thread."""
        relation = {
            "rel_type": "m.thread",
            "event_id": thread,
            "is_falling_back": to is None,
            "m.in_reply_to": {"event_id": to or thread},
        }
        content = {"msgtype": "m.text", "body": text, "m.relates_to": relation}
        return self.add(sender, "m.room.message", content)

    def texts(self) -> list[str]:
        """What the bot has written."""
        return [each["content"]["body"] for each in self._bots("m.room.message")]

    def reactions(self) -> list[str]:
        """To what it has reacted."""
        return [each["content"]["m.relates_to"]["event_id"] for each in self._bots("m.reaction")]

    def event(self, word: str) -> Document:
        """The bot's message with that word in it, once it is there."""

        def find() -> Document | None:
            found = self._bots("m.room.message")
            return next((each for each in found if word in each["content"]["body"]), None)

        with self.changed:
            assert self.changed.wait_for(lambda: find() is not None, BOUND_S), self.texts()
            found = find()
            assert found is not None
            return found

    def _bots(self, kind: str) -> list[Document]:
        return [each for each in self.events if (each["sender"], each["type"]) == (BOT, kind)]

    # -- the API ---------------------------------------------------------------------------

    def answer(self, method: str, target: str, token: str, body: Document) -> tuple[int, Document]:
        if self.down is not None:
            return self.down
        if token != "Bearer token":
            return 401, {"errcode": "M_UNKNOWN_TOKEN", "error": "Unrecognised access token"}
        parts = urlsplit(target)
        query = {name: found[0] for name, found in parse_qs(parts.query).items()}
        match method, unquote(parts.path).removeprefix("/_matrix/client/v3/").split("/"):
            case "GET", ["account", "whoami"]:
                return 200, {"user_id": BOT}
            case "POST", ["join", _]:
                return 200, {"room_id": ROOM}
            case "GET", ["rooms", _, "state", "m.room.encryption"] if self.is_encrypted:
                return 200, {"algorithm": "m.megolm.v1.aes-sha2"}
            case "PUT", ["rooms", _, "send", kind, transaction]:
                return 200, {"event_id": self._sent(kind, transaction, body)}
            case "GET", ["sync"]:
                return 200, self._synced(query)
            case "GET", ["rooms", _, "messages"]:
                return 200, self._page(query)
            case _:
                return 404, {"errcode": "M_NOT_FOUND", "error": "not there"}

    def _sent(self, kind: str, transaction: str, body: Document) -> str:
        with self.changed:
            self.sends += 1
            if transaction not in self.transactions:
                self.transactions[transaction] = self.add(BOT, kind, body)
            return self.transactions[transaction]

    def _synced(self, query: dict[str, str]) -> Document:
        since = int(query["since"]) if "since" in query else None
        with self.changed:
            if since is not None:
                self.changed.wait_for(
                    lambda: self.is_closed or len(self.events) > since,
                    min(int(query["timeout"]) / 1000, BOUND_S),
                )
            known = len(self.events)
            begin = max(since or 0, known - self.timeline_max)
            timeline = {
                "events": self.events[begin:known],
                "limited": begin > (since or 0),
                "prev_batch": str(begin),
            }
        return {"next_batch": str(known), "rooms": {"join": {ROOM: {"timeline": timeline}}}}

    def _page(self, query: dict[str, str]) -> Document:
        at, to = int(query["from"]), int(query["to"])
        begin = max(to, at - self.timeline_max)
        page: Document = {"chunk": self.events[begin:at][::-1], "start": query["from"]}
        return page | ({"end": str(begin)} if begin > to else {})


@contextlib.contextmanager
def homeserver() -> Iterator[Homeserver]:
    """One on a free port of this machine."""
    kept = Homeserver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            token = self.headers.get("Authorization", "")
            status, found = kept.answer(
                self.command, self.path, token, json.loads(body) if body else {}
            )
            content = json.dumps(found).encode()
            with contextlib.suppress(OSError):  # whoever asked may be gone
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        do_GET = do_POST = do_PUT = take  # noqa: N815 - the names http.server asks for

        def log_message(self, *_args: Any) -> None:
            """Nothing on the terminal."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_args: Any) -> None:
            """Whoever asked was killed: nothing on the terminal."""

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    kept.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield kept
    finally:
        with kept.changed:
            kept.is_closed = True
            kept.changed.notify_all()
        server.shutdown()
        thread.join()
        server.server_close()
