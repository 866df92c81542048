"""Which runs a list is about: the query parameters that ``/v1/runs`` and ``/v1/tree`` share."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from subagents.api.calls.call import Query
from subagents.api.wire.decoding import one_of
from subagents.api.wire.listing import Truncated
from subagents.api.wire.parameters import Parameter, choice, choices, flag, number, word
from subagents.domain.rules.wait_causes import WORDS_OF, ShownState, State
from subagents.domain.run.outcome import Status
from subagents.domain.run.run import OVER, Phase
from subagents.domain.run.values import RunId, SessionKey, replace
from subagents.engine.runs.queries import RunsFound
from subagents.errors import UsageError
from subagents.ports import Place, RunFilter
from subagents.text import parse_time

TEXT_CHARS_MAX: Final = 1_000
OFFSET_MAX: Final = 10**9
NEWEST: Final = "newest"
OLDEST: Final = "oldest"
ENDED: Final = "ended"
ENDED_OLDEST: Final = "ended_oldest"
SORTS: Final = (NEWEST, OLDEST)
END_SORTS: Final = (ENDED, ENDED_OLDEST)
"""Only of ended runs; of single runs, and of nothing that is made of several."""
_MORE_SORTS: Final = (
    " `ended`: only ended runs, the last end first. `cost`, `took`, `tokens`: of the newest 1,000"
    " that fit the greatest first, what is not known last; the next page is at an `offset`."
)

STATES: Final = (*map(str, Phase), *map(str, Status), *map(str, ShownState))
"""Every word that a list shows of a run's state."""
_STATUS: Final = {str(ShownState.FAILED): str(Status.ERROR)}
_UNDER_WAY: Final = (
    frozenset(
        {*Phase, ShownState.BLOCKED, ShownState.PAUSED}
        | {*WORDS_OF[State.WAITING], *WORDS_OF[State.WORKING]}
    )
    - OVER
)

SEARCH: Final[tuple[Parameter, ...]] = (
    word("label", "Only runs with this label."),
    choices("state", "Only runs in these states, as people are shown them.", tuple(State)),
    choices("phase", "Only runs in these phases, or that lists call so.", STATES),
    choices("outcome", "Only runs with these outcomes, or that lists call so.", STATES),
    word("agentId", "Only runs of this agent."),
    word("requester", "Only runs that this session asked for."),
    word("directory", "Only runs that work in this directory or below it; absolute."),
    word("tag", "Only runs with this tag; with commas: with all of these."),
    word("since", "Only runs spawned since then: 5m, 2h, 1d ago, or an ISO time."),
    word("until", "Only runs spawned before then: 5m, 2h, 1d ago, or an ISO time."),
    word("model", "Only runs that were given this model."),
    word("q", "Only runs whose label or task contains this, or whose id begins with it."),
    flag("archived", "Archived runs, too."),
)


def search_in(query: Query, *, now_ms: int) -> RunFilter:
    """The filter that the ``SEARCH`` parameters of a query say; those that are not given are off.

    Raises:
        UsageError: Names the parameter, and what may stand there.
    """
    directory, text = query.get("directory"), query.get("q")
    if directory is not None and not PurePosixPath(directory).is_absolute():
        raise UsageError(
            f'directory must be absolute, not "{directory[:200]}"', details={"field": "directory"}
        )
    if text is not None and len(text) > TEXT_CHARS_MAX:
        raise UsageError(
            f"q must have at most {TEXT_CHARS_MAX:,} characters", details={"field": "q"}
        )
    where = RunFilter(
        requester=SessionKey(query["requester"]) if "requester" in query else None,
        label=query.get("label"),
        agent_id=query.get("agentId"),
        directory=directory,
        tags=tuple(tag for each in query.get("tag", "").split(",") if (tag := each.strip())),
        model=query.get("model"),
        text=text or None,  # an empty text is in every label
        since_ms=_time_in(query, "since", now_ms),
        until_ms=_time_in(query, "until", now_ms),
        archived=query.flag("archived"),
    )
    return in_states(
        where, state=query.get("state"), phase=query.get("phase"), outcome=query.get("outcome")
    )


