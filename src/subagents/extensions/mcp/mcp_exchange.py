"""One request of the MCP endpoint: who makes it, and which messages its answer hands over."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from subagents.api.answers.waking import Waker
from subagents.api.calls.auth import Caller
from subagents.api.calls.services import Services
from subagents.domain.run.values import MessageId
from subagents.errors import StoreUnavailable

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False)
class Exchange:
    """What one request knows beyond its JSON-RPC message."""

    services: Services
    caller: Caller
    call_id: str | None = None
    """Names the call over repetitions by the client (``X-Subagents-Call-Id``)."""
    waker: Waker | None = None
    """What the client said it does to wake its session (``X-Subagents-Wake``)."""
    client_acknowledges: bool = False
    """The client consumes what it was offered itself (``X-Subagents-Ack: explicit``)."""
    offered: list[MessageId] = field(default_factory=list)
    """Leased to the caller's reader for this answer."""
    _noted: set[MessageId] = field(default_factory=set)
    is_over: bool = False
    """The request has ended; an answer made after that reaches no client."""
    is_unwanted: bool = False
    """The client said so: it reads the answer, and throws it away."""

    def hand_over(self, message_ids: Iterable[MessageId]) -> None:
        """Let the answer carry these; given back at once when there is none to carry them."""
        if self.is_over:
            self.services.engine.mailbox.release(message_ids, reader=self.caller.reader)
            return
        self.offered.extend(each for each in message_ids if each not in self.offered)

    async def leave(self) -> None:
        """Before more of the answer is sent: note durably what it carries."""
        new = [each for each in self.offered if each not in self._noted]
        if not new:
            return
        self._noted.update(new)
        try:
            await self.services.engine.mailbox.note_returned(new, session=self.caller.session)
        except StoreUnavailable as error:
            # Not worth failing for: without the note the worker gets the same results once more.
            log.warning("what was returned to %s is not noted: %s", self.caller.session, error)

    def release(self) -> None:
        """Whatever was offered was not read: the next who asks may have it."""
        self.services.engine.mailbox.release(self.offered, reader=self.caller.reader)
        self.offered.clear()
