"""A thread in a Matrix room for every session with ``thread: true``, and what is said there.

Out goes the journal, see ``journal_export``: the transaction of a post is its event, so that the
homeserver knows one that comes twice. In come replies of the users who are allowed to: to an open
question as its answer, else into the session, both through the daemon's own HTTP API. What a
reply was taken for is written down before it is acted upon, so that after ``kill -9`` the same
reply means the same.

Why: docs/decisions/0055-chat-threads-follow-the-journal.md.
"""

import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol
from urllib.parse import quote

import msgspec

from subagents.client.transport import Connection, Gone, request
from subagents.domain.run.run import Request, Run
from subagents.domain.run.values import RequestId, RunId
from subagents.durable_files import replace_file
from subagents.errors import StoreUnavailable
from subagents.extensions.notifications.matrix_room import Document, MatrixRoom, Said, said
from subagents.extensions.notifications.thread_posts import POSTED, Post, posts
from subagents.followers.journal_export import (
    RETRY_S_MAX,
    JournalExport,
    ReceiverRefused,
    ReceiverUnavailable,
)
from subagents.ports import Batch, FeedEntry, Store, readable
from subagents.text import chosen

log = logging.getLogger(__name__)

MESSAGE: Final = "m.room.message"
TAKEN: Final = "✅"
YES: Final = frozenset({"yes", "y", "approve", "ok"})
NO: Final = frozenset({"no", "n", "deny"})
ANSWER_S_MAX: Final = 30.0


class Known(msgspec.Struct, rename="camel"):
    """The content of the file."""

    room: str
    """Where all this is; another room starts over."""
    since: str | None = None
    """Everything said up to here was taken; None = nothing is known yet."""
    threads: dict[str, str] = {}
    """Session (its first run) → the event that its thread begins with."""
    questions: dict[str, str] = {}
    """Event → the question that it is, while it is open."""
    meant: dict[str, str] = {}
    """Reply behind ``since`` → the question that it answers; empty = it is a message."""


class Taken(NamedTuple):
    """What became of a reply."""

    problem: str | None = None
    """Why it was not taken, for people; None = it was."""


class Inward(Protocol):
    """Brings what people say to the runs. Blocking; the same twice is one."""

    def answer(self, request: RequestId, text: str, decision: str) -> Taken:
        """Answer a question; raises ReceiverUnavailable to be asked again."""
        ...

    def say(self, thread: RunId, text: str, message_id: str) -> Taken:
        """Put a message into a session; raises ReceiverUnavailable to be asked again."""
        ...


