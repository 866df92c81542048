"""``GET /v1/graph``: a plan or a tree of runs as nodes and edges."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from subagents.api.answers import run_building
from subagents.api.calls.auth import Caller
from subagents.api.calls.call import answer, find_run, plan_id_of, query_of
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.services import Services, services_of
from subagents.api.wire.listing import Truncated
from subagents.api.wire.parameters import number, word
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId
from subagents.engine.runs.queries import Descendants, RunTree
from subagents.engine.runs.surroundings import Surroundings
from subagents.errors import UsageError
from subagents.extensions.plans.graph_answers import Graph, GraphEdge, GraphNode
from subagents.extensions.plans.plan_routes import plans_of

NODES_MAX: Final = 2_000
"""The most nodes: more nobody can look at as a graph; lists have them all."""
GRAPH: Final = (
    word("plan", "Of this plan: its id, a unique prefix of it, its name or last."),
    word("tree", "Of this run and those below it."),
    number("limit", "At most so many nodes.", low=1, high=NODES_MAX, default=NODES_MAX),
)
NONE_BELOW: Final = Descendants({}, is_bound=False)


async def graph(request: Request) -> Response:
    """GET /v1/graph: the steps of a plan, or a tree, with what waits for what."""
    services, caller = services_of(request), Caller.of(request)
    query = query_of(request, GRAPH)
    limit = query.number("limit")
    if ("plan" in query) == ("tree" in query):
        raise UsageError("name a plan or a tree, one of them", details={"field": "plan"})
    if "plan" in query:
        plan_id = await plan_id_of(services, query["plan"], caller)
        return answer(await _of_plan(services, plan_id, limit))
    run = await find_run(services, query["tree"], caller)
    return answer(await _of_tree(services, run, limit))


async def _of_plan(services: Services, plan_id: str, limit: int) -> Graph:
    as_of = services.as_of()
    plan = await plans_of(services).plan(plan_id)
    shown = plan.steps[:limit]
    parents = [run.id for run in shown if run.children]
    counts = await services.engine.queries.below(parents) if parents else NONE_BELOW
    return Graph(
        **as_of,
        truncated=_truncated(len(shown), len(plan.steps)),
        plan_id=plan.id,
        name=plan.name,
        nodes=_nodes(services, shown, counts),
        edges=[*_spawned(shown), *_waits(shown, plan.instead)],
        runs=len(plan.steps),
        states=dict(Counter(run_building.run_status(run) for run in plan.steps)),
    )


async def _of_tree(services: Services, root: Run, limit: int) -> Graph:
    as_of = services.as_of()
    tree = await services.engine.queries.tree(root.id, most=limit)
    shown = [*_level_by_level(tree)]
    found = run_building.below(await services.engine.queries.below([root.id]), root.id)
    states = Counter({} if found is None else found.states)
    states[run_building.run_status(tree.run)] += 1
    return Graph(
        **as_of,
        truncated=_truncated(
            len(shown), states.total(), is_bound=found is not None and found.is_bound
        ),
        nodes=_nodes(services, shown, NONE_BELOW),
        edges=[*_spawned(shown), *_waits(shown, {})],
        runs=states.total(),
        states=dict(states),
    )


def _truncated(shown: int, total: int, *, is_bound: bool = False) -> Truncated | None:
    if shown >= total:
        return None
    return Truncated(shown=shown, total=total, total_is_bound=is_bound)


def _nodes(services: Services, runs: Sequence[Run], counts: Descendants) -> list[GraphNode]:
    now_ms, around = services.now_ms(), services.around()
    return [_node(run, now_ms, around, counts) for run in runs]


def _node(run: Run, now_ms: int, around: Surroundings, counts: Descendants) -> GraphNode:
    below = run_building.below(counts, run.id)
    return run_building.shown(GraphNode, run, now_ms, around, below=below)


def _level_by_level(tree: RunTree) -> Iterator[Run]:
    pending = deque([tree])
    while pending:
        found = pending.popleft()
        yield found.run
        pending.extend(found.children)


def _waits(runs: Sequence[Run], instead: Mapping[RunId, RunId]) -> Iterator[GraphEdge]:
    """From each dependency to what waits, or waited, for it; of a retried step the newest run."""
    shown = {run.id for run in runs}
    for run in runs:
        sources = (instead.get(each.run_id, each.run_id) for each in run.waiting.dependencies)
        for source in dict.fromkeys(sources):
            if source in shown:
                yield GraphEdge(source=source, target=run.id, kind="waits")


def _spawned(runs: Sequence[Run]) -> Iterator[GraphEdge]:
    shown = {run.id for run in runs}
    for run in runs:
        above = run.lineage.requester_run
        if above in shown:
            yield GraphEdge(source=str(above), target=run.id, kind="spawned")


OPERATIONS: Final = {("GET", "/v1/graph"): Operation(graph, query=GRAPH, answers=(Graph,))}
ROUTES: Final = routes(OPERATIONS)
