"""What a node of a cluster has besides its engine."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from subagents.config.paths import Paths
from subagents.config.settings import EVERYWHERE, Settings
from subagents.domain.run.secret_reference import is_reference
from subagents.engine.kernel.system_clock import SystemClock
from subagents.engine.kernel.threads import DaemonThreads, on_own_loop
from subagents.errors import ConfigError
from subagents.extensions.cluster.api import attempt_routes, promises
from subagents.extensions.cluster.api.cluster_member import NAME, ClusterMember
from subagents.extensions.cluster.api.node_client import PeerClient
from subagents.extensions.cluster.api.peers import Peers
from subagents.extensions.cluster.cluster_settings import ClusterSettings
from subagents.extensions.cluster.engine.cluster_placement import ClusterPlaces
from subagents.extensions.cluster.engine.cluster_sharing import ClusterSharing
from subagents.extensions.cluster.node_deadline import margin_s
from subagents.extensions.cluster.node_keeper import NodeKeeper
from subagents.extensions.cluster.node_ports import Places, Taking
from subagents.extensions.cluster.places import asked_nodes
from subagents.extensions.cluster.places.polled_places import PolledPlaces, PolledTaking
from subagents.extensions.cluster.postgres.home_store import SIGNED, postgres_store
from subagents.extensions.cluster.remote.attempt_host import AttemptHost
from subagents.extensions.cluster.remote.node_health import NodeHealth, try_start
from subagents.extensions.cluster.remote.remote_runtime import RemoteRuntime
from subagents.extensions.cluster.remote.remote_workplace import RemoteWorkplace
from subagents.extensions.cluster.remote.slots import Slots
from subagents.extensions.cluster.remote.workplace_host import WorkplaceHost
from subagents.extensions.cluster.shared_store import Member, Survey
from subagents.extensions.cluster.watchdog import Watchdog
from subagents.installation import extra_command
from subagents.node import NodeHost, NodeParts, node_name
from subagents.runtimes.process.secret_values import ask

if TYPE_CHECKING:  # of an extra
    from subagents.extensions.cluster.offers.postgres_offers import PostgresOffers
    from subagents.extensions.cluster.trust.former_trust import RunSeal
    from subagents.extensions.cluster.trust.node_trust import NodeTrust
    from subagents.extensions.cluster.trust.signing import Signer

VARIABLE: Final = "SUBAGENTS_CLUSTER__SECRET"
OTHERS: Final = 0o077


def member_of(settings: Settings) -> Member:
    """What this daemon says of itself to its cluster."""
    cluster = settings.table(ClusterSettings)
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


def secret_in(paths: Paths, settings: Settings) -> bytes:
    """The cluster's secret.

    Raises:
        ConfigError: Others can read the file with it.
    """
    found = settings.table(ClusterSettings).secret
    assert found is not None  # noqa: S101  whoever listens has one, or its settings are refused
    file = paths.config_file
    if VARIABLE not in os.environ and file.exists() and file.stat().st_mode & OTHERS:
        raise ConfigError(
            f"others can read {file}, and cluster.secret is in it",
            hint=f"chmod 600 {file}; if somebody may have read it, change the secret",
            details={"keys": ["cluster.secret"]},
        )
    return found.strip().encode()


def trust_of(
    paths: Paths, settings: Settings, secret: bytes, survey: Callable[[], Survey]
) -> "tuple[NodeTrust, Signer, RunSeal]":
    """What this node proves itself by, what it signs with, and how it keeps secrets of runs.

    Raises:
        ConfigError: What is needed is not installed.
    """
    try:
        from subagents.extensions.cluster.trust.former_trust import FormerTrust, RunSeal  # noqa: PLC0415 - an extra
        from subagents.extensions.cluster.trust.node_trust import NodeTrust  # noqa: PLC0415
        from subagents.extensions.cluster.trust.signing import Signer  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            f"cluster.listen is set, but {error.name} is not installed",
            hint=f"{extra_command('cluster')}, or remove cluster.listen",
            details={"keys": ["cluster.listen"]},
        ) from error
    signer = Signer(secret, paths.state_dir / SIGNED)
    directory = paths.state_dir / "cluster"
    former = FormerTrust(directory, signer)
    cluster, machine = settings.table(ClusterSettings), os.uname().nodename
    listens = None if cluster.address is None else cluster.address[0]
    hosts = (urlsplit(cluster.url_at(machine) or "").hostname, listens, machine)
    trust = NodeTrust(
        directory / "node.pem",
        node=node_name(settings),
        hosts=[each for each in hosts if each and each not in EVERYWHERE],
        survey=survey,
        former=former,
    )
    return trust, signer, RunSeal(secret, former, signer)


def cluster_of(settings: Settings, trust: "NodeTrust") -> ClusterMember:
    """What the doors of this node have to know."""
    machine = os.uname().nodename
    cluster = settings.table(ClusterSettings)
    url, address = cluster.url_at(machine), cluster.address
    assert url is not None and address is not None  # noqa: S101, PT018  it listens
    return ClusterMember(
        name=node_name(settings), address=address, url=url, trust=trust, peers=Peers(trust)
    )


def node(host: NodeHost) -> NodeParts:
    """What a daemon in a cluster has: places on other nodes, and what this one takes from them.

    Raises:
        ConfigError: What is needed is not installed, or a cluster has no database that others
            reach.
    """
    paths, settings = host.paths, host.settings
    member, url = member_of(settings), settings.daemon.store
    if url is None:
        raise ConfigError(
            "cluster.listen is set, but daemon.store is not: a cluster needs one PostgreSQL for all"
            " of its nodes",
            hint='set daemon.store = "postgresql://…", or remove cluster.listen',
            details={"keys": ["cluster.listen", "daemon.store"]},
        )
    trust, signer, seal = trust_of(
        paths, settings, secret_in(paths, settings), lambda: sharing.partitions.survey
    )
    member = member._replace(certificate=trust.certificate)
    store = postgres_store(paths, url, member, signer)
    found = cluster_of(settings, trust)
    # Extras, all of these.
    from subagents.extensions.cluster.offers.postgres_offers import PostgresOffers  # noqa: PLC0415
    from subagents.extensions.cluster.postgres.postgres_permits import PostgresPermits  # noqa: PLC0415
    from subagents.extensions.cluster.shared.row_logs import row_logs  # noqa: PLC0415

    keeper = NodeKeeper(paths.state_dir, url, member.lease_s, lambda: store.identity)
    clock, threads = SystemClock(), DaemonThreads("offers", threads_max=2)
    offers = PostgresOffers(url)
    health = NodeHealth(partial(try_start, paths.state_dir), clock.elapsed_ms)
    slots = Slots(paths.attempts_dir, member.slots, clock.elapsed_ms, health)
    store.has_workers = lambda: slots.used > 0
    client = PeerClient(found.peers, lambda: sharing.partitions.survey)
    attempts = AttemptHost(
        host.runtimes, slots, host.processes, {"SUBAGENTS_SOCKET": str(paths.socket)}
    )

    def may_take() -> bool:
        own = sharing.partitions.survey.nodes.get(store.identity)
        return own is not None and own.left_s > 0 and not own.is_draining

    def survey() -> Survey:
        return sharing.partitions.survey

    nodes = asked_nodes.AskedNodes(member.name, client, survey)
    places: Places = PolledPlaces(offers, threads, clock, nodes.ask)
    polled = PolledTaking(
        offers,
        threads,
        clock,
        node=member.name,
        labels=member.labels,
        slots=slots,
        may_take=may_take,
        survey=survey,
    )
    taking: Taking = polled
    if settings.table(ClusterSettings).temporal is not None:
        places, taking = through_temporal(
            settings, member, offers, threads, slots=slots, may_take=may_take
        )

    sharing = ClusterSharing(
        store,
        host.off_loop,
        host.clock,
        permits=PostgresPermits(url, lambda: store.identity),
        peers_promise=partial(promises.all_promise, client),
        places=ClusterPlaces(
            node=member.name,
            labels=member.labels,
            slots=slots,
            places=places,
            remote=lambda node, runtime: RemoteRuntime(
                *(runtime, node, client, clock, host.processes),
                result_bytes_max=settings.retention.result_bytes_max,
            ),
            workplaces=lambda node: RemoteWorkplace(node, client, clock),
            health=health,
        ),
    )

    def close() -> None:
        offers.close()
        keeper.close()

    files = WorkplaceHost(host.workplace)
    routes = (
        *attempt_routes.routes(attempts, files),
        *promises.routes(host.promise, lambda: store.home),
        *(asked_nodes.routes(polled.asked) if taking is polled else ()),
    )
    return NodeParts(
        store=store,
        logs=row_logs(settings, url, store, seal.encrypt, seal.decrypt),
        sharing=sharing,
        taking=taking.run,
        extend_work=watched(paths, member, keeper),
        threads=(threads,),
        tidy=offers.sweep,
        close=close,
        parts={NAME: replace(found, routes=(*found.routes, *routes))},
    )


def through_temporal(
    settings: Settings,
    member: Member,
    offers: "PostgresOffers",
    threads: DaemonThreads,
    *,
    slots: Slots,
    may_take: Callable[[], bool],
) -> tuple[Places, Taking]:
    """Both sides of the way to places through the configured Temporal.

    Raises:
        ConfigError: Its client is not installed, or a file of its keys cannot be read.
    """
    given = settings.table(ClusterSettings)
    try:
        from subagents.extensions.cluster.places.temporal_places import (  # noqa: PLC0415 - an extra
            TemporalPlaces,
            TemporalTaking,
            temporal_address,
        )
    except ImportError as error:
        raise ConfigError(
            f"cluster.temporal is set, but {error.name} is not installed",
            hint=f"{extra_command('temporal')}, or remove cluster.temporal",
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
