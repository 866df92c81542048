"""``RunFilter`` as SQL: which index leads to what is asked for, newest first.

Each list walks one index, or several side by side that are merged as they are walked: an index says
in its order of time what it is asked for, and apart from each other what is archived and what is
not. So a page costs the rows that are in it, as long as what one index finds is what is asked for;
further conditions are tried on what it finds. Which index that is is decided here and not by
SQLite, which knows nothing of how often a value occurs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from subagents.domain.run.outcome import Status
from subagents.domain.run.run import OVER, Phase, Run
from subagents.ports import RunFilter
from subagents.store.run_filters import MOVING, asked, leads, open_ones, value_of
from subagents.store.sqlite.statements import statements

Parameters: TypeAlias = dict[str, object]

CONDITIONS: Final[Mapping[str, str]] = {
    "below": """number IN (
        WITH RECURSIVE below(id, number) AS (
          SELECT run_id, number FROM run WHERE run_id = :below
          UNION
          SELECT child.run_id, child.number
          FROM below CROSS JOIN run AS child ON child.requester_run = below.id
        ) SELECT number FROM below)""",
    "steps_of": "plan IN (SELECT value FROM json_each(:steps_of))",
    "label": "label = :label",
    "requester_run": "requester_run = :requester_run",
    "requester": "requester = :requester",
    "agent_id": "agent_id = :agent_id",
    "phases": "phase IN (SELECT value FROM json_each(:phases))",
    "outcomes": "outcome IN (SELECT value FROM json_each(:outcomes))",
    "states": """(phase IN (SELECT value FROM json_each(:states))
        OR outcome IN (SELECT value FROM json_each(:states))
        OR 'failed' IN (SELECT value FROM json_each(:states)) AND outcome = 'error'
          AND CASE WHEN json_valid(CAST(state AS TEXT)) THEN
            json_extract(CAST(state AS TEXT), '$.conclusion.outcome.reason') END
            = 'verification_failed')""",
    "top": "requester_run IS NULL",
    "plans": "plan = run_id",
    "folded": "(plan IS NULL OR plan = run_id)",
    "keeps_session": "keeps_session = :keeps_session",
    "since_ms": "created_at_ms >= :since_ms",
    "until_ms": "created_at_ms < :until_ms",
    "behind": """({at}, number) < (SELECT json_extract(:behind, '$[0]'), coalesce(
        (SELECT number FROM run WHERE run_id = json_extract(:behind, '$[1]')), 1 << 62))""",
    "active_since_ms": "(ended_at_ms IS NULL OR ended_at_ms >= :active_since_ms)",
    "ended_after_ms": "ended_at_ms >= :ended_after_ms",
    "by_end": "ended_at_ms IS NOT NULL",
    "tags": """NOT EXISTS (
        SELECT 1 FROM json_each(:tags) AS wanted WHERE wanted.value NOT IN (
          SELECT value FROM json_each(CASE WHEN json_valid(run.tags) THEN run.tags ELSE '[]' END)
        ))""",
    "directory": "rtrim(:directory, '/') || '/' ="
    " substr(directory || '/', 1, length(rtrim(:directory, '/')) + 1)",
    "model": "is_of_model(origin, :model)",
    "text": "mentions(run_id, label, origin, :text)",
}
"""The condition of each field of the filter, in the order in which they are tried; ``at`` is a
way's ``key``."""
_BACK: Final = (
    (" DESC", " ASC"),
    (", number) <", ", number) >"),
    ("1 << 62", "-1"),
)
"""What is different where the oldest come first."""
_OPEN_ONES: Final = "is_over = 0 AND run_id IN (SELECT value FROM json_each(:open))"
ANYTHING: Final = statements()["any_run"].removesuffix(";")
"""What stands in ``select_runs`` and ``count_runs`` for the runs that are asked for."""
_SOUND: Final = """number NOT IN (
        SELECT run.number FROM set_aside CROSS JOIN run ON run.run_id = set_aside.name)"""
_LISTED, _ARCHIVED = 1, 0


class _Way(NamedTuple):
    """A part of an index."""

    source: str
    part: str = "TRUE"
    shelf: str = "(archived_at_ms IS NULL) = {shelf}"
    """Tells listed runs from archived ones."""
    key: str = "created_at_ms"
    """The column that orders the list."""


_CREATED: Final = _Way("run INDEXED BY run_created")
_OPEN: Final = _Way("run INDEXED BY run_open", "is_over = 0")
_GIVEN_UP: Final = _Way("run INDEXED BY run_given_up", f"phase = '{Phase.COMPLETED_GIVEUP}'")
_ENDED_NOW: Final = """(SELECT json_extract(each.value, '$[1]') FROM json_each(:ends) AS each
        WHERE json_extract(each.value, '$[0]') = run.run_id)"""
