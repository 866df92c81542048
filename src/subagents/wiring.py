"""The composition root: only here, in ``stores`` and ``node`` are concrete adapters named."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from subagents import extension, process_tuning
from subagents.api.calls.refusals import FILE_NAME, Refusals
from subagents.api.calls.services import DaemonInfo, Services, wall_ms
from subagents.config.layers import CACHED_MAX, Config, ConfigCache, load
from subagents.config.paths import Paths
from subagents.config.programs.scope_probes import proof_of
from subagents.config.settings import DaemonSettings, Settings
from subagents.config.user_config import UserConfig
from subagents.couriers.steer_courier import SteerCourier
from subagents.domain.run.values import AttemptId
from subagents.engine.engine import Adapters, Engine, SettingsOf
from subagents.engine.kernel import ownership
from subagents.engine.kernel.ledger import CommitListener
from subagents.engine.kernel.system_clock import RandomIds, SystemClock
from subagents.engine.kernel.threads import DaemonThreads, on_own_loop
from subagents.engine.verification.command_sandbox import CommandSandbox
from subagents.engine.verification.verifier import Verifier
from subagents.errors import Fenced
from subagents.followers.follower_host import FollowerHost
from subagents.followers.journal_export import LOOK_S, Export, JournalExport
from subagents.node import NodeHost, NodeParts, node_name, node_of
from subagents.ports import Batch, Exporter, OffLoop, Runtime
from subagents.runtimes import runtime_plugins
from subagents.runtimes.command import CommandRuntime
from subagents.runtimes.process import cgroups
from subagents.runtimes.process.launcher import LAUNCHER
from subagents.runtimes.process.processes import check_sight
from subagents.runtimes.process.shim import ProcessAttempts
from subagents.runtimes.provider_keys import ProviderKeys
from subagents.runtimes.runtime_plugins import RefusedPlugin, RuntimeHost
from subagents.runtimes.scripted import ScriptedRuntime
from subagents.version import __version__, code_stamp
from subagents.worker_environments import WorkerEnvironments

log = logging.getLogger(__name__)

BRIDGE = (sys.executable, "-P", "-m", "subagents", "mcp")
"""Our MCP server for workers; ``-P``: no file in a worker's directory stands in for ours."""

STORE_THREADS = 8
"""One commit at a time, the rest read."""

READING_THREADS = 2
"""Threads that read files of configuration: a project's may take a second of a processor."""


@dataclass(frozen=True, slots=True)
class Node:
    """An engine with its real adapters, and what looks past the engine."""

    engine: Engine
    command: CommandRuntime
    paths: Paths
    threads: tuple[DaemonThreads, ...]
    followers: Mapping[str, Sequence[Exporter]]
    ours: NodeParts
    """What is different where there are other nodes."""
    name: str

    def close(self) -> None:
        """End its threads, once the engine has stopped."""
        for threads in self.threads:
            threads.close()


LoadConfig = Callable[[str | None, Mapping[str, str], Mapping[str, object]], Config]
"""``(directory, SUBAGENTS_… variables of a caller, dotted key → value)``."""


def config_loader(
    paths: Paths,
    environ: Mapping[str, str],
    standing: Mapping[str, object],
) -> LoadConfig:
    """Reads the configuration that is effective where a caller is, or as it read it before.

    Several threads may ask at once.

    Args:
        paths: The state directory.
        environ: Of this process.
        standing: Dotted key → value; hold for every call, stronger than its files.
    """
    cache = ConfigCache(environ, paths)
    place = lru_cache(maxsize=CACHED_MAX)(Path)

    def load_config(
        cwd: str | None, variables: Mapping[str, str], flags: Mapping[str, object]
    ) -> Config:
        where = place(cwd) if cwd is not None else None
        if not variables and not flags and not standing:
            return cache.load(where)
        merged = {**environ, **variables}
        return load(where, merged, paths=paths, overrides={**standing, **flags})

    return load_config


