"""What the search flags of ``list``, ``tree``, ``status`` and ``watch`` ask the daemon for."""

from collections.abc import Sequence
from typing import Final

from subagents.cli.connection import session as own_session
from subagents.cli.connection import session_of
from subagents.cli.runs import selectors
from subagents.errors import UsageError

BOTH: Final = "name runs or search for them, not both"


def search_query(
    *,
    directory: str | None = None,
    session: str | None = None,
    mine: bool = False,
    agent: str | None = None,
    label: str | None = None,
    tag: Sequence[str] = (),
    phase: str | None = None,
    outcome: str | None = None,
    since: str | None = None,
    until: str | None = None,
    text: str | None = None,
    model: str | None = None,
) -> dict[str, str]:
    """The parameters of ``/v1/runs`` and ``/v1/tree`` that were asked for, one for each flag.

    Raises:
        UsageError: ``--mine`` with ``--session``, an unknown phase, or no name of a session.
    """
    if mine and session is not None:
        raise UsageError("--mine and --session exclude each other")
    wanted = own_session() if mine else session and session_of(session)
    found = {
        "directory": None if directory is None else selectors.directory(directory),
        "requester": wanted,
        "agentId": agent,
        "label": label,
        "tag": ",".join(tag),
        "phase": phase and selectors.phases(phase),
        "outcome": outcome,
        "since": since,
        "until": until,
        "q": text,
        "model": model,
    }
    return {name: value for name, value in found.items() if value}
