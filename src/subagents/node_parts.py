"""What a node of a cluster has besides its engine: only ``wiring`` asks here."""

import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from subagents.api.calls.cluster_member import ClusterMember
from subagents.api.calls.peers import Peers
from subagents.api.cluster import promises
from subagents.api.cluster.node_client import PeerClient
from subagents.api.routes import attempt_routes
from subagents.config.paths import Paths
from subagents.config.settings import EVERYWHERE, Settings
from subagents.domain.run.secret_reference import is_reference
from subagents.engine.attempts.placement import ClusterPlaces
from subagents.engine.kernel.system_clock import SystemClock
from subagents.engine.kernel.threads import DaemonThreads, on_own_loop
from subagents.engine.parts import no_peers
from subagents.errors import ConfigError
from subagents.node_keeper import NodeKeeper
from subagents.places.polled_places import PolledPlaces, PolledTaking
from subagents.ports import (
    ClusterTrust,
    FreeSlots,
    Member,
    Offers,
    Places,
    Runtime,
    SeenNode,
    Survey,
    Taking,
    Workplace,
)
from subagents.runtimes.process.node_deadline import margin_s
from subagents.runtimes.process.secret_values import ask
from subagents.runtimes.process.watchdog import Watchdog
from subagents.runtimes.remote.attempt_host import AttemptHost
from subagents.runtimes.remote.remote_runtime import RemoteRuntimes
from subagents.runtimes.remote.remote_workplace import RemoteWorkplace
from subagents.runtimes.remote.slots import Slots
from subagents.runtimes.remote.workplace_host import WorkplaceHost

Take = Callable[[], Coroutine[Any, Any, None]]
"""Takes attempts of other nodes until cancelled."""


@dataclass(frozen=True, slots=True)
class NodeParts:
    """All of it; each part as it is where a daemon is alone."""

    member: ClusterMember | None = None
    """What the doors of this node have to know."""
    peers_promise: Callable[[Sequence[SeenNode]], Awaitable[bool]] = no_peers
    """See ``Adapters.peers_promise``."""
    places: ClusterPlaces | None = None
    taking: Take | None = None
    extend_work: Callable[[int], None] = lambda _until_ms: None
    """Lets the workers of this home live until a time at which the node may be over."""
    threads: tuple[DaemonThreads, ...] = ()
    tidy: Callable[[], None] = lambda: None
    """Drop what nobody comes for. Blocks; may raise ``StoreUnavailable``."""
    close: Callable[[], None] = lambda: None
    """Nobody uses them any more. Idempotent."""


def node_name(settings: Settings) -> str:
    """What this daemon is called in attempts, and in its cluster."""
    return settings.daemon.node or os.uname().nodename


def member_of(settings: Settings) -> Member | None:
    """What this daemon says of itself to its cluster; None = it is in none."""
    cluster = settings.cluster
    if cluster.listen is None:
        return None
    return Member(
        name=node_name(settings),
        url=cluster.url_at(os.uname().nodename),
        labels=cluster.labels,
        slots=cluster.slots,
        lease_s=cluster.lease_seconds,
    )


def watched(paths: Paths, member: Member, keeper: NodeKeeper) -> Callable[[int], None]:
    """Lets the workers of a home live until a time at which its node may be over."""
    watchdog = Watchdog(paths.state_dir, paths.attempts_dir)
    margin_ms = int(margin_s(member.lease_s) * 1000)

    def extend(until_ms: int) -> None:
        watchdog.extend(until_ms - margin_ms)
        keeper.ensure()

    return extend


def trust_of(paths: Paths, settings: Settings) -> ClusterTrust | None:
    """What makes this daemon and the other nodes sure of each other, once it is started.

    None = the daemon is alone.

    Raises:
        ConfigError: It is to be a node, but what is needed for it is not installed.
    """
    name = os.uname().nodename
    url, address, store = (
        settings.cluster.url_at(name),
        settings.cluster.address,
        settings.daemon.store,
    )
    if url is None or address is None or store is None:
        return None
    try:
        from subagents.cluster.node_trust import NodeTrust  # noqa: PLC0415 - an extra
        from subagents.cluster.trust_files import TrustFiles  # noqa: PLC0415
        from subagents.cluster.trust_tables import TrustTables  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            f"cluster.listen is set, but {error.name} is not installed",
            hint="install subagents[cluster], or remove cluster.listen",
            details={"keys": ["cluster.listen"]},
        ) from error
    return NodeTrust(
        TrustFiles(paths.cluster_dir),
        TrustTables(store),
        node=node_name(settings),
        hosts=[
            host
            for host in (urlsplit(url).hostname, address[0], name)
            if host is not None and host not in EVERYWHERE
        ],
    )


def cluster_of(paths: Paths, settings: Settings) -> ClusterMember | None:
    """What the doors of this node have to know; None = the daemon is alone.

    Raises:
        ConfigError: See ``trust_of``.
    """
    trust, address = trust_of(paths, settings), settings.cluster.address
    url = settings.cluster.url_at(os.uname().nodename)
    if trust is None or address is None or url is None:
        return None
    return ClusterMember(
        name=node_name(settings), address=address, url=url, trust=trust, peers=Peers(trust)
    )


