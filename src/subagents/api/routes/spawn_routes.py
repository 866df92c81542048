"""Starting runs: ``POST /v1/runs``, ``/v1/plans`` and ``/v1/runs/{sel}/retry``."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from subagents.api.answers import run_building
from subagents.api.answers.dry_run import dry_run
from subagents.api.calls.auth import Caller
from subagents.api.calls.call import (
    PLAN_BODY_BYTES_MAX,
    SPAWN_BODY_BYTES_MAX,
    answer,
    body_of,
    on_run,
)
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.services import Services, services_of
from subagents.api.wire import requests as wire
from subagents.api.wire.run_answers import DryRun, PlanReceipt, SpawnReceipt
from subagents.config.layers import Config
from subagents.domain.rules.parameter_checks import check_name
from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.spec import IDEMPOTENCY_KEY_CHARS_MAX, Budget, RunSpec
from subagents.domain.run.values import replace
from subagents.engine.runs.spawn import Receipt
from subagents.engine.runs.spawn_call import PlanAsked, RunAsked, Trial
from subagents.errors import Forbidden, UsageError

PLACE_CHARS_MAX: Final = 10
"""Room for a step's place in its plan, behind the plan's idempotency key."""


async def spawn(request: Request) -> Response:
    """POST /v1/runs: one run, or the first one of the same idempotency key."""
    asked = await _one_asked(request)
    (receipt,) = await _spawned(request, asked)
    return answer(run_building.receipt(receipt, asked.config.ignored), status=201)


async def dry_spawn(request: Request) -> Response:
    """POST /v1/runs/dry-run: what the same call of POST /v1/runs would come to; starts nothing."""
    return await _dry_run(request, await _one_asked(request))


async def spawn_plan(request: Request) -> Response:
    """POST /v1/plans: all of the runs or none; they name each other by label."""
    asked = await _plan_asked(request)
    return answer(plan_receipt(await _spawned(request, asked), asked.config), status=201)


async def dry_plan(request: Request) -> Response:
    """POST /v1/plans/dry-run: what the same call of POST /v1/plans would come to; starts nothing.

    A refusal of several runs names all of them in the details (``problems``).
    """
    return await _dry_run(request, await _plan_asked(request))


class _Asked(NamedTuple):
    """What a call wants to be started."""

    runs: Sequence[RunAsked]
    config: Config
    cwd: str
    plan: PlanAsked | None = None


async def _one_asked(request: Request) -> _Asked:
    services, caller = services_of(request), Caller.of(request)
    body = wire.parse_spawn(await body_of(request, bytes_max=SPAWN_BODY_BYTES_MAX))
    spec = body.spec
    # The header is HTTP's way to say it; the parameter counts where both are given.
    if spec.idempotency_key is None:
        spec = replace(spec, idempotency_key=_key_of(request))
    config = await config_of(services, caller, body.cwd, body.config_env, body.overrides)
    (spec,) = _with_default([spec], body.default_agent, config)
    cwd = cwd_of(body.cwd, [spec])
    environment = _environment_of(caller, body.environment)
    return _Asked([RunAsked(spec=spec, environment=environment)], config, cwd)


def _key_of(request: Request, before: str = "") -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None:
        check_name("Idempotency-Key", key, chars_max=IDEMPOTENCY_KEY_CHARS_MAX - len(before))
    return key and f"{before}{key}"


async def _plan_asked(request: Request) -> _Asked:
    services, caller = services_of(request), Caller.of(request)
    body = wire.parse_plan(await body_of(request, bytes_max=PLAN_BODY_BYTES_MAX))
    key = body.idempotency_key
    key = request.headers.get("idempotency-key") if key is None else key
    config = await config_of(services, caller, body.cwd, body.config_env, body.overrides)
    specs = _keyed(_with_default(body.specs, body.default_agent, config), key)
    cwd = cwd_of(body.cwd, body.specs)
    brought = environments_of(caller, body.environment, body.step_environments, len(specs))
    return _Asked(
        [RunAsked(spec=spec, environment=own) for spec, own in zip(specs, brought, strict=True)],
        config,
        cwd,
        PlanAsked(name=body.name, budget=plan_budget(body.budget), jobs=body.jobs),
    )


async def _spawned(
    request: Request, asked: _Asked, *, trial: Trial | None = None
) -> tuple[Receipt, ...]:
    services, caller = services_of(request), Caller.of(request)
    with asked.config.explaining():
        return await services.engine.spawner.spawn_batch(
            asked.runs,
            caller.context(asked.config.settings, asked.cwd),
            plan=asked.plan,
            trial=trial,
        )


async def _dry_run(request: Request, asked: _Asked) -> Response:
    receipts = await _spawned(request, asked, trial=Trial.NOW)
    plan = None if asked.plan is None else asked.plan.budget
    around = services_of(request).around()
    brought = [each.environment for each in asked.runs]
    found = dry_run(receipts, brought, around, plan=plan, warnings=asked.config.ignored)
    return answer(found)


def plan_receipt(receipts: Sequence[Receipt], config: Config) -> PlanReceipt:
    """What was started together, as it is answered."""
    step = receipts[0].run.resolved.step
    return PlanReceipt(
        plan_id=None if step is None else step.plan,
        name=None if step is None else step.name,
        receipts=[run_building.receipt(each, config.ignored) for each in receipts],
    )


def _keyed(specs: Sequence[RunSpec], key: str | None) -> Sequence[RunSpec]:
    """Each step under its own key, made of the plan's."""
    if key is None:
        return specs
    check_name("idempotencyKey", key, chars_max=IDEMPOTENCY_KEY_CHARS_MAX - PLACE_CHARS_MAX)
    return [
        spec if spec.idempotency_key is not None else replace(spec, idempotency_key=f"{key}/{at}")
        for at, spec in enumerate(specs)
    ]