def build_node(
    paths: Paths,
    config: Config,
    settings_now: Callable[[], Settings] | None = None,
    load_config: LoadConfig | None = None,
) -> Node:
    """Put an engine together for one state directory; nothing is opened yet.

    Args:
        paths: The state directory.
        config: Without a project file: what the daemon itself is set to, couriers too.
        settings_now: The same as it is later, for what need not stay; None = it stays.
        load_config: For spawns that no caller makes; None = ``config``, wherever that is.
    """
    clock = SystemClock()
    off_loop = DaemonThreads("store", threads_max=STORE_THREADS)
    reading = DaemonThreads("configuration", threads_max=READING_THREADS)
    renewing = DaemonThreads("ownership", threads_max=ownership.THREADS)
    checks = DaemonThreads("verification")
    processes = DaemonThreads("processes")
    trees = DaemonThreads("worktrees")
    asking = DaemonThreads("secrets")
    settings = config.settings
    kept = settings.retention.result_bytes_max
    command = CommandRuntime(paths.attempts_dir, clock, processes, result_bytes_max=kept)
    attempts = ProcessAttempts(paths.attempts_dir, clock, processes)
    runtimes, _ = runtimes_of(RuntimeHost(attempts, clock, processes, BRIDGE), command)
    ours = node_of(
        NodeHost(
            paths=paths,
            settings=settings,
            runtimes=runtimes,
            processes=processes,
            clock=clock,
            off_loop=off_loop,
            promise=lambda: engine.ownership.promise(),  # noqa: PLW0108 - made below
            workplace=lambda: engine.workplace,
        )
    )
    now = settings_now or (lambda: settings)
    name, providers = node_name(settings), ProviderKeys(runtimes)
    environments = WorkerEnvironments(
        paths=paths,
        settings_now=now,
        brought=ours.logs.environments,
        providers=providers,
        asking=asking,
        environ=os.environ,
    )
    host = FollowerHost(
        store=ours.store,
        paths=paths,
        settings=settings,
        settings_now=now,
        environ=os.environ,
    )
    followers = dict(extension.made("followers", host))
    couriers = [each for _, found in extension.made("couriers", host) for each in found]
    places = extension.made("worktrees", paths.worktrees_dir, trees, os.environ, now)

    async def orphans(known: Callable[[], set[AttemptId]]) -> list[tuple[str, int]]:
        return [(attempt, pid) for attempt, pid in await command.orphans(known)]

    adapters = Adapters(
        taking=ours.taking,
        store=ours.store,
        runtimes=runtimes,
        couriers={
            "direct": couriers,
            "steer": [SteerCourier(lambda run: engine.placement.runtime_of(run, None))],
        },
        clock=clock,
        ids=RandomIds(clock),
        off_loop=off_loop,
        renewing=renewing,
        own_loop=on_own_loop,
        verifier=Verifier(
            checks,
            clock,
            commands_allowed=settings.verification.dangerously_allow_validation_commands,
            sandbox=CommandSandbox(
                (paths.state_dir, paths.runtime_dir), is_on=settings.verification.sandbox
            ),
        ),
        settings=settings,
        logs=replace(
            ours.logs,
            tidy=partial(call_all, (ours.logs.tidy, ours.tidy)),
            close=partial(call_all, (ours.logs.close, ours.close)),
        ),
        state_dir=paths.state_dir,
        owner=f"{name}:{os.getpid()}",
        node=name,
        extend_work=ours.extend_work,
        sharing=ours.sharing,
        contract_env=environments.of_contract,
        worker_secrets=environments.secrets,
        secrets_of=environments.secrets_of,
        worker_env=lambda run: environments.of_worker(run, engine.queries.open_run),
        orphans=orphans,
        worktrees=next((each for _, each in places), None),
        passes_provider=providers.passes,
        provider_of=environments.provider_of,
        settings_of=None if load_config is None else settings_by(load_config, reading),
        proof_of=partial(proof_of, paths=paths, environ=os.environ),
        on_commit=tuple(told_by(by, each) for by, found in followers.items() for each in found),
    )
    engine = Engine(adapters)
    # Only now: which runs are ours the engine says, and it is made with its followers.
    for each in (exporter for found in followers.values() for exporter in found):
        if isinstance(each, JournalExport):
            each.is_ours = engine.partitions.has_run
        if isinstance(each, Export) and engine.partitions.is_shared:
            each.look_s = LOOK_S
    # `services_of` takes the first two.
    threads = (off_loop, reading, renewing, checks, processes, trees, asking, *ours.threads)
    return Node(engine, command, paths, threads, followers, ours, name)


def told_by(name: str, follower: Exporter) -> CommitListener:
    """The listener that notifies a follower; one of others that breaks must break no commit."""
    if name in extension.OWN:
        return follower.on_commit

    def tell(batch: Batch) -> None:
        try:
            follower.on_commit(batch)
        except Exception:
            log.exception("the extension %s broke at a commit", name)

    return tell


def call_all(calls: Iterable[Callable[[], None]]) -> None:
    """One after the other."""
    for each in calls:
        each()


def settings_by(load_config: LoadConfig, off_loop: OffLoop) -> SettingsOf:
    """What an operator's spawn in a directory would go by."""

    async def settings_of(cwd: str) -> Settings:
        return (await off_loop(lambda: load_config(cwd, {}, {}))).settings

    return settings_of


def runtimes_of(
    host: RuntimeHost, command: CommandRuntime
) -> tuple[dict[str, Runtime], tuple[RefusedPlugin, ...]]:
    """Every runtime by its name: ours, and those of installed plugins; and the plugins refused."""
    more, refused = runtime_plugins.load(host)
    runtimes: dict[str, Runtime] = {"command": command, "scripted": ScriptedRuntime(host.clock)}
    for _, found in extension.made("runtimes", host):
        for each in found:
            runtimes.setdefault(each.name, each)  # ours first: their names cannot be taken
    return {**more, **runtimes}, refused


