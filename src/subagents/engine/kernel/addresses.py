"""Whose inbox a message goes to, when the agent that spawned its run may have ended.

The end of a run is for whoever will still make something of it: an agent that waits for its
children gets one more turn, or their results become its own. What a worker *asks* is for one that
can answer now: an agent whose turn is over cannot, and waits for the very run that asks.
"""

from collections.abc import Callable, Iterator, Mapping

from subagents.domain.run.run import HOLDS_SLOT, Message, Run
from subagents.domain.run.values import MessageId, RunId, SessionKey, replace

Runs = Mapping[RunId, Run]
"""All open runs; a parent stays among them as long as its children."""


def answering_inbox(live: Runs, run: Run) -> SessionKey:
    """The inbox of the nearest ancestor whose agent is at work, in the end the top-level one."""
    return nearest_inbox(live, run, lambda parent: parent.phase in HOLDS_SLOT)


def nearest_inbox(live: Runs, run: Run, reads: Callable[[Run], bool]) -> SessionKey:
    """The inbox of the nearest ancestor that reads it, in the end that of the top-level session."""
    top = run
    for top in ancestors(live, run):
        if reads(top):
            return top.session.first_key
    return top.requester


def addressed(live: Runs, run: Run, message: Message) -> Message:
    """The message, to whoever can answer it when it wants an answer."""
    if all(str(request.id) != message.id for request in run.pending_requests):
        return message
    return replace(message, session_key=answering_inbox(live, run))


def left_open(live: Runs, ended: Run) -> Iterator[tuple[MessageId, SessionKey]]:
    """What was asked of an agent that just ended, and the inbox that it moves to."""
    for child in ended.active_children:
        run = live.get(child.run_id)
        if run is None:
            continue
        inbox = answering_inbox(live, run)
        for request in run.pending_requests:
            yield MessageId(request.id), inbox
        if run.phase not in HOLDS_SLOT:
            # Its agent is not at work: what its own children asked went past it, to ``ended``.
            yield from left_open(live, run)


def parent_of(live: Runs, run: Run) -> Run | None:
    """The run whose agent spawned this one; None = it is not open, or there is none."""
    above = run.lineage.requester_run
    return None if above is None else live.get(above)


def ancestors(live: Runs, run: Run) -> Iterator[Run]:
    """The open runs above a run, from the nearest on."""
    above = run.lineage.requester_run
    while above is not None and (parent := live.get(above)) is not None:
        yield parent
        above = parent.lineage.requester_run