def plan_budget(limit: wire.PlanLimit | None) -> Budget | None:
    """What a plan's runs may use together; None = whatever each may."""
    # An empty object limits nothing.
    if limit is None or limit == wire.PlanLimit():
        return None
    return Budget(**asdict(limit))


def environments_of(
    caller: Caller, common: CallerEnvironment, of_steps: Sequence[Mapping[str, str]], number: int
) -> list[CallerEnvironment | None]:
    """What the operator brings for each step: that of the step is stronger than the plan's.

    Raises:
        Forbidden: An agent brings some.
    """
    found = []
    for at in range(number):
        own = of_steps[at] if of_steps else {}
        theirs = replace(common, given={**common.given, **own}) if own else common
        found.append(_environment_of(caller, theirs))
    return found


def _environment_of(caller: Caller, brought: CallerEnvironment) -> CallerEnvironment | None:
    """What the operator brings for their workers.

    Raises:
        Forbidden: An agent tried to: with its own PATH other programs would run under our rules.
    """
    if brought.is_empty:
        return None
    if not caller.is_operator:
        raise Forbidden(
            "variables for workers (environment, --env) are taken from the operator only",
            guardrail="environment",
            hint="leave them out, or ask the user to set agents.<id>.env",
        )
    return brought


def _with_default(
    specs: Sequence[RunSpec], default_agent: str | None, config: Config
) -> Sequence[RunSpec]:
    """The specs with the caller's agent for those that would have none."""
    if default_agent is None or config.settings.defaults.agent is not None:
        return specs
    return [
        spec if spec.agent_id is not None else replace(spec, agent_id=default_agent)
        for spec in specs
    ]


def cwd_of(cwd: str | None, specs: Sequence[RunSpec]) -> str:
    """Where specs that name no directory work; the daemon's own would be a surprise."""
    # One that continues a session works where that does.
    if cwd is None and any(spec.cwd is None and spec.continues is None for spec in specs):
        raise UsageError(
            "cwd is required: the caller's working directory", details={"field": "cwd"}
        )
    return cwd or ""


async def retry(request: Request) -> Response:
    """POST /v1/runs/{sel}/retry: a new run from the stored parameters."""
    services, caller, run = await on_run(request)
    config = await config_of(services, caller, run.resolved.project, {}, {})
    # A key of the spawn stands for the run that is tried again.
    key, context = _key_of(request, before=f"{run.id}/"), caller.context(config.settings)
    receipt = await services.engine.spawner.retry(run.id, context, key=key)
    return answer(run_building.receipt(receipt, config.ignored), status=201)


async def config_of(
    services: Services,
    caller: Caller,
    cwd: str | None,
    config_env: Mapping[str, str],
    overrides: Mapping[str, object],
) -> Config:
    """The configuration where the caller is; a project's file widens nothing for an agent.

    Raises:
        Forbidden: An agent tried to bring its own limits along.
    """
    if (config_env or overrides) and not caller.is_operator:
        raise Forbidden(
            "configuration from the caller (configEnv, overrides) is taken from the operator only",
            guardrail="config",
            hint="unset the SUBAGENTS_…__… variables",
        )
    run = services.engine.queries.open_run(caller.run_id) if caller.run_id is not None else None
    # A worker in a worktree: the configuration is the project's, not what the worker wrote there.
    if run is not None and run.resolved.worktree is not None:
        cwd = run.resolved.project
    return await services.config_in(cwd, config_env, overrides, is_operator=caller.is_operator)


OPERATIONS: Final = {
    ("POST", "/v1/runs"): Operation(
        spawn,
        body=wire.SpawnBody,
        status=201,
        headers=("Idempotency-Key",),
        answers=(SpawnReceipt,),
    ),
    ("POST", "/v1/runs/dry-run"): Operation(
        dry_spawn, body=wire.SpawnBody, headers=("Idempotency-Key",), answers=(DryRun,)
    ),
    ("POST", "/v1/plans"): Operation(
        spawn_plan,
        body=wire.PlanBody,
        status=201,
        headers=("Idempotency-Key",),
        answers=(PlanReceipt,),
    ),
    ("POST", "/v1/plans/dry-run"): Operation(
        dry_plan, body=wire.PlanBody, headers=("Idempotency-Key",), answers=(DryRun,)
    ),
    ("POST", "/v1/runs/{sel}/retry"): Operation(
        retry, status=201, headers=("Idempotency-Key",), answers=(SpawnReceipt,)
    ),
}
ROUTES: Final = routes(OPERATIONS)
