"""``/v1/agents/stats`` and ``/v1/stats/series``: what ended attempts came to."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from subagents.api.calls.auth import Caller
from subagents.api.calls.call import answer, query_of, require_operator
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.services import services_of
from subagents.api.wire import agent_answers as wire
from subagents.api.wire.parameters import choice, number, word
from subagents.api.wire.wire_struct import made
from subagents.extensions.track_record.series import Bucket, SeriesBy
from subagents.extensions.track_record.series_answers import Series, series_answer
from subagents.extensions.track_record.track_record import RETENTION_DAYS, By, Wanted
from subagents.extensions.track_record.track_record_log import TrackRecords

OF: Final = (
    word("agent", "Only attempts of this agent."),
    word("tag", "Only attempts of runs with this tag."),
    word("model", "Only attempts with this model."),
)
STATS: Final = (
    choice("by", "What is counted together.", By, default=By.AGENT.value),
    *OF,
    number("days", "So far back.", low=1, high=RETENTION_DAYS, default=RETENTION_DAYS),
)
SERIES_DAYS: Final = 14
SERIES: Final = (
    choice("by", "What is added up together.", SeriesBy, default=SeriesBy.OUTCOME.value),
    choice("bucket", "For each hour or each day, in UTC.", Bucket, default=Bucket.DAY.value),
    *OF,
    number("days", "So far back.", low=1, high=RETENTION_DAYS, default=SERIES_DAYS),
)


async def stats(request: Request) -> Response:
    """GET /v1/agents/stats?by=&agent=&tag=&model=&days=: what ended attempts came to."""
    services = services_of(request)
    require_operator(Caller.of(request), "what all sessions' attempts came to")
    query = query_of(request, STATS)
    by, days = query.choice("by"), query.number("days")
    wanted = Wanted(by=By(by), **{name: query.get(name) for name in OF})
    as_of = services.as_of()
    found = await TrackRecords.of(services.engine).stats(wanted, days=days)
    return answer(made(wire.TrackRecords, **as_of, by=by, days=days, stats=found))


async def series(request: Request) -> Response:
    """GET /v1/stats/series: what ended attempts came to over time."""
    services = services_of(request)
    require_operator(Caller.of(request), "what all sessions' attempts came to")
    query = query_of(request, SERIES)
    by, bucket = query.choice("by"), query.choice("bucket")
    as_of = services.as_of()
    found = await TrackRecords.of(services.engine).series(
        SeriesBy(by),
        Bucket(bucket),
        days=query.number("days"),
        **{name: query.get(name) for name in OF},
    )
    return answer(series_answer(found, by=by, bucket=bucket, as_of=as_of))


OPERATIONS: Final = {
    ("GET", "/v1/agents/stats"): Operation(stats, query=STATS, answers=(wire.TrackRecords,)),
    ("GET", "/v1/stats/series"): Operation(series, query=SERIES, answers=(Series,)),
}
ROUTES: Final = routes(OPERATIONS)
