"""``/v1/schedules``: work that is started at its times. For operators: agents spawn runs."""

from typing import Annotated, Final

from msgspec import Meta, structs
from starlette.requests import Request
from starlette.responses import Response

from subagents.api.calls.auth import Caller
from subagents.api.calls.call import PLAN_BODY_BYTES_MAX, answer, body_of, path_part
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.services import Services, services_of
from subagents.api.routes.spawn_routes import cwd_of, environments_of, plan_budget
from subagents.api.wire.decoding import one_of
from subagents.api.wire.requests import SpecsBody, check_surroundings, with_specs
from subagents.api.wire.schedule_answers import SchedulePage, ScheduleRow, ScheduleStart
from subagents.domain.rules.parameter_checks import check_reachable
from subagents.domain.run.parameter import words
from subagents.domain.run.spec import PLAN_NAME_CHARS_MAX
from subagents.domain.run.values import replace
from subagents.domain.schedules.schedule import (
    NAME_CHARS_MAX,
    Missed,
    Overlap,
    Schedule,
    ScheduledPlan,
    ScheduleId,
)
from subagents.errors import Forbidden, UsageError
from subagents.extensions.schedules import schedule_building
from subagents.extensions.schedules.schedules import Schedules


class ScheduleBody(SpecsBody, frozen=True, kw_only=True):
    """What to start each time, one run or the steps of a plan, and at which times."""

    name: Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX)]
    when: str
    """Five fields of cron, an alias such as `@daily`, or `every 15m`."""
    zone: str = "UTC"
    """IANA name of the time zone in which `when` is meant; or a rule as POSIX has it in TZ."""
    overlap: Annotated[str, words(Overlap)] = "skip"
    """What a time does while runs of an earlier one have not ended."""
    missed: Annotated[str, words(Missed)] = "once"
    """What is done about times that passed while nothing could be started."""
    replace: bool = False
    """Take the place of the schedule of this name."""
    plan_name: Annotated[str, Meta(min_length=1, max_length=PLAN_NAME_CHARS_MAX)] | None = None
    """The runs are a plan of this name; needed where there are several."""


def parse_schedule(body: bytes) -> ScheduleBody:
    """The body of ``POST /v1/schedules``: specs as for a plan.

    Raises:
        UsageError: Names the field and what is allowed.
    """
    found = with_specs(body, ScheduleBody)
    check_surroundings(found.cwd, {}, {})
    one_of("overlap", found.overlap, [*Overlap])
    one_of("missed", found.missed, [*Missed])
    if found.plan_name is None and len(found.specs) > 1:
        raise UsageError(
            "planName is required: several specs are a plan", details={"field": "planName"}
        )
    if found.plan_name is not None:
        check_reachable("planName", found.plan_name, others=())
    if found.plan_name is None and found.budget is not None:
        raise UsageError("budget is for plans: give the run one", details={"field": "budget"})
    if found.plan_name is None and found.jobs is not None:
        raise UsageError("jobs is for plans: one run is alone", details={"field": "jobs"})
    return found


async def add(request: Request) -> Response:
    """POST /v1/schedules: start this work at these times, from now on."""
    services, caller = _operator(request)
    body = parse_schedule(await body_of(request, bytes_max=PLAN_BODY_BYTES_MAX))
    name = body.plan_name
    wanted = Schedule(
        id=ScheduleId(""),
        name=body.name,
        when=body.when,
        zone=body.zone,
        specs=body.specs,
        cwd=cwd_of(body.cwd, body.specs),
        requester=services.engine.queries.inbox_of(caller.session),
        created_at_ms=0,
        decided_to_ms=0,
        overlap=Overlap(body.overlap),
        missed=Missed(body.missed),
        plan=None
        if name is None
        else ScheduledPlan(name=name, budget=plan_budget(body.budget), jobs=body.jobs),
        default_agent=body.default_agent,
    )
    # Nobody's shell is there when they start: they run as the daemon does.
    common = replace(body.environment, process=None)
    brought = environments_of(caller, common, body.step_environments, len(body.specs))
    config = await services.config_in(wanted.cwd, is_operator=True)
    with config.explaining():
        schedules, given = Schedules.of(services.engine), brought if any(brought) else ()
        stored = await schedules.add(wanted, given, replaces=body.replace)
    row = schedule_building.row(stored, schedules)
    return answer(
        structs.replace(row, warnings=await schedules.warnings(stored, given)), status=201
    )


