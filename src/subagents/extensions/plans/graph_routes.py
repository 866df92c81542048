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
from subagents.api.wire.listing import Listing, Truncated
from subagents.api.wire.parameters import number, word
from subagents.api.wire.run_answers import BelowCounts, Standing, Verdict, Wait
from subagents.api.wire.wire_struct import Time, WireStruct
from subagents.api.wire.words import UNSAID, EdgeKind, RunStatusWord
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId
from subagents.engine.runs.queries import Descendants, RunTree
from subagents.engine.runs.surroundings import Surroundings
from subagents.errors import UsageError
from subagents.extensions.plans.plan_routes import plans_of


class GraphNode(Standing, frozen=True, kw_only=True):
    """A run in a graph."""

    agent_id: str = ""
    """The configured agent."""
    run_status: RunStatusWord = UNSAID
    """One word for people: the outcome's status, `blocked`, `paused`, `waiting` or the phase."""
    why: str = ""
    """Why it is where it is, in one sentence."""
    wait: Wait | None = None
    """What it waits for, as data; null = nothing: it is at work, or has ended."""
    verdict: Verdict | None = None
    """What its contract found; null without a contract, and until it is known."""
    vacuous: bool = False
    """Its contract was met before the work began: that it is met proves nothing."""
    pending_request_count: int = 0
    """Open questions of its worker."""
    started_at: Time | None = None
    """When its first attempt began."""
    ended_at: Time | None = None
    """When its outcome was known."""
    below: BelowCounts | None = None
    """The runs below a plan, by state, which are no nodes; null = there are none."""


class GraphEdge(WireStruct, frozen=True, kw_only=True):
    """From one node to another."""

    source: str = ""
    """The run that has to end first, or that spawned the other."""
    target: str = ""
    """The run that waits for it, or that it spawned."""
    kind: EdgeKind = UNSAID
    """`waits` or `spawned`."""


class Graph(Listing, frozen=True, kw_only=True):
    """A plan or a tree of runs: what is cut away takes its edges with it."""

    plan_id: str | None = None
    """The id of the plan; null = it is a tree."""
    name: str | None = None
    """The name of the plan, as it was given."""
    nodes: list[GraphNode] = []
    """The nodes, at most `limit`: the steps of the plan in its order, or the tree level after
    level."""
    edges: list[GraphEdge] = []
    """The edges between these nodes."""
    runs: int = 0
    """How many nodes there are, also those that are cut away."""
    states: dict[str, int] = {}
    """How many of them have each `runStatus`."""


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
