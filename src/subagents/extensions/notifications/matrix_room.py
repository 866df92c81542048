"""One room of a Matrix homeserver, by the client-server API; every call blocks.

Only requests from here to the homeserver: it needs no address that others can reach.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

import msgspec

from subagents.domain.run.secret_reference import PREFIX
from subagents.errors import SubagentsError
from subagents.followers.journal_export import ReceiverRefused, ReceiverUnavailable
from subagents.installation import extra_command
from subagents.text import one_line

if TYPE_CHECKING:
    import httpx2

CALL_S_MAX: Final = 30.0
SYNC_WAIT_S: Final = 25.0
"""The homeserver holds a sync so long when nothing is said; stopping closes it sooner."""
GAP_PAGE: Final = 100
ERROR_CHARS_MAX: Final = 300
NEVER: Final = frozenset({400, 413})
"""What is wrong with the message itself; anything else (a token, a membership) can be mended."""

Document = dict[str, object]


class Said(NamedTuple):
    """A message in the room."""

    event_id: str
    sender: str
    text: str
    thread: str | None
    """The event that its thread begins with, or that it replies to outside of one."""
    replies_to: str | None
    """What it was written as a reply to by hand; None = to nothing in particular."""


class MatrixRoom:
    """See the module's text.

    Args:
        homeserver: ``https://matrix.example.org``.
        room: ``!id:server`` or ``#alias:server``; joined at the first call.
        token: The bot's access token, or ``secret:NAME``; asked again after it was refused.
        secret: The value behind a name; raises SubagentsError.
    """

    def __init__(
        self, homeserver: str, room: str, token: str, secret: Callable[[str], str]
    ) -> None:
        self.where = f"{room} at {homeserver}"
        self._base = homeserver.rstrip("/")
        self._room = room
        self._given = token
        self._secret = secret
        self._token: str | None = None
        self._id: str | None = None
        self._me: str | None = None
        self._client: httpx2.Client | None = None

    @property
    def room_id(self) -> str:
        """Its id, ``!…``; joins it when it is not known yet."""
        if self._id is None:
            answer = self._call("POST", f"join/{quote(self._room, safe='')}", {})
            self._id = _text(answer, "room_id")
        return self._id

    @property
    def me(self) -> str:
        """The bot's own user id."""
        if self._me is None:
            self._me = _text(self._call("GET", "account/whoami"), "user_id")
        return self._me

    def is_encrypted(self) -> bool:
        """Whether what is said there is encrypted between its members, which we cannot read."""
        try:
            self._call("GET", f"{self._path()}/state/m.room.encryption")
        except NotThere:
            return False
        return True

    def send(self, kind: str, content: Mapping[str, object], *, transaction: str) -> str:
        """Put an event into the room; the same transaction twice is one event.

        Returns:
            Its id.

        Raises:
            ReceiverUnavailable: Try again later, with the same transaction.
            ReceiverRefused: Trying again is no use.
        """
        path = f"{self._path()}/send/{kind}/{quote(transaction, safe='')}"
        return _text(self._call("PUT", path, content), "event_id")

    def sync(self, since: str | None) -> tuple[str, list[Document]]:
        """Wait for what is said behind ``since``; at once when that is None.

        Returns:
            Where to go on, and the events of the room, oldest first, without a gap.

        Raises:
            ReceiverUnavailable: Try again later.
        """
        room_id = self.room_id
        nothing = {"not_types": ["*"]}
        timeline = {"types": ["m.room.message"], "limit": GAP_PAGE}
        narrowed = {
            "room": {
                "rooms": [room_id],
                "timeline": timeline,
                **dict.fromkeys(("state", "ephemeral", "account_data"), nothing),
            },
            **dict.fromkeys(("presence", "account_data"), nothing),
        }
        query = {"filter": msgspec.json.encode(narrowed).decode()}
        if since is not None:
            query |= {"since": since, "timeout": str(round(SYNC_WAIT_S * 1000))}
        answer = self._call("GET", "sync", query=query, wait_s=SYNC_WAIT_S)
        found = _at(answer, "rooms", "join", room_id, "timeline")
        events = _documents(found.get("events"))
        before = found.get("prev_batch")
        if since is not None and found.get("limited") is True and isinstance(before, str):
            events = [*reversed(list(self._between(before, since))), *events]
        return _text(answer, "next_batch"), events

    def _between(self, newest: str, oldest: str) -> Iterator[Document]:
        """What a sync left out, newest first."""
        narrowed = msgspec.json.encode({"types": ["m.room.message"]}).decode()
        at: object = newest
        while isinstance(at, str):
            query = {
                "dir": "b",
                "from": at,
                "to": oldest,
                "limit": str(GAP_PAGE),
                "filter": narrowed,
            }
            answer = self._call("GET", f"{self._path()}/messages", query=query)
            chunk = _documents(answer.get("chunk"))
            yield from chunk
            at = answer.get("end") if chunk and answer.get("end") != at else None

    def close(self) -> None:
        """Break off what waits; a later call starts over. May be called from any thread."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _path(self) -> str:
        return f"rooms/{quote(self.room_id, safe='')}"

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        wait_s: float = 0.0,
    ) -> Document:
        try:
            import httpx2  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ReceiverUnavailable(
                f"{self.where} needs httpx2: {extra_command('notify')}"
            ) from error
        if self._client is None:
            self._client = httpx2.Client(follow_redirects=False)
        try:
            answer = self._client.request(
                method,
                f"{self._base}/_matrix/client/v3/{path}",
                content=None if body is None else msgspec.json.encode(body),
                params=query,
                headers={"Authorization": f"Bearer {self._bearer()}"},
                timeout=CALL_S_MAX + wait_s,
            )
        except (httpx2.HTTPError, httpx2.InvalidURL, RuntimeError, OSError) as error:
            # A client that was closed meanwhile raises a RuntimeError.
            text = f"{self._base}: {type(error).__name__}: {error}".rstrip(": ")
            raise ReceiverUnavailable(text) from error
        try:
            document = msgspec.json.decode(answer.content, type=Document)
        except (msgspec.DecodeError, UnicodeDecodeError):
            document = {}
        if answer.is_success:
            return document
        if answer.status_code == 401:
            self._token = None
        said = one_line(str(document.get("error", "")), ERROR_CHARS_MAX)
        text = f"{self._base} answered {answer.status_code}"
        text += f" {document.get('errcode', '')}: {said}".rstrip(": ")
        if answer.status_code == 404:
            raise NotThere(text)
        if answer.status_code in NEVER:
            raise ReceiverRefused(text)
        raise ReceiverUnavailable(text)

    def _bearer(self) -> str:
        # Kept only once it is whole: two threads call.
        token = self._token
        if token is None:
            token = self._given
            if token.startswith(PREFIX):
                try:
                    token = self._secret(token.removeprefix(PREFIX))
                except SubagentsError as error:
                    raise ReceiverUnavailable(error.message) from error
            self._token = token
        return token


class NotThere(ReceiverUnavailable):
    """404."""


def said(event: Document) -> Said | None:
    """The message that an event is; None = it is none, or the new text of an old one."""
    content = _at(event, "content")
    text = content.get("body")
    relation = _at(content, "m.relates_to")
    kind = relation.get("rel_type")
    if event.get("type") != "m.room.message" or not isinstance(text, str) or kind == "m.replace":
        return None
    replied = _at(relation, "m.in_reply_to").get("event_id")
    is_thread = kind == "m.thread"
    by_hand = replied if not (is_thread and relation.get("is_falling_back") is True) else None
    thread = relation.get("event_id") if is_thread else replied
    if replied is not None:
        text = _without_quote(text)
    return Said(
        event_id=str(event.get("event_id", "")),
        sender=str(event.get("sender", "")),
        text=text.strip(),
        thread=thread if isinstance(thread, str) else None,
        replies_to=by_hand if isinstance(by_hand, str) else None,
    )


def _without_quote(text: str) -> str:
    """Older programs put what is replied to before a reply, each line with ``>``."""
    if not text.startswith("> <"):
        return text
    lines = text.split("\n")
    while lines and lines[0].startswith(">"):
        lines.pop(0)
    return "\n".join(lines)


def _text(document: Mapping[str, object], key: str) -> str:
    found = document.get(key)
    if not isinstance(found, str):
        raise ReceiverUnavailable(f"the homeserver's answer has no {key}")
    return found


def _at(document: Mapping[str, object], *keys: str) -> Document:
    found: object = document
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _documents(found: object) -> list[Document]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
