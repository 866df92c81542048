"""The cluster: ``GET /v1/cluster`` for its nodes, ``POST /v1/cluster/drain`` for this one, and
``POST /v1/cluster/forget`` for one that is gone.
"""

import asyncio
from collections import Counter
from functools import partial
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from subagents.api.calls.auth import Caller
from subagents.api.calls.call import answer, body_of, query_of, require_operator
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.services import Services, services_of
from subagents.api.wire import requests as wire
from subagents.api.wire.parameters import flag
from subagents.api.wire.wire_struct import made
from subagents.domain.cluster.partitioning import PARTITIONS
from subagents.domain.rules.retry import retry_delay_ms
from subagents.domain.run.outcome import Outcome, Status
from subagents.domain.run.run import AT_WORK, HOLDS_SLOT
from subagents.errors import Conflict, NotFound, UsageError
from subagents.extensions.cluster.api.cluster_answers import Cluster, ClusterNode, WorkHere
from subagents.extensions.cluster.api.cluster_member import ClusterMember, member_in, partitions_in
from subagents.ports import RunFilter

DOORS: Final = (flag("doors", "Call each node at its url, and say which is not reached."),)


class DrainBody(wire.Body, frozen=True):
    """Whether this node gives its partitions away and takes no more."""

    on: bool = True
    """False = it takes its share again."""


class ForgetBody(wire.Body, frozen=True):
    """A node whose machine is gone."""

    node: str
    """Its name."""


async def show(request: Request) -> Response:
    """GET /v1/cluster: the nodes that share the database, and what each decides about."""
    services = services_of(request)
    require_operator(Caller.of(request), "the list of nodes")
    asked = query_of(request, DOORS)
    _require_cluster(services)
    found = await _shown(services)
    if asked.flag("doors"):
        found = msgspec.structs.replace(found, nodes=await _at_their_doors(services, found.nodes))
    return answer(found)


async def drain(request: Request) -> Response:
    """POST /v1/cluster/drain: this node gives its partitions to others and begins nothing more; its
    workers go on."""
    services = services_of(request)
    require_operator(Caller.of(request), "cluster drain")
    _require_cluster(services)
    given = await body_of(request)
    body = wire.parse_body(given, DrainBody) if given.strip() else DrainBody()
    await services.engine.drain(is_on=body.on)
    return answer(await _shown(services))


async def forget(request: Request) -> Response:
    """POST /v1/cluster/forget: others take over from a node whose right is over, at once."""
    services = services_of(request)
    require_operator(Caller.of(request), "cluster forget")
    _require_cluster(services)
    name = wire.parse_body(await body_of(request), ForgetBody).node
    partitions = partitions_in(services)
    await partitions.look()
    starts = [each for each in partitions.survey.nodes.values() if each.name == name]
    if not starts:
        raise NotFound(f'no node "{name}"', hint="see: subagents cluster status")
    if any(each.left_s > 0 for each in starts):
        raise Conflict(
            f"node {name} is alive", hint="on its machine: subagents cluster drain --wait"
        )
    await partitions.forget(name)
    return answer(await _shown(services))


def _require_cluster(services: Services) -> ClusterMember:
    """This node.

    Raises:
        UsageError: The daemon is alone.
    """
    found = member_in(services)
    if found is None:
        raise UsageError(
            "this daemon is in no cluster",
            hint="make it a node: set cluster.listen, cluster.secret and daemon.store",
        )
    return found


async def _shown(services: Services) -> Cluster:
    partitions = partitions_in(services)
    await partitions.look()
    survey = partitions.survey
    count = Counter(survey.owners.values())
    nodes = [
        made(
            ClusterNode,
            each,
            alive=each.left_s > 0,
            left_seconds=round(each.left_s, 3),
            draining=each.is_draining,
            unreached=None,
            partitions=count[each.identity],
            is_self=each.identity == partitions.identity,
        )
        for each in survey.nodes.values()
    ]
    own = survey.nodes.get(partitions.identity)
    here = await _work_at(services, own.name) if own is not None and own.is_draining else []
    nodes.sort(key=lambda each: (not each.alive, each.name, each.identity))
    refused = survey.forged + _require_cluster(services).trust.refused
    unowned = PARTITIONS - len(survey.owners)
    return Cluster(
        nodes=nodes,
        unowned=unowned,
        refused=refused,
        went_back=survey.went_back,
        work_here=here,
    )


async def _at_their_doors(services: Services, nodes: list[ClusterNode]) -> list[ClusterNode]:
    """Those that are alive, each called at its url, our own as well."""
    peers, seen = _require_cluster(services).peers, partitions_in(services).survey.nodes

    async def called(node: ClusterNode) -> ClusterNode:
        known = seen.get(node.identity) if node.alive else None
        why = None if known is None else await peers.unreached(known)
        return msgspec.structs.replace(node, unreached=why)

    return await asyncio.gather(*map(called, nodes))


async def _work_at(services: Services, node: str) -> list[WorkHere]:
    adapters = services.engine.adapters
    where = RunFilter(phases=tuple(sorted(AT_WORK)), limit=10_000)
    found = await adapters.off_loop(partial(adapters.store.runs, where))
    now, lost = adapters.clock.now_ms(), Outcome(status=Status.LOST)
    return [
        WorkHere(
            run_id=run.id,
            label=run.resolved.label,
            repeated=run.phase in HOLDS_SLOT and retry_delay_ms(run, lost, now) is not None,
        )
        for run in found
        if run.attempts and run.attempt.node == node
    ]


OPERATIONS: Final = {
    ("GET", "/v1/cluster"): Operation(show, query=DOORS, answers=(Cluster,)),
    ("POST", "/v1/cluster/drain"): Operation(drain, body=DrainBody, answers=(Cluster,)),
    ("POST", "/v1/cluster/forget"): Operation(forget, body=ForgetBody, answers=(Cluster,)),
}
ROUTES: Final = routes(OPERATIONS)
