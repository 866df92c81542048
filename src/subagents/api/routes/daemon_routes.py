"""The daemon itself: health, version, configuration, sweep, diagnostics, shutdown."""

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from inspect import isawaitable
from pathlib import Path
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from subagents import extension
from subagents.api.calls.auth import Caller
from subagents.api.calls.call import answer, query_of, require_operator
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.services import Services, services_of
from subagents.api.wire.daemon_answers import (
    ConfigValue,
    DaemonVersion,
    DatabaseState,
    Diagnostics,
    DiskState,
    EffectiveConfig,
    Health,
    LaneState,
    Orphan,
    Readiness,
    RecentRefusals,
    Refusal,
    SharedBudget,
    Stopping,
    SweepResult,
    TelemetryState,
)
from subagents.api.wire.message_answers import ChannelState
from subagents.api.wire.parameters import word
from subagents.api.wire.wire_struct import made
from subagents.domain.rules.budgets import shared_caps
from subagents.domain.rules.budgets.budgets import USED
from subagents.domain.rules.parameter_checks import check_path
from subagents.domain.run.shell_variables import STARTED_BY, is_login, provider_variables
from subagents.errors import SubagentsError, UsageError
from subagents.ports import Audience, SetAside
from subagents.text import iso

DAY_MS: Final = 24 * 60 * 60 * 1000
REFUSALS_SHOWN_MAX: Final = 5
WHERE: Final = (word("cwd", "The caller's directory, absolute; its project file counts."),)


async def healthz(request: Request) -> Response:
    """GET /healthz: the process answers; nothing else is looked at."""
    problem = services_of(request).engine.partitions.problem
    return answer(Health(status="degraded", degraded=problem) if problem else Health())


async def readyz(request: Request) -> Response:
    """GET /readyz: 200 when new runs are accepted, else 503 with the reason."""
    services = services_of(request)
    degraded = services.refusing
    if services.stopping.is_set():
        degraded = "the daemon is stopping"
    if degraded is not None:
        return answer(Readiness(status="degraded", degraded=degraded), status=503)
    return answer(Readiness())


async def version(request: Request) -> Response:
    """GET /version."""
    services = services_of(request)
    aside: Sequence[SetAside] = ()
    with contextlib.suppress(SubagentsError):
        # A probe asks for the version without proving who it is; the rows are not its business.
        if Caller.of(request).is_operator:
            aside = await services.engine.queries.set_aside()
    return answer(
        DaemonVersion(
            version=services.info.version,
            schema=services.database.schema,
            pid=services.info.pid,
            started_at=iso(services.info.started_at_ms),
            database=services.database.place,
            degraded=services.refusing,
            problem=services.engine.partitions.problem,
            set_aside=[each.name for each in aside],
        )
    )


async def config(request: Request) -> Response:
    """GET /v1/config: every effective value and where it came from; secrets are hidden."""
    services = services_of(request)
    require_operator(Caller.of(request), "the configuration")
    loaded = await services.config_in(cwd_in(query_of(request, WHERE)), is_operator=True)
    values = [made(ConfigValue, leaf, value=leaf.shown) for leaf in loaded.leaves()]
    return answer(
        EffectiveConfig(
            files=[str(file) for file in loaded.files],
            warnings=list(loaded.warnings),
            values=values,
        )
    )


def cwd_in(query: Mapping[str, str]) -> str | None:
    """Where configuration is looked for.

    Raises:
        UsageError: It is no absolute path.
    """
    cwd = query.get("cwd")
    if cwd is not None:
        check_path("cwd", cwd)
        if not Path(cwd).is_absolute():
            raise UsageError("cwd must be an absolute path", details={"field": "cwd"})
    return cwd


async def sweep(request: Request) -> Response:
    """POST /v1/sweep: the recovery pass, now."""
    services = services_of(request)
    require_operator(Caller.of(request), "sweep")
    found = await services.engine.sweep.once()
    return answer(made(SweepResult, found, orphans=_orphans(found.orphans)))