def node_parts_of(
    paths: Paths,
    settings: Settings,
    member: Member | None,
    runtimes: Mapping[str, Runtime],
    processes: DaemonThreads,
    *,
    survey: Callable[[], Survey],
    identity: Callable[[], str],
    promise: Callable[[], bool],
    workplace: Callable[[], Workplace],
) -> NodeParts:
    """What a node knows of itself, of places on others, and what it takes from them.

    Args:
        paths: The state directory.
        settings: Of the daemon.
        member: What it says of itself to others; None = there are none.
        runtimes: Of this node.
        processes: Threads for what looks at processes.
        survey: Which nodes there are.
        identity: Of this start of ours, once the store is open.
        promise: See ``Ownership.promise``.
        workplace: Of this node.

    Raises:
        ConfigError: What is needed is not installed.
    """
    found = cluster_of(paths, settings)
    if found is None or member is None or settings.daemon.store is None:
        return NodeParts(found)
    from subagents.store.postgres.database_url import parse_url  # noqa: PLC0415 - an extra
    from subagents.store.postgres.offers.postgres_offers import PostgresOffers  # noqa: PLC0415

    keeper = NodeKeeper(paths.state_dir, settings.daemon.store, member.lease_s, identity)
    clock, threads = SystemClock(), DaemonThreads("offers", threads_max=2)
    offers = PostgresOffers(parse_url(settings.daemon.store))
    slots = Slots(paths.attempts_dir, member.slots, clock.elapsed_ms)
    client = PeerClient(found.peers, survey)
    remote = RemoteRuntimes(
        client, clock, processes, result_bytes_max=settings.retention.result_bytes_max
    )
    host = AttemptHost(runtimes, slots, processes, {"SUBAGENTS_SOCKET": str(paths.socket)})

    def may_take() -> bool:
        own = survey().nodes.get(identity())
        return own is not None and own.left_s > 0 and not own.is_draining

    places: Places = PolledPlaces(offers, threads, clock)
    taking: Taking = PolledTaking(
        offers,
        threads,
        clock,
        node=member.name,
        labels=member.labels,
        slots=slots,
        may_take=may_take,
    )
    if settings.cluster.temporal is not None:
        places, taking = through_temporal(
            settings, member, offers, threads, slots=slots, may_take=may_take
        )

    async def take() -> None:
        await processes(slots.load)
        await taking.run()

    def close() -> None:
        offers.close()
        keeper.close()

    files = WorkplaceHost(workplace)
    routes = (*attempt_routes.routes(host, files), *promises.routes(promise))
    return NodeParts(
        member=replace(found, routes=(*found.routes, *routes)),
        peers_promise=partial(promises.all_promise, client),
        places=ClusterPlaces(
            node=member.name,
            labels=member.labels,
            slots=slots,
            places=places,
            remote=remote,
            workplaces=lambda node: RemoteWorkplace(node, client, clock),
        ),
        taking=take,
        extend_work=watched(paths, member, keeper),
        threads=(threads,),
        tidy=offers.sweep,
        close=close,
    )


def through_temporal(
    settings: Settings,
    member: Member,
    offers: Offers,
    threads: DaemonThreads,
    *,
    slots: FreeSlots,
    may_take: Callable[[], bool],
) -> tuple[Places, Taking]:
    """Both sides of the way to places through the configured Temporal.

    Raises:
        ConfigError: Its client is not installed, or a file of its keys cannot be read.
    """
    given = settings.cluster
    try:
        from subagents.places.temporal_places import (  # noqa: PLC0415 - an extra
            TemporalPlaces,
            TemporalTaking,
            temporal_address,
        )
    except ImportError as error:
        raise ConfigError(
            f"cluster.temporal is set, but {error.name} is not installed",
            hint="install subagents[temporal], or remove cluster.temporal",
            details={"keys": ["cluster.temporal"]},
        ) from error
    try:
        address = temporal_address(
            given.temporal or "",
            cluster=given.temporal_queues,
            namespace=given.temporal_namespace,
            api_key=secret_of(given.temporal_api_key, settings),
            is_tls=given.temporal_tls,
            files=(given.temporal_ca, given.temporal_cert, given.temporal_key),
        )
    except OSError as error:
        raise ConfigError(f"a file of cluster.temporal_… cannot be read: {error}") from error
    places = TemporalPlaces(address, offers, threads, SystemClock())
    taking = TemporalTaking(
        address,
        offers,
        on_own_loop,
        node=member.name,
        labels=member.labels,
        slots=slots,
        may_take=may_take,
    )
    return places, taking


def secret_of(value: str | None, settings: Settings) -> str | None:
    """A configured value, asked for where it only refers to a secret."""
    if value is None or not is_reference(value):
        return value
    name = value.removeprefix("secret:")
    return ask(name, settings.secrets.get(name), os.environ)
