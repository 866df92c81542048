"""``/v1/demo``: the demo's fleet in the home that is asked, for who has its page open."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from subagents.api.calls.auth import Caller
from subagents.api.calls.call import answer, require_operator
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.services import services_of
from subagents.api.routes.spawn_routes import plan_receipt
from subagents.api.wire.run_answers import PlanReceipt
from subagents.engine.runs.spawn_call import PlanAsked, RunAsked


async def demo_here(request: Request) -> Response:
    """POST /v1/demo: four small runs, one of which asks, in a new temporary directory."""
    from subagents.extensions.demo.demo_fleet import DemoDirectory, fleet_here  # noqa: PLC0415 - seldom

    services, caller = services_of(request), Caller.of(request)
    require_operator(caller, "the demo")
    directory = await services.off_loop(DemoDirectory.with_sources)
    where = str(directory.work)
    try:
        specs = await services.off_loop(lambda: fleet_here(directory))
        config = await services.config_in(where, is_operator=True)
        with config.explaining():
            receipts = await services.engine.spawner.spawn_batch(
                [RunAsked(spec=each) for each in specs],
                caller.context(config.settings, where),
                plan=PlanAsked(name="demo"),
            )
    except BaseException:
        await services.off_loop(directory.remove)
        raise
    return answer(plan_receipt(receipts, config), status=201)


OPERATIONS: Final = {
    ("POST", "/v1/demo"): Operation(demo_here, status=201, answers=(PlanReceipt,)),
}
ROUTES: Final = routes(OPERATIONS)
