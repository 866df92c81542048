"""``/v1/plans``: look at plans, cancel and retry one (``spawn_routes`` starts them)."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from subagents.api.answers import run_building
from subagents.api.calls.auth import Caller
from subagents.api.calls.call import answer, body_of, path_part, plan_id_of, query_of
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.run_search import (
    SEARCH,
    cursor_of,
    page_in,
    page_parameters,
    search_in,
    truncated_of,
)
from subagents.api.calls.services import Services, services_of
from subagents.api.routes.run_routes import cancelled
from subagents.api.routes.spawn_routes import config_of, plan_receipt
from subagents.api.wire import requests as wire
from subagents.api.wire.run_answers import (
    PlanDetail,
    PlanPage,
    PlanReceipt,
    PlanStanding,
    RunRow,
)
from subagents.api.wire.wire_struct import iso_or_none
from subagents.domain.run.values import replace
from subagents.errors import Conflict
from subagents.extensions.plans.plans import Plan, Plans

WANTED: Final = frozenset({"requester", "directory", "since", "until", "archived"})
"""Of a search what is about a plan as a whole."""
PLANS: Final = (
    *(each for each in SEARCH if each in WANTED),
    *page_parameters(limit=20, limit_max=100),
)


async def list_plans(request: Request) -> Response:
    """GET /v1/plans: newest first; an agent sees its own."""
    services, caller = services_of(request), Caller.of(request)
    query = query_of(request, PLANS)
    where = page_in(query, replace(search_in(query, now_ms=services.now_ms()), plans=True))
    if not caller.is_operator:
        where = replace(where, requester=services.engine.queries.inbox_of(caller.session))
    as_of = services.as_of()
    found = await services.engine.queries.page(where)
    plans = await plans_of(services).plans([run.id for run in found.runs])
    return answer(
        PlanPage(
            **as_of,
            truncated=truncated_of(found),
            next_cursor=cursor_of(found),
            plans=[_standing(each, _rows(services, each)) for each in plans],
            total=found.total.number,
            total_is_bound=found.total.is_bound,
        )
    )


async def show(request: Request) -> Response:
    """GET /v1/plans/{sel}: how it stands, and its steps."""
    services = services_of(request)
    return answer(_detail(services, await plan_of(request)))


async def cancel(request: Request) -> Response:
    """POST /v1/plans/{sel}/cancel: every step that has not ended."""
    services, caller = services_of(request), Caller.of(request)
    plan = await plan_of(request)
    body = wire.parse_body(await body_of(request), wire.CancelBody)
    for run in plan.steps:
        if not run.is_settled:
            await cancelled(services, caller, run, body)
    return answer(_detail(services, await plans_of(services).plan(plan.id)))


async def withdraw_cancel(request: Request) -> Response:
    """DELETE /v1/plans/{sel}/cancel: take planned cancels of its steps back, where it can be."""
    services, caller = services_of(request), Caller.of(request)
    plan = await plan_of(request)
    for run in plan.steps:
        if run.planned is not None:
            with suppress(Conflict):
                await services.engine.control.withdraw_cancel(run.id, by=caller.session)
    return answer(_detail(services, await plans_of(services).plan(plan.id)))


async def plan_of(request: Request) -> Plan:
    """The plan that the path names: by id, unique prefix, name or ``last``.

    Raises:
        NotFound: There is none, or it is somebody else's.
    """
    services = services_of(request)
    plan_id = await plan_id_of(services, path_part(request, "sel"), Caller.of(request))
    return await plans_of(services).plan(plan_id)


async def retry_plan(request: Request) -> Response:
    """POST /v1/plans/{sel}/retry: the steps that failed, and those that waited for them."""
    services, caller = services_of(request), Caller.of(request)
    plan = await plan_of(request)
    config = await config_of(services, caller, plan.steps[0].resolved.project, {}, {})
    receipts = await plans_of(services).retry(plan.id, caller.context(config.settings))
    return answer(plan_receipt(receipts, config), status=201)


def plans_of(services: Services) -> Plans:
    """The plans that the engine's runs are steps of."""
    return Plans(services.engine.queries, services.engine.spawner)


def _detail(services: Services, plan: Plan) -> PlanDetail:
    rows = _rows(services, plan)
    return PlanDetail(**msgspec.structs.asdict(_standing(plan, rows)), runs=rows)


def _standing(plan: Plan, rows: Sequence[RunRow]) -> PlanStanding:
    states = Counter(row.shown_state for row in rows)
    ended = [run.ended_at_ms for run in plan.steps if run.ended_at_ms is not None]
    is_over = all(run.is_settled for run in plan.steps)
    status = "running" if not is_over else "ok" if set(states) <= {"ok"} else "failed"
    first = plan.steps[0]
    return PlanStanding(
        plan_id=plan.id,
        name=plan.name,
        status=status,
        steps=len(plan.steps),
        states=dict(states),
        requester=first.requester,
        created_at=iso_or_none(min(run.times.created_at_ms for run in plan.steps)),
        ended_at=iso_or_none(max(ended)) if is_over and ended else None,
        retried=len(plan.instead),
        jobs=None if first.resolved.step is None else first.resolved.step.jobs,
    )


def _rows(services: Services, plan: Plan) -> list[RunRow]:
    now_ms, around = services.now_ms(), services.around()
    return [run_building.shown(RunRow, run, now_ms, around) for run in plan.steps]


OPERATIONS: Final = {
    ("GET", "/v1/plans"): Operation(list_plans, query=PLANS, answers=(PlanPage,)),
    ("GET", "/v1/plans/{sel}"): Operation(show, answers=(PlanDetail,)),
    ("POST", "/v1/plans/{sel}/cancel"): Operation(
        cancel, body=wire.CancelBody, answers=(PlanDetail,)
    ),
    ("DELETE", "/v1/plans/{sel}/cancel"): Operation(withdraw_cancel, answers=(PlanDetail,)),
    ("POST", "/v1/plans/{sel}/retry"): Operation(retry_plan, status=201, answers=(PlanReceipt,)),
}
ROUTES: Final = routes(OPERATIONS)
PATH_WORDS: Final = {
    "/v1/plans/{sel}": "A plan: its id, a unique beginning of it, its name, or `last`."
}