async def diagnostics(request: Request) -> Response:
    """GET /v1/diagnostics: what ``doctor`` shows of the running daemon."""
    services = services_of(request)
    require_operator(Caller.of(request), "diagnostics")
    database = services.database
    problems = await services.off_loop(database.check)
    size, free = await services.off_loop(lambda: (database.size_bytes(), services.free_bytes()))
    found = made(
        Diagnostics,
        daemon_pid=services.info.pid,
        uptime_seconds=max(services.now_ms() - services.info.started_at_ms, 0) // 1000,
        open_runs=len(services.engine.queries.open_runs),
        live_attempts=services.engine.supervisor.live_attempts,
        recoveries=services.engine.recoveries,
        set_aside=await services.engine.queries.set_aside(),
        database=DatabaseState(path=database.place, bytes=size, problems=list(problems)),
        disk=DiskState(free_bytes=free),
        log=str(services.paths.log_file),
        telemetry=_telemetry(services),
        notifications=channels_of(services),
        user_directory=str(Path.home()),
        socket=str(services.paths.socket),
        supervisor_socket=str(services.paths.supervisor_socket),
        started_by=os.environ.get(STARTED_BY),
        # Names only: the values are secrets.
        login_variables=sorted(filter(is_login, provider_variables(os.environ))),
        http_url=services.tcp.url,
        attempts_dir=str(services.paths.attempts_dir),
        degraded=services.refusing,
        orphans=_orphans(await services.engine.sweep.orphans()),
        containment=await services.off_loop(services.containment),
        refusals=await _refusals(services),
        lanes=_lanes(services),
        budgets=_budgets(services),
        node=services.node,
    )
    added = dict(extension.made("diagnostics", services))
    waited = {name: await each for name, each in added.items() if isawaitable(each)}
    return answer({**msgspec.to_builtins(found), **added, **waited})


def _lanes(services: Services) -> list[LaneState]:
    held, queued = services.engine.queries.slots_by_lane(), services.engine.queries.queued_by_lane()
    settings = services.config_known().settings
    return [
        LaneState(
            name=name,
            depth=depth,
            slots=settings.lane_slots(name),
            used=held.get((name, depth), 0),
            queued=queued.get((name, depth), 0),
        )
        for name, depth in sorted({*held, *queued})
    ]


def _budgets(services: Services) -> list[SharedBudget]:
    shared = services.engine.shared_spending
    found = []
    for cap in shared.caps_in_use:
        used = shared.used(cap)
        found.append(
            made(
                SharedBudget,
                used,
                key=cap.key,
                **{f"max_{each.field}": each.limit(cap.limit) for each in USED},
                cost_unknown_runs=used.cost_unknown,
                text=shared_caps.text(cap, used),
                exhausted=shared_caps.is_spent(cap, used),
                until_at=iso(shared.day.end_ms) if cap.is_daily else None,
            )
        )
    return found


async def _refusals(services: Services) -> RecentRefusals:
    """Who was turned away in the last day."""
    since_ms = services.now_ms() - DAY_MS
    recent = [each for each in await services.refusals.recent() if each.at_ms >= since_ms]
    newest = [
        made(Refusal, each, refused_at=iso(each.at_ms)) for each in recent[-REFUSALS_SHOWN_MAX:]
    ]
    return RecentRefusals(file=str(services.refusals.file), last_day=len(recent), newest=newest)


def _orphans(found: Iterable[tuple[str, int]]) -> list[Orphan]:
    return [Orphan(attempt_id=attempt_id, pid=pid) for attempt_id, pid in found]


def _telemetry(services: Services) -> TelemetryState | None:
    """Where spans go and how that is going; None = nothing is sent anywhere."""
    state = next(iter(services.told(Audience.TRACES)), None)
    if state is None:
        return None
    return made(TelemetryState, state, spans_sent=state.sent, spans_refused=state.refused)


def channels_of(services: Services) -> list[ChannelState]:
    """The state of each channel and chat room that tells people of runs."""
    return [
        made(ChannelState, state, to=state.endpoint, problem=state.last_error)
        for state in services.told(Audience.PEOPLE)
    ]


async def shutdown(request: Request) -> Response:
    """POST /v1/shutdown: stop serving; workers continue, the next daemon adopts them."""
    services: Services = services_of(request)
    require_operator(Caller.of(request), "shutdown")
    services.stopping.set()
    return answer(Stopping(pid=services.info.pid), status=202)


OPERATIONS: Final = {
    ("GET", "/healthz"): Operation(healthz, answers=(Health,)),
    ("GET", "/readyz"): Operation(
        readyz, also=((503, "Not ready, and why."),), answers=(Readiness,)
    ),
    ("GET", "/version"): Operation(version, answers=(DaemonVersion,)),
    ("GET", "/v1/config"): Operation(config, query=WHERE, answers=(EffectiveConfig,)),
    ("POST", "/v1/sweep"): Operation(sweep, answers=(SweepResult,)),
    ("GET", "/v1/diagnostics"): Operation(diagnostics, answers=(Diagnostics,)),
    ("POST", "/v1/shutdown"): Operation(shutdown, status=202, answers=(Stopping,)),
}
ROUTES: Final = routes(OPERATIONS)