async def list_schedules(request: Request) -> Response:
    """GET /v1/schedules: all of them, oldest first."""
    services, _ = _operator(request)
    rows = await schedule_building.rows(Schedules.of(services.engine))
    return answer(SchedulePage(**services.as_of(), schedules=rows))


async def show(request: Request) -> Response:
    """GET /v1/schedules/{sel}: by name or id, with what became of its newest times."""
    services, _ = _operator(request)
    return _answer(services, await _named(services, request))


async def remove(request: Request) -> Response:
    """DELETE /v1/schedules/{sel}: it starts nothing more; its runs go on."""
    services, _ = _operator(request)
    gone = await Schedules.of(services.engine).remove((await _named(services, request)).id)
    return _answer(services, gone)


async def pause(request: Request) -> Response:
    """POST /v1/schedules/{sel}/pause: it starts nothing until it is resumed."""
    services, _ = _operator(request)
    paused = await Schedules.of(services.engine).pause((await _named(services, request)).id)
    return _answer(services, paused)


async def resume(request: Request) -> Response:
    """POST /v1/schedules/{sel}/resume: it goes on with the next time that is due."""
    services, _ = _operator(request)
    resumed = await Schedules.of(services.engine).resume((await _named(services, request)).id)
    return _answer(services, resumed)


async def run_now(request: Request) -> Response:
    """POST /v1/schedules/{sel}/run: start its work now, besides its times."""
    services, _ = _operator(request)
    receipts = await Schedules.of(services.engine).run_now((await _named(services, request)).id)
    step = receipts[0].run.resolved.step
    found = ScheduleStart(
        run_ids=[each.run.id for each in receipts], plan_id=None if step is None else step.plan
    )
    return answer(found, status=201)


def _operator(request: Request) -> tuple[Services, Caller]:
    """Who may use schedules.

    Raises:
        Forbidden: An agent calls.
    """
    caller = Caller.of(request)
    if not caller.is_operator:
        raise Forbidden(
            "schedules are the operator's: an agent's work would go on after it",
            guardrail="schedules",
            hint="ask the user to run: subagents schedule add",
        )
    return services_of(request), caller


async def _named(services: Services, request: Request) -> Schedule:
    return await Schedules.of(services.engine).find(path_part(request, "sel"))


def _answer(services: Services, schedule: Schedule) -> Response:
    return answer(schedule_building.row(schedule, Schedules.of(services.engine)))


OPERATIONS: Final = {
    ("POST", "/v1/schedules"): Operation(
        add, body=ScheduleBody, status=201, answers=(ScheduleRow,)
    ),
    ("GET", "/v1/schedules"): Operation(list_schedules, answers=(SchedulePage,)),
    ("GET", "/v1/schedules/{sel}"): Operation(show, answers=(ScheduleRow,)),
    ("DELETE", "/v1/schedules/{sel}"): Operation(remove, answers=(ScheduleRow,)),
    ("POST", "/v1/schedules/{sel}/pause"): Operation(pause, answers=(ScheduleRow,)),
    ("POST", "/v1/schedules/{sel}/resume"): Operation(resume, answers=(ScheduleRow,)),
    ("POST", "/v1/schedules/{sel}/run"): Operation(run_now, status=201, answers=(ScheduleStart,)),
}
ROUTES: Final = routes(OPERATIONS)
