"""The flags by which ``list``, ``tree``, ``status`` and ``watch`` find runs."""

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Group, Parameter

from subagents.cli.connection import session, session_of
from subagents.cli.runs import selectors
from subagents.errors import UsageError

SEARCH: Final = Group("Search", sort_key=1)
BOTH: Final = "name runs or search for them, not both"


@dataclass(frozen=True, kw_only=True)
class SearchFlags:
    """Which runs are wanted; a flag that is not given narrows nothing."""

    directory: Annotated[
        str | None,
        Parameter(
            name="--dir", group=SEARCH, help="Only runs working in or below DIR.", metavar="DIR"
        ),
    ] = None
    session: Annotated[
        str | None,
        Parameter(
            group=SEARCH, help="Only runs spawned by this session: its key or name.", metavar="NAME"
        ),
    ] = None
    mine: Annotated[
        bool, Parameter(group=SEARCH, negative=(), help="Only runs spawned by your own session.")
    ] = False
    agent: Annotated[
        str | None, Parameter(group=SEARCH, help="Only runs of this agent.", metavar="NAME")
    ] = None
    label: Annotated[
        str | None, Parameter(group=SEARCH, help="Only runs with this label.", metavar="LABEL")
    ] = None
    tag: Annotated[
        tuple[str, ...],
        Parameter(
            group=SEARCH,
            negative=(),
            help="Only runs with this tag; repeatable, all must fit.",
            metavar="TAG",
        ),
    ] = ()
    phase: Annotated[
        str | None, Parameter(group=SEARCH, help="Only runs in these phases.", metavar="NAME,…")
    ] = None
    outcome: Annotated[
        str | None,
        Parameter(
            group=SEARCH,
            help="Only ended runs with these outcomes: ok, partial, error, timeout, cancelled, "
            "lost.",
            metavar="NAME,…",
        ),
    ] = None
    since: Annotated[
        str | None,
        Parameter(
            group=SEARCH,
            help="Only runs spawned since: 5m, 2d, 2026-11-20T14:05.",
            metavar="WHEN",
        ),
    ] = None
    until: Annotated[
        str | None, Parameter(group=SEARCH, help="Only runs spawned before.", metavar="WHEN")
    ] = None
    text: Annotated[
        str | None,
        Parameter(group=SEARCH, help="Only runs whose label or task has it.", metavar="TEXT"),
    ] = None

    def query(self) -> dict[str, str]:
        """The parameters of ``/v1/runs`` and ``/v1/tree`` that were asked for.

        Raises:
            UsageError: ``--mine`` with ``--session``, an unknown phase, or no name of a session.
        """
        if self.mine and self.session is not None:
            raise UsageError("--mine and --session exclude each other")
        wanted = session() if self.mine else self.session and session_of(self.session)
        found = {
            "directory": None if self.directory is None else selectors.directory(self.directory),
            "requester": wanted,
            "agentId": self.agent,
            "label": self.label,
            "tag": ",".join(self.tag),
            "phase": self.phase and selectors.phases(self.phase),
            "outcome": self.outcome,
            "since": self.since,
            "until": self.until,
            "text": self.text,
        }
        return {name: value for name, value in found.items() if value}


Search = Annotated[SearchFlags, Parameter(name="*")]
Archived = Annotated[bool, Parameter(help="Include archived runs.", group=SEARCH, negative=())]
EVERYTHING: Final = SearchFlags()