def runtimes_here(paths: Paths) -> tuple[dict[str, Runtime], tuple[RefusedPlugin, ...]]:
    """As ``runtimes_of``, to look at: nothing is started or written."""
    clock, threads = SystemClock(), DaemonThreads("processes")
    command = CommandRuntime(paths.attempts_dir, clock, threads)
    attempts = ProcessAttempts(paths.attempts_dir, clock, threads)
    return runtimes_of(RuntimeHost(attempts, clock, threads, BRIDGE), command)


def services_of(
    node: Node,
    environ: Mapping[str, str],
    overrides: Mapping[str, object] | None = None,
    *,
    user: UserConfig | None = None,
) -> Services:
    """What the daemon's calls use.

    Args:
        node: The engine and its adapters.
        environ: Of this process.
        overrides: Hold for every call, stronger than its files.
        user: What goes on with the last good configuration; None = nothing does.
    """

    return Services(
        engine=node.engine,
        load_config=config_loader(node.paths, environ, overrides or {}),
        user=user,
        paths=node.paths,
        info=DaemonInfo(
            version=__version__,
            pid=os.getpid(),
            started_at_ms=wall_ms(),
            code=code_stamp(),
        ),
        database=node.ours.store,
        off_loop=node.threads[0],
        reading=node.threads[1],
        refusals=Refusals(node.paths.state_dir / FILE_NAME, node.threads[0], node.engine),
        origin_of=node.command.origin_of,
        containment=lambda: cgroups.place().words,
        followers=node.followers,
        parts={**node.ours.parts},
        node=None if node.ours.sharing is None else node.name,
    )


@asynccontextmanager
async def embedded(
    paths: Paths, environ: Mapping[str, str], *, overrides: Mapping[str, object]
) -> AsyncIterator[None]:
    """The daemon inside this process and loop, until the block ends.

    Raises:
        AlreadyRunning: Another daemon owns that home; nothing was touched.
        CorruptState: The database cannot be trusted; nothing was changed.
        ConfigError: The configuration is wrong; nothing was started.
    """
    from subagents.api.server.daemon import serve_until_stopped  # noqa: PLC0415 - the web server

    config = load(None, environ, paths=paths, overrides=overrides)
    paths.ensure()
    node = build_node(paths, config, None, config_loader(paths, environ, overrides))
    daemon = config.settings.daemon
    services = services_of(node, environ, overrides)
    ready = asyncio.Event()
    serving = asyncio.create_task(
        serve_until_stopped(services, paths=paths, ready=ready, settings=daemon)
    )
    starting = asyncio.create_task(ready.wait())
    try:
        await asyncio.wait({serving, starting}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            await serving  # raises why it never became ready
        yield
    finally:
        starting.cancel()
        services.stopping.set()
        await serving
        node.close()


def daemon_settings(overrides: Mapping[str, object]) -> DaemonSettings:
    """The settings with which this user's daemon would be started now.

    Raises:
        ConfigError: The environment or an override is wrong, or the user's file and nothing that
            it said before is kept.
    """
    environ = dict(os.environ)
    paths = Paths.resolve(environ)
    return UserConfig(environ, paths, overrides).at_start.settings.daemon


def serve(overrides: Mapping[str, object] | None = None) -> None:
    """Run the daemon of this user (or of ``SUBAGENTS_HOME``) until it is told to stop.

    Args:
        overrides: Dotted key → value for the daemon's own settings, stronger than its files.

    Raises:
        AlreadyRunning: Another daemon holds the state directory; the message names it.
        CorruptState: The database cannot be trusted; nothing was changed.
        ConfigError: The environment is wrong, or the user's file and nothing that it said before
            is kept.
    """
    from subagents.api.server.daemon import run_daemon  # noqa: PLC0415 - the web server, only here

    environ = dict(os.environ)
    paths = Paths.resolve(environ)
    user = UserConfig(environ, paths, overrides)
    config = user.at_start
    paths.ensure()
    check_sight()
    # Before any thread is started: glibc gives each thread an arena when it first allocates.
    process_tuning.tune()
    cgroups.enter_leaf(str(paths.attempts_dir))
    loader = config_loader(paths, environ, {})
    node = build_node(paths, config, user.now, loader)
    daemon = config.settings.daemon
    services = services_of(node, environ, user=user)
    served = run_daemon(services, paths=paths, log_path=paths.log_file, settings=daemon)
    try:
        is_anew = asyncio.run(served)
    except Fenced:
        if node.ours.sharing is None:
            raise
        is_anew = True  # Others have what it had: this node takes part under a new identity.
    finally:
        node.close()
    if is_anew:
        LAUNCHER.close()  # nobody would wait for it
        # One more that comes before it is listened for waits until then, and ends nothing.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - this program, as it was started
