"""The flags by which ``list``, ``tree``, ``status`` and ``watch`` find runs."""

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Group, Parameter

from subagents.cli.show.search_query import search_query

SEARCH: Final = Group("Search", sort_key=1)


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
        str | None,
        Parameter(
            group=SEARCH,
            help="Only runs in these phases, or whose STATE in a list is this.",
            metavar="NAME,…",
        ),
    ] = None
    outcome: Annotated[
        str | None,
        Parameter(
            group=SEARCH,
            help="Only runs with these outcomes (ok, partial, error, timeout, cancelled, lost), or "
            "whose STATE in a list is this: failed, blocked, paused.",
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
        Parameter(group=SEARCH, help="Only runs whose label, task or id has it.", metavar="TEXT"),
    ] = None
    model: Annotated[
        str | None, Parameter(group=SEARCH, help="Only runs of this model.", metavar="NAME")
    ] = None

    def query(self) -> dict[str, str]:
        """The parameters of ``/v1/runs`` and ``/v1/tree`` that were asked for.

        Raises:
            UsageError: ``--mine`` with ``--session``, an unknown phase, or no name of a session.
        """
        return search_query(**vars(self))


Search = Annotated[SearchFlags, Parameter(name="*")]
Archived = Annotated[bool, Parameter(help="Include archived runs.", group=SEARCH, negative=())]
EVERYTHING: Final = SearchFlags()
