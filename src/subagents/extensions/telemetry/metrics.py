"""``GET /metrics``: what an operator's Prometheus scrapes.

Gauges say what is so at the moment of the scrape. Counters and histograms begin at 0 with the
process, as Prometheus expects (``rate`` knows resets): what ended before a restart is in the
performance records, not here. Labels are bounded: agents beyond ``counters.AGENTS_MAX`` share one.

Every metric stands in one place, ``FAMILIES``, with its meaning; docs/operations.md has the table.
"""

import itertools
import math
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from subagents.api.calls.auth import Caller
from subagents.api.calls.call import query_of, require_operator
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.services import Services, services_of
from subagents.domain.rules.admission import lane_key
from subagents.domain.run.run import OVER, Phase
from subagents.engine.records.counters import Histogram
from subagents.ports import Audience

PREFIX: Final = "subagents_"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
ESCAPED: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
"""What stands in the value of a label for what would end it."""

Labels = tuple[str, ...]
Samples = Iterable[tuple[Labels, float]]


class Family(NamedTuple):
    """One metric: what it is called, says and is labelled with."""

    name: str
    kind: str
    """``gauge``, ``counter`` or ``histogram``."""
    text: str
    labels: Labels = ()


class Scrape(NamedTuple):
    """What had to be asked off the loop."""

    unread: int
    database_bytes: int


# -- what there is ------------------------------------------------------------------------------

GAUGES: Final[Mapping[Family, Callable[[Services, Scrape], Samples]]] = {
    Family("build_info", "gauge", "Always 1.", ("version", "schema", "python")): lambda s, _: [
        ((s.info.version, str(s.database.schema), platform.python_version()), 1)
    ],
    Family(
        "start_time_seconds", "gauge", "When the daemon started, in seconds since 1970."
    ): lambda s, _: [((), s.info.started_at_ms / 1000)],
    Family("runs", "gauge", "Open runs, by phase and agent.", ("phase", "agent")): lambda s, _: (
        _runs(s)
    ),
    Family("attempts_live", "gauge", "Workers that are watched now."): lambda s, _: [
        ((), s.engine.supervisor.live_attempts)
    ],
    Family(
        "lane_slots_used", "gauge", "Slots taken, by lane and depth.", ("lane", "depth")
    ): lambda s, _: [
        ((lane, str(depth)), held)
        for (lane, depth), held in s.engine.queries.slots_by_lane().items()
    ],
    Family(
        "lane_slots", "gauge", "Slots there are, as the newest open run says.", ("lane", "depth")
    ): lambda s, _: _slots(s),
    Family("outbox_pending", "gauge", "Committed effects that are not done yet."): lambda s, _: [
        ((), s.engine.outbox.pending)
    ],
    Family("inbox_unread", "gauge", "Unread messages of all sessions."): lambda _, scrape: [
        ((), scrape.unread)
    ],
    Family("requests_open", "gauge", "Questions of workers that wait for an answer."): (
        lambda s, _: [((), sum(len(run.pending_requests) for run in s.engine.queries.open_runs))]
    ),
    Family("accepting", "gauge", "1 while runs can be changed, 0 while the store fails."): (
        lambda s, _: [((), 0 if s.refusing else 1)]
    ),
    Family("database_bytes", "gauge", "Size of the database with its log."): lambda _, scrape: [
        ((), scrape.database_bytes)
    ],
}
"""What is so now."""

COUNTERS: Final[Mapping[Family, Callable[[Services], Samples]]] = {
    Family("runs_spawned", "counter", "Runs that were spawned.", ("agent",)): lambda s: _by_one(
        s.engine.counters.spawned
    ),
    Family("runs_ended", "counter", "Runs that got their outcome.", ("agent", "outcome")): (
        lambda s: s.engine.counters.ended.items()
    ),
    Family(
        "tokens", "counter", "Tokens of ended runs, where known.", ("agent", "direction")
    ): lambda s: s.engine.counters.tokens.items(),
    Family("cost_usd", "counter", "Cost of ended runs, where known.", ("agent",)): lambda s: (
        ((agent,), cost) for agent, cost in s.engine.counters.cost_usd.items()
    ),
    Family("alerts", "counter", "Alerts, pushed or not.", ("kind",)): lambda s: _by_one(
        s.engine.counters.alerts
    ),
    Family("verifications", "counter", "Contracts that were checked.", ("verdict",)): (
        lambda s: _by_one(s.engine.counters.verdicts)
    ),
    Family(
        "deliveries", "counter", "Tries to tell a requester of an end.", ("outcome", "path")
    ): lambda s: s.engine.counters.deliveries.items(),
    Family("commit_failures", "counter", "Commits that failed; memory was thrown away."): (
        lambda s: [((), s.engine.counters.commit_failures)]
    ),
    Family("refusals", "counter", "Callers turned away for who they were."): lambda s: [
        ((), s.refusals.total)
    ],
    Family("call_errors", "counter", "HTTP calls that ended in an error.", ("code",)): (
        lambda s: _by_one(s.failures)
    ),
    Family("spans_sent", "counter", "Spans that the receiver took."): lambda s: _spans(s, "sent"),
    Family("spans_refused", "counter", "Spans that the receiver will never take."): (
        lambda s: _spans(s, "refused")
    ),
}
"""What happened since the daemon started."""

