"""``RunFilter`` in the dialect of PostgreSQL, whose planner knows how often a value occurs.

Listed and archived runs, open ones and others are asked for apart from each other, each up to the
end of the page, so that an index that has them in the order of time is walked no further than that.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from subagents.domain.run.outcome import Status
from subagents.domain.run.run import Phase, Run
from subagents.ports import RunFilter
from subagents.store.run_filters import MOVING, asked, leads, open_ones, value_of

CONDITIONS: Final[Mapping[str, str]] = {
    "below": """number IN (
        WITH RECURSIVE below (id, number) AS (
          SELECT run_id, number FROM {schema}.run WHERE run_id = :below
          UNION
          SELECT child.run_id, child.number
          FROM below JOIN {schema}.run AS child ON child.requester_run = below.id
        ) SELECT number FROM below)""",
    "steps_of": "plan IN (SELECT json_array_elements_text(:steps_of::json))",
    "label": "label = :label",
    "requester_run": "requester_run = :requester_run",
    "requester": "requester = :requester",
    "agent_id": "agent_id = :agent_id",
    "phases": "phase IN (SELECT json_array_elements_text(:phases::json))",
    "outcomes": "outcome IN (SELECT json_array_elements_text(:outcomes::json))",
    "states": """(phase IN (SELECT json_array_elements_text(:states::json))
        OR outcome IN (SELECT json_array_elements_text(:states::json))
        OR 'failed' IN (SELECT json_array_elements_text(:states::json)) AND outcome = 'error'
          AND CASE WHEN position('verification_failed'::bytea in state) > 0 THEN
            convert_from(state, 'UTF8')::json #>> '{conclusion,outcome,reason}' END
            = 'verification_failed')""",
    "top": "requester_run IS NULL",
    "plans": "plan = run_id",
    "folded": "(plan IS NULL OR plan = run_id)",
    "keeps_session": "keeps_session = :keeps_session::integer",
    "since_ms": "created_at_ms >= :since_ms",
    "until_ms": "created_at_ms < :until_ms",
    "behind": """({at}, number) < ((:behind::json ->> 0)::bigint, coalesce(
        (SELECT number FROM {schema}.run WHERE run_id = :behind::json ->> 1), 1::bigint << 62))""",
    "active_since_ms": "(ended_at_ms IS NULL OR ended_at_ms >= :active_since_ms)",
    "ended_after_ms": "ended_at_ms >= :ended_after_ms",
    "by_end": "ended_at_ms IS NOT NULL",
    "tags": "tags::jsonb @> :tags::jsonb",
    "directory": """(directory = rtrim(:directory, '/')
        OR directory >= rtrim(:directory, '/') || '/' AND directory < rtrim(:directory, '/') || '0')
        """,
    "passed": "({at}, number) < (:passed_ms, :passed)",
}
"""The condition of each field of the filter; ``passed`` is where a sieve goes on, ``at`` what the
list is by."""
SIEVED: Final = ("text", "model")
"""What these ask for is asked in Python (``run_filters``)."""
_BACK: Final = (
    (" DESC", " ASC"),
    (", number) <", ", number) >"),
    ("1::bigint << 62", "-1"),
)
"""What is different where the oldest come first."""
_SHELF: Final = "(CASE WHEN archived_at_ms IS NULL THEN 1 ELSE 0 END) = "
_OPEN_ONES: Final = "is_over = 0 AND run_id IN (SELECT json_array_elements_text(:open::json))"
_CREATED: Final = "created_at_ms"
_ENDED_NOW: Final = """(SELECT (each.value ->> 1)::bigint
        FROM json_array_elements(:ends::json) AS each WHERE each.value ->> 0 = run_id)"""
"""When a run ended that is not over: its row may be older than that."""
_SOUND: Final = "run_id NOT IN (SELECT name FROM {schema}.set_aside)"
_ORDERED: Final = "\nORDER BY at_ms DESC, number DESC LIMIT :far)"


def narrowed(
    sql: Mapping[str, str],
    name: str,
    where: RunFilter,
    open_runs: Callable[[], Iterable[Run]],
    *,
    far: int,
    passed: tuple[int, int] | None = None,
) -> tuple[str, dict[str, object]]:
    """A statement about the runs that are asked for, and the parameters that it needs.

    Args:
        sql: All statements, of one schema.
        name: That of one with ``any_run`` in it.
        where: Which runs; not its window, and not what is ``SIEVED``.
        open_runs: Gives all that are not over; called when the filter needs to know.
        far: How many of the newest runs that fit are looked at, at most.
        passed: Time and number of the run behind which they are.
    """
    anything = sql["any_run"].removesuffix(";")
    schema = anything.partition("FROM ")[2].partition(".run")[0]
    names = asked(where, [each for each in CONDITIONS if each != "passed"])
    values = {each: value_of(getattr(where, each)) for each in names}
    conditions = [_SOUND, *(CONDITIONS[each] for each in names if each not in MOVING)]
    if passed is not None:
        values["passed_ms"], values["passed"] = passed
        conditions.append(CONDITIONS["passed"])
    states = ["TRUE"]
    if moving := [CONDITIONS[each] for each in names if each in MOVING]:
        values |= open_ones(where, open_runs())
        states = [" AND ".join([each, *moving]) for each in _over(where, names)]
        states.append(_OPEN_ONES)
    shelves = [1] * where.listed + [0] * where.archived
    # Tags are in the order of spawning.
    is_by_tag = "tags" in names and not where.by_end
    source = sql["tagged_runs"].removesuffix(";") if is_by_tag else anything
    arms = []
    for shelf in shelves:
        for state in states:
            which = "\n  AND ".join([f"{_SHELF}{shelf}", state, *conditions])
            found = source.replace(anything, anything.replace("TRUE", which))
            found = found.replace("{shelf}", str(shelf))
            arms.append("(" + _keyed(found, _key(where, state)) + _ORDERED)
    chosen = "\nUNION ALL\n".join(arms) or f"{anything} AND FALSE"
    whole = sql[name].replace(anything, chosen).replace("{schema}", schema)
    return (turned(whole) if where.oldest_first else whole), {**values, "far": far}


def _over(where: RunFilter, names: Collection[str]) -> Iterator[str]:
    """Which of the runs that are over; what is rare has an index of its own, for these words."""
    if "phases" in names and leads(where, "phases"):
        if Phase.COMPLETED_GIVEUP in (where.phases or ()):
            yield f"is_over = 1 AND phase = '{Phase.COMPLETED_GIVEUP}'"
    elif "outcomes" in names and leads(where, "outcomes"):
        for each in dict.fromkeys(where.outcomes or ()):
            yield f"is_over = 1 AND outcome <> '{Status.OK}' AND outcome = '{each}'"
    else:
        yield "is_over = 1"


def _key(where: RunFilter, state: str) -> str:
    """By what the runs of an arm are in order."""
    if not where.by_end:
        return _CREATED
    return _ENDED_NOW if state == _OPEN_ONES else "ended_at_ms"


def _keyed(arm: str, key: str) -> str:
    return arm.replace(f"{_CREATED} AS at_ms", f"{key} AS at_ms").replace("{at}", key)


def turned(statement: str) -> str:
    """The statement that goes through the list the other way round."""
    for there, back in _BACK:
        statement = statement.replace(there, back)
    return statement
