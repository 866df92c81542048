"""The keywords of ``Orchestrator.list`` and ``Orchestrator.tree``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from subagents.client.client import Query


class SearchKeywords(TypedDict, total=False):
    """Which runs are wanted; what is left out narrows nothing."""

    label: str
    """Only with this label."""
    phase: str
    """Only in these phases, such as ``running,queued``."""
    outcome: str
    """Only ended ones with these outcomes, such as ``error,timeout``."""
    agent: str
    """Only of this agent."""
    session: str
    """Only those that this session asked for, by its key: ``agent:main:main``."""
    directory: Path | str
    """Only those that work in this directory or below it; a relative one is seen from here."""
    tags: Sequence[str]
    """Only those that have all of these."""
    since: str
    """Only those spawned since then: ``5m``, ``2d`` ago, or an ISO time."""
    until: str
    """Only those spawned before then."""
    text: str
    """Only those whose label or task contains it (case does not matter) or whose id begins so."""
    model: str
    """Only those that were given this model."""
    archived: bool
    """Archived ones, too."""


def search_query(search: SearchKeywords) -> Query:
    """The parameters of ``/v1/runs`` and ``/v1/tree``."""
    directory = search.get("directory")
    return {
        "label": search.get("label"),
        "phase": search.get("phase"),
        "outcome": search.get("outcome"),
        "agentId": search.get("agent"),
        "requester": search.get("session"),
        "directory": None if directory is None else str(Path(directory).absolute()),
        "tag": ",".join(search.get("tags", ())) or None,
        "since": search.get("since"),
        "until": search.get("until"),
        "q": search.get("text"),
        "model": search.get("model"),
        "archived": 1 if search.get("archived") else None,
    }