class ChatThreads(JournalExport):
    """See the module's text, and ``ports.Exporter``.

    Args:
        room: Where the threads are.
        users: Whose replies count.
        inward: Where they go.
        store: Where runs and their journals are read.
        file: Holds the cursor; ``<name>-room.json`` next to it what is known of the room.
    """

    def __init__(
        self,
        *,
        room: MatrixRoom,
        users: Collection[str],
        inward: Inward,
        store: Store,
        file: Path,
    ) -> None:
        super().__init__(what="chat threads", endpoint=room.where, store=store, file=file)
        self._room = room
        self._users = tuple(users)
        self._inward = inward
        self._known_file = file.with_name(f"{file.stem}-room.json")
        self._known = _read(self._known_file, room.where)
        self._lock = threading.Lock()
        """Held while what is known is read or written, and from a post until it is known."""

    # -- life ------------------------------------------------------------------------------

    def start(self) -> None:
        """See ``JournalExport.start``."""
        super().start()
        # Nobody waits for its end: once we stop it acts on nothing more, and what it was at is
        # done again by the next one.
        threading.Thread(target=self._listen, name="chat replies", daemon=True).start()

    def _close(self) -> None:
        self._room.close()

    # -- out -------------------------------------------------------------------------------

    def _concerns(self, batch: Batch) -> bool:
        return any(type(each.event) in POSTED for each in batch.journal)

    def _send_page(self, page: Sequence[FeedEntry]) -> None:
        for found in page:
            run = self._bound(found)
            if run is not None:
                for number, post in enumerate(posts(run, found.entry)):
                    if post.is_last and run.id in self._ends_told:
                        continue
                    place = "end" if post.is_last else f"{found.entry.seq}.{number}"
                    self._post(run, post, f"{run.id}.{place}")
                    if post.is_last:
                        self._remember_end(run.id)
            self._number = found.number
            if run is not None:
                self._save()

    def _bound(self, found: FeedEntry) -> Run | None:
        if type(found.entry.event) not in POSTED:
            return None
        run = readable(self._store, found.entry.run_id)
        is_ours = run is not None and run.spec.thread and run.lineage.requester_run is None
        return run if is_ours else None

    def _post(self, run: Run, post: Post, transaction: str) -> None:
        with self._lock:
            begins = self._known.threads.get(run.root)
            if begins is None and not post.is_first:
                return  # its thread is from before there was a room, or in another one
            if post.request is not None and post.request in self._known.questions.values():
                return  # two events of one instant may have brought it
            content = _content(post, begins, self._users if post.is_loud else ())
            try:
                event_id = self._room.send(MESSAGE, content, transaction=transaction)
            except ReceiverRefused as error:
                self._refused(f"{self._state.endpoint} refused a message: {error}")
                return
            if post.is_first:
                self._known.threads[run.root] = event_id
            if post.request is not None:
                self._known.questions[event_id] = post.request
            if post.is_first or post.request is not None:
                self._save_known()
        self._sent()

    # -- in --------------------------------------------------------------------------------

    def _listen(self) -> None:
        pause_s = self.retry_first_s
        where, is_deaf = self._state.endpoint, False
        while not self._stopping.is_set():
            try:
                self.poll()
                if is_deaf:
                    log.info("replies are heard from %s again", where)
                pause_s, is_deaf = self.retry_first_s, False
            except (ReceiverUnavailable, ReceiverRefused, StoreUnavailable, OSError) as error:
                if not is_deaf and not self._stopping.is_set():
                    log.warning("no replies are heard from %s, trying again: %s", where, error)
                is_deaf = True
                self._stopping.wait(pause_s)
                pause_s = min(pause_s * 2, RETRY_S_MAX)
            except Exception:
                # A mistake of ours must be seen, and must not end the listening for good.
                log.exception("listening to %s broke", where)
                self._stopping.wait(RETRY_S_MAX)

    def poll(self) -> None:
        """Take what was said since the last time; wait a while for it.

        Raises:
            ReceiverUnavailable: It is asked again; what was taken already is known.
            OSError: What was taken cannot be written down.
        """
        since = self._known.since
        newest, events = self._room.sync(since)
        for event in events if since is not None else ():
            if self._stopping.is_set():
                return
            self._receive(event)
        with self._lock:
            self._known.since = newest
            self._known.meant.clear()
            if newest != since:
                self._save_known()

    def _receive(self, event: Document) -> None:
        reply = said(event)
        if reply is None or reply.sender not in self._users or reply.sender == self._room.me:
            return
        with self._lock:
            thread = self._thread_of(reply)
            if thread is None or not reply.text:
                return
            meant = self._known.meant.get(reply.event_id)
            if meant is None:
                asked = self._asked(thread, reply)
                meant = "" if asked is None else asked.id
                self._known.meant[reply.event_id] = meant
                self._save_known()
        taken = self._take(thread, reply, RequestId(meant))
        self._tell(reply, self._known.threads[thread], taken)

    def _thread_of(self, reply: Said) -> RunId | None:
        threads = self._known.threads.items()
        return next((RunId(run) for run, event in threads if event == reply.thread), None)

    def _asked(self, thread: RunId, reply: Said) -> Request | None:
        """The open question that a reply answers: the one it names, or else the newest."""
        found: list[tuple[str, Request]] = []
        for event, request_id in list(self._known.questions.items()):
            run = readable(self._store, _run_of(request_id))
            request = None if run is None else _pending(run, request_id)
            if run is None or request is None:
                del self._known.questions[event]
            elif run.root == thread:
                found.append((event, request))
        named = [request for event, request in found if event == reply.replies_to]
        return named[0] if named else found[-1][1] if found else None

    def _take(self, thread: RunId, reply: Said, meant: RequestId) -> Taken:
        if not meant:
            return self._inward.say(thread, reply.text, reply.event_id)
        run = readable(self._store, _run_of(meant))
        asked = [] if run is None else [each for each in run.questions.requests if each.id == meant]
        if not asked:
            return Taken("the question is gone")
        (request,) = asked
        if not request.by_spawn:
            return self._inward.answer(meant, chosen(reply.text, request.options), "answer")
        word = reply.text.lower().rstrip(".!")
        if word not in YES | NO:
            return Taken("reply yes or no")
        return self._inward.answer(meant, reply.text, "approve" if word in YES else "deny")

    def _tell(self, reply: Said, begins: str, taken: Taken) -> None:
        """Show whoever wrote it what became of it."""
        relation: dict[str, object] = {"event_id": reply.event_id, "key": TAKEN}
        kind = "m.reaction"
        content: Mapping[str, object] = {
            "m.relates_to": {**relation, "rel_type": "m.annotation"},
        }
        if taken.problem is not None:
            kind = MESSAGE
            content = _content(Post(f"Not taken: {taken.problem}"), begins, ())
        try:
            self._room.send(kind, content, transaction=f"reply.{reply.event_id}")
        except ReceiverRefused as error:
            log.warning("%s refused a message: %s", self._state.endpoint, error)

    def _save_known(self) -> None:
        replace_file(self._known_file, msgspec.json.encode(self._known))