"""When a run ended that is not over: its row may be older than that."""
_BY_END: Final[Mapping[int, Sequence[_Way]]] = {
    _LISTED: (
        _Way(
            "run INDEXED BY run_archive",
            "is_over = 1 AND archived_at_ms IS NULL",
            key="ended_at_ms",
        ),
        _Way("run INDEXED BY run_open", "is_over = 0", key=_ENDED_NOW),
    ),
    _ARCHIVED: (
        _Way("run INDEXED BY run_archived", "archived_at_ms IS NOT NULL", key="ended_at_ms"),
    ),
}
"""What leads to all ended runs in the order of their ends: indexes that other work needs, too."""
_FIELDS: Final[Mapping[str, _Way]] = {
    "below": _Way("run NOT INDEXED", CONDITIONS["below"]),
    "steps_of": _Way("run INDEXED BY run_plan", CONDITIONS["steps_of"]),
    "requester_run": _Way("run INDEXED BY run_parent", CONDITIONS["requester_run"]),
    "plans": _Way("run INDEXED BY run_plans", CONDITIONS["plans"]),
    "phases": _CREATED,
    "outcomes": _CREATED,
    "tags": _Way(
        "run_tag CROSS JOIN run USING (number, created_at_ms)",
        "run_tag.tag = json_extract(:tags, '$[0]')",
        shelf="run_tag.is_listed = {shelf} AND (archived_at_ms IS NULL) = {shelf}",
    ),
    "label": _Way("run INDEXED BY run_label", CONDITIONS["label"]),
    "requester": _Way("run INDEXED BY run_requester", CONDITIONS["requester"]),
    "directory": _Way("run INDEXED BY run_directory", "directory = place.name"),
    "agent_id": _Way("run INDEXED BY run_agent", CONDITIONS["agent_id"]),
}
"""The way for each field of the filter: the first one that is asked for leaves the fewest runs."""
_IN_PLACES: Final = statements()["runs_in_places"].removesuffix(";")
"""The newest of the directory and of each one below it in which there are runs."""
_IN_PLACE: Final = ANYTHING.replace("number, created_at_ms AS at_ms", "number")
"""What stands in it for the runs of one directory."""


def narrowed(
    statement: str, where: RunFilter, open_runs: Callable[[], Iterable[Run]], *, far: int
) -> tuple[str, Parameters]:
    """``statement`` about the runs that are asked for, and the parameters that it needs.

    Args:
        statement: Has ``ANYTHING`` in it.
        where: Which runs; not its window.
        open_runs: Gives all that are not over; called when the filter needs to know.
        far: How many of the newest runs that fit are looked at, at most.
    """
    names = asked(where, CONDITIONS)
    values: Parameters = {name: value_of(getattr(where, name)) for name in names}
    conditions = [CONDITIONS[name] for name in names if name not in MOVING]
    if moving := [CONDITIONS[name] for name in names if name in MOVING]:
        values |= open_ones(where, open_runs())
        conditions.append(f"({' AND '.join(['is_over = 1', *moving])} OR {_OPEN_ONES})")
    shelves = [_LISTED] * where.listed + [_ARCHIVED] * where.archived
    ways = list(_ways(where, names))
    # What the way itself asks for is not asked again: SQLite would test it for each row.
    arms = [
        _arm(way, shelf, [each for each in conditions if each != way.part])
        for shelf in shelves
        for way in (_BY_END[shelf] if where.by_end else ways)
    ]
    chosen = "\nUNION ALL\n".join(arms) or f"{ANYTHING} AND FALSE"
    whole = statement.replace(ANYTHING, chosen)
    return turned(whole) if where.oldest_first else whole, {**values, "far": far}


def turned(statement: str) -> str:
    """The statement that goes through the list the other way round."""
    for there, back in _BACK:
        statement = statement.replace(there, back)
    return statement


def _ways(where: RunFilter, names: Sequence[str]) -> Iterator[_Way]:
    """What leads to all runs that are asked for, and to none of them twice."""
    best = next((name for name in _FIELDS if name in names and leads(where, name)), None)
    if best == "phases":
        phases = set(where.phases or ())
        # Completed runs are not among them: `leads` takes no phase that most runs are in.
        if phases - OVER:
            yield _OPEN
        if phases & OVER:
            yield _GIVEN_UP
    elif best == "outcomes":
        yield _OPEN
        for each in dict.fromkeys(where.outcomes or ()):
            part = f"outcome <> '{Status.OK}' AND outcome = '{each}' AND is_over = 1"
            yield _Way("run INDEXED BY run_outcome", part)
    else:
        yield _CREATED if best is None else _FIELDS[best]


def _arm(way: _Way, shelf: int, conditions: Sequence[str]) -> str:
    which = "\n  AND ".join([way.part, way.shelf.format(shelf=shelf), _SOUND, *conditions])
    whole, part = (_IN_PLACES, _IN_PLACE) if way is _FIELDS["directory"] else (ANYTHING, ANYTHING)
    arm = part.replace(f"{_CREATED.key} AS at_ms", f"{way.key} AS at_ms")
    arm = arm.replace("run WHERE TRUE", f"{way.source}\nWHERE {which}").replace("{at}", way.key)
    return whole.replace(part, arm)