HISTOGRAMS: Final[Mapping[Family, Callable[[Services], Iterable[tuple[Labels, Histogram]]]]] = {
    Family("queue_wait_seconds", "histogram", "From entering a lane to a slot."): lambda s: [
        ((), s.engine.counters.queue_wait_s)
    ],
    Family(
        "run_duration_seconds", "histogram", "From the first slot to the outcome.", ("agent",)
    ): (lambda s: (((agent,), found) for agent, found in s.engine.counters.run_s.items())),
    Family("commit_seconds", "histogram", "How long commits took."): lambda s: [
        ((), s.engine.counters.commit_s)
    ],
    Family("commit_events", "histogram", "Events written in one commit."): lambda s: [
        ((), s.engine.counters.commit_events)
    ],
    Family("event_loop_lag_seconds", "histogram", "How late the loop came back."): lambda s: [
        ((), s.loop_lag_s)
    ],
}

FAMILIES: Final = (*GAUGES, *COUNTERS, *HISTOGRAMS)


def _runs(services: Services) -> Samples:
    counters = services.engine.counters
    found: Counter[Labels] = Counter()
    for run in services.engine.queries.open_runs:
        if run.phase not in OVER:
            found[str(run.phase), counters.agent(run.resolved.agent_id)] += 1
    # A phase that nobody is in says 0 and does not vanish from the graph.
    seen = {agent for _, agent in found}
    return [
        ((str(phase), agent), found[str(phase), agent])
        for phase in Phase
        if phase not in OVER
        for agent in sorted(seen)
    ]


def _slots(services: Services) -> Samples:
    found = {
        lane_key(run): run.resolved.lane_slots
        for run in services.engine.queries.open_runs
        if not run.is_settled
    }
    return [((lane, str(depth)), slots) for (lane, depth), slots in found.items()]


def _by_one(counts: Mapping[str, int]) -> Samples:
    return (((name,), count) for name, count in counts.items())


def _spans(services: Services, name: str) -> Samples:
    state = next(iter(services.told(Audience.TRACES)), None)
    return [((), 0 if state is None else getattr(state, name))]


# -- the answer ---------------------------------------------------------------------------------


async def metrics(request: Request) -> Response:
    """GET /metrics: counters and gauges in Prometheus' text format."""
    services = services_of(request)
    require_operator(Caller.of(request), "metrics")
    query_of(request, ())
    scrape = Scrape(
        unread=await services.engine.queries.unread_total(),
        database_bytes=await services.off_loop(services.database.size_bytes),
    )
    # Read here, where nothing changes meanwhile; written down elsewhere.
    found = [(family, list(lines)) for family, lines in _read(services, scrape)]
    text = await services.off_loop(lambda: exposed(found))
    return Response(text, headers={"content-type": CONTENT_TYPE})


class Line(NamedTuple):
    """A sample as it is written; ``suffix`` goes behind the metric's name."""

    labels: Labels
    """The values of the metric's labels; behind them, for a bucket, what it holds at most."""
    value: float
    suffix: str = ""


def _read(services: Services, scrape: Scrape) -> Iterator[tuple[Family, Iterable[Line]]]:
    for family, read in GAUGES.items():
        yield family, itertools.starmap(Line, read(services, scrape))
    for family, count in COUNTERS.items():
        yield family, itertools.starmap(Line, count(services))
    for family, measured in HISTOGRAMS.items():
        yield family, (line for labels, found in measured(services) for line in _of(labels, found))


def _of(labels: Labels, found: Histogram) -> Iterator[Line]:
    # Cumulative, as Prometheus wants them.
    totals = [*itertools.accumulate(found.counts)]
    for bound, total in zip((*found.bounds, math.inf), totals, strict=True):
        yield Line((*labels, _number(bound)), total, "_bucket")
    yield Line(labels, totals[-1], "_count")
    yield Line(labels, found.sum, "_sum")


def exposed(found: Iterable[tuple[Family, Sequence[Line]]]) -> str:
    """The metrics in Prometheus' text format."""
    written = []
    for family, lines in found:
        name = f"{PREFIX}{family.name}{'_total' * (family.kind == 'counter')}"
        written += [f"# HELP {name} {family.text}", f"# TYPE {name} {family.kind}"]
        for labels, value, suffix in lines:
            named = zip((*family.labels, "le"), labels, strict=False)
            pairs = ",".join(f'{key}="{each.translate(ESCAPED)}"' for key, each in named)
            written.append(f"{name}{suffix}{f'{{{pairs}}}' * bool(pairs)} {_number(value)}")
    return "".join(f"{each}\n" for each in written)


def _number(value: float) -> str:
    return "+Inf" if value == math.inf else repr(float(value))


OPERATIONS: Final = {("GET", "/metrics"): Operation(metrics, media=("text/plain",))}
ROUTES: Final = routes(OPERATIONS)
