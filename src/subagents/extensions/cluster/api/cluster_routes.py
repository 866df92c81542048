"""The cluster: ``GET /v1/cluster`` for its nodes, ``POST /v1/cluster/drain`` for this one."""

from collections import Counter
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from subagents.api.calls.auth import Caller
from subagents.api.calls.call import answer, body_of, query_of, require_operator
from subagents.api.calls.operation import Operation, routes
from subagents.api.calls.services import Services, services_of
from subagents.api.wire import requests as wire
from subagents.api.wire.daemon_answers import Cluster, ClusterNode
from subagents.api.wire.wire_struct import made
from subagents.domain.cluster.partitioning import PARTITIONS
from subagents.errors import UsageError
from subagents.extensions.cluster.api.cluster_member import ClusterMember, member_in, partitions_in


class DrainBody(wire.Body, frozen=True):
    """Whether this node gives its partitions away and takes no more."""

    on: bool = True
    """False = it takes its share again."""


async def show(request: Request) -> Response:
    """GET /v1/cluster: the nodes that share the database, and what each decides about."""
    services = services_of(request)
    require_operator(Caller.of(request), "the list of nodes")
    _require_cluster(services)
    query_of(request, ())
    return answer(await _shown(services))


async def drain(request: Request) -> Response:
    """POST /v1/cluster/drain: this node gives its partitions to others; its workers go on."""
    services = services_of(request)
    _require_cluster(services)
    require_operator(Caller.of(request), "cluster drain")
    given = await body_of(request)
    body = wire.parse_body(given, DrainBody) if given.strip() else DrainBody()
    await services.engine.drain(is_on=body.on)
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
            partitions=count[each.identity],
            is_self=each.identity == partitions.identity,
        )
        for each in survey.nodes.values()
    ]
    nodes.sort(key=lambda each: (not each.alive, each.name, each.identity))
    refused = survey.forged + _require_cluster(services).trust.refused
    return Cluster(nodes=nodes, unowned=PARTITIONS - len(survey.owners), refused=refused)


OPERATIONS: Final = {
    ("GET", "/v1/cluster"): Operation(show, answers=(Cluster,)),
    ("POST", "/v1/cluster/drain"): Operation(drain, body=DrainBody, answers=(Cluster,)),
}
ROUTES: Final = routes(OPERATIONS)