class OwnApi:
    """``Inward`` over the daemon's own socket, as any other client of the operator's."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def answer(self, request: RequestId, text: str, decision: str) -> Taken:
        """See ``Inward``."""
        path = f"requests/{quote(request, safe='')}/respond"
        return self._post(path, {"response": text, "decision": decision})

    def say(self, thread: RunId, text: str, message_id: str) -> Taken:
        """See ``Inward``."""
        return self._post(f"threads/{thread}/messages", {"text": text, "messageId": message_id})

    def _post(self, path: str, body: Mapping[str, str]) -> Taken:
        connection = Connection(self._socket)
        try:
            sent = request("POST", f"/v1/{path}", {}, msgspec.json.encode(body))
            answer, content = connection.exchange(sent, timeout_s=ANSWER_S_MAX)
        except Gone as error:
            raise ReceiverUnavailable(f"the daemon: {error}") from error
        finally:
            connection.close()
        if 200 <= answer.status < 300:
            return Taken()
        try:
            document = msgspec.json.decode(content, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeDecodeError):
            document = {}
        problem = str(document.get("message") or f"the daemon answered {answer.status}")
        if document.get("retryable") is True or answer.status >= 500:
            raise ReceiverUnavailable(problem)
        return Taken(problem)


def _content(post: Post, begins: str | None, mentioned: Sequence[str]) -> Document:
    # Plain text: nothing that a worker writes is markup. Who is not mentioned is not woken.
    kind = "m.text" if post.is_loud or post.is_first else "m.notice"
    content: Document = {
        "msgtype": kind,
        "body": post.text,
        "m.mentions": {"user_ids": list(mentioned)} if mentioned else {},
    }
    if begins is not None:
        content["m.relates_to"] = {
            "rel_type": "m.thread",
            "event_id": begins,
            "is_falling_back": True,
            "m.in_reply_to": {"event_id": begins},
        }
    return content


def _run_of(request_id: str) -> RunId:
    return RunId(request_id.partition(":")[0])


def _pending(run: Run, request_id: str) -> Request | None:
    return next((each for each in run.pending_requests if each.id == request_id), None)


def _read(file: Path, room: str) -> Known:
    try:
        known = msgspec.json.decode(file.read_bytes(), type=Known)
    except FileNotFoundError:
        return Known(room=room)
    except msgspec.DecodeError as error:
        log.warning("%s cannot be read, threads begin anew: %s", file, error)
        return Known(room=room)
    return known if known.room == room else Known(room=room)