def in_states(
    where: RunFilter, *, phase: str | None, outcome: str | None = None, state: str | None = None
) -> RunFilter:
    """The filter with the words that were given for a state, a phase and an outcome.

    The last two take each word that an answer has of a run's state. What one alone can say is asked
    as that, since an index finds it.

    Raises:
        UsageError: An unknown word; or two parameters have words of the same kind.
    """
    phases, outcomes = _words("phase", phase), _words("outcome", outcome)
    wanted = None
    if state is not None:
        named = [State(each) for each in _words("state", state, tuple(State)) or ()]
        wanted = tuple(str(word) for each in named for word in WORDS_OF[each])
    if phases is not None and set(phases) <= {*Phase}:
        where = replace(where, phases=tuple(map(Phase, phases)))
        phases = None
    if outcomes is not None and set(outcomes) <= {*Status}:
        where = replace(where, outcomes=tuple(map(Status, outcomes)))
        outcomes = None
    given = [each for each in (wanted, phases, outcomes) if each is not None]
    if len(given) > 1:
        raise UsageError(
            "state, phase and outcome name the same: give all words in one of them",
            details={"field": "outcome"},
        )
    if not given:
        return where
    states = given[0]
    where = replace(where, states=states)
    # Narrowed by what every such state implies, so that fewer rows are looked at one by one.
    statuses = [_STATUS.get(each, each) for each in states]
    if where.outcomes is None and set(statuses) <= {*Status}:
        return replace(where, outcomes=tuple(map(Status, dict.fromkeys(statuses))))
    if where.phases is None and set(states) <= _UNDER_WAY:
        return replace(where, phases=tuple(each for each in Phase if each not in OVER))
    return where


def _words(name: str, text: str | None, known: Sequence[str] = STATES) -> tuple[str, ...] | None:
    if text is None:
        return None
    return tuple(one_of(name, each.strip(), known) for each in text.split(","))


def page_in(query: Query, where: RunFilter) -> RunFilter:
    """The filter with the window that the ``page_parameters`` of a query say.

    Raises:
        UsageError: Names the parameter, and what may stand there.
    """
    behind, offset = query.get("cursor"), query.number("offset")
    if behind is not None and offset:
        raise UsageError("cursor and offset exclude each other", details={"field": "offset"})
    sort = query.choice("sort")
    if behind is not None and sort not in {*SORTS, *END_SORTS}:
        raise UsageError(f"sort={sort} has its pages at an offset", details={"field": "cursor"})
    return replace(
        where,
        limit=query.number("limit"),
        offset=offset,
        behind=None if behind is None else _place(behind),
        oldest_first=sort in {OLDEST, ENDED_OLDEST},
        by_end=sort in END_SORTS,
    )


def page_parameters(
    *, limit: int, limit_max: int, sorts: Sequence[str] = SORTS
) -> tuple[Parameter, ...]:
    """What ``page_in`` reads."""
    more = "" if ENDED not in sorts else _MORE_SORTS
    return (
        number("limit", "At most so many.", low=1, high=limit_max, default=limit),
        number("offset", "So many are left out before; for people's pages.", high=OFFSET_MAX),
        word("cursor", "The page behind: `nextCursor` of the page before, with the same filters."),
        choice(
            "sort",
            f"Which come first, by when they were spawned.{more}",
            sorts,
            default=NEWEST,
        ),
    )


def cursor_of(found: RunsFound, *, by_end: bool = False, ranked: bool = False) -> str | None:
    """Where the page behind begins; None = there is none."""
    if ranked or not found.has_more or not found.runs:
        return None
    # By time and id, as the store sorts: two runs may have been spawned in the same millisecond.
    last = found.runs[-1]
    return f"{last.ended_at_ms if by_end else last.times.created_at_ms}.{last.id}"


def truncated_of(found: RunsFound) -> Truncated | None:
    """What the page leaves out; None = nothing."""
    total, shown = found.total, len(found.runs)
    if total.number <= shown and not total.is_bound:
        return None
    return Truncated(shown=shown, total=total.number, total_is_bound=total.is_bound)


def _place(cursor: str) -> Place:
    at_ms, _, run_id = cursor.partition(".")
    if not re.fullmatch(r"[0-9]{1,16}", at_ms) or not run_id:
        raise UsageError(
            f'cursor must be the nextCursor of a page, not "{cursor[:40]}"',
            details={"field": "cursor"},
        )
    return Place(int(at_ms), RunId(run_id))


def _time_in(query: Query, name: str, now_ms: int) -> int | None:
    text = query.get(name)
    return None if text is None else parse_time(text, now_ms=now_ms, field=name)
