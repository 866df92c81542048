"""The composition root: only here, in ``stores`` and ``node_parts`` are concrete adapters named."""

import asyncio
import contextlib
import ctypes
import gc
import os
import resource
import sys
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Iterable,
    Mapping,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import msgspec

from subagents.api.a2a.a2a_endpoint import PACKAGE, TASKS
from subagents.api.calls import extras
from subagents.api.calls.cluster_member import ClusterMember
from subagents.api.calls.logins import Logins
from subagents.api.calls.refusals import FILE_NAME, Refusals
from subagents.api.calls.services import DaemonInfo, Services, wall_ms
from subagents.config.layers import CACHED_MAX, Config, ConfigCache, load
from subagents.config.paths import Paths
from subagents.config.programs.program_catalog import login_variables
from subagents.config.programs.scope_probes import proof_of
from subagents.config.settings import (
    DaemonSettings,
    NotificationChannel,
    Settings,
)
from subagents.config.user_config import UserConfig
from subagents.couriers.command_courier import CommandCourier
from subagents.couriers.steer_courier import SteerCourier
from subagents.couriers.webhook_courier import WebhookCourier
from subagents.domain.redaction.own_secrets import own_secrets
from subagents.domain.run.caller_environment import CallerEnvironment, in_place_of, over_daemons
from subagents.domain.run.run import Run
from subagents.domain.run.secret_reference import is_reference
from subagents.domain.run.shell_variables import STARTED_BY
from subagents.domain.run.values import AttemptId, RunId
from subagents.domain.trace.trace_ids import lineage, traceparent
from subagents.engine.attempts.placement import runtime_at
from subagents.engine.engine import Engine
from subagents.engine.kernel import ownership
from subagents.engine.kernel.system_clock import RandomIds, SystemClock
from subagents.engine.kernel.threads import DaemonThreads, on_own_loop
from subagents.engine.parts import Adapters
from subagents.engine.runs.repairs import Repair, apply_repairs
from subagents.engine.schedules.schedules import SettingsOf
from subagents.engine.verification.command_sandbox import CommandSandbox
from subagents.engine.verification.verifier import Verifier
from subagents.errors import ConfigError, Fenced, UsageError
from subagents.node_parts import member_of, node_name, node_parts_of
from subagents.ports import (
    EnvironmentLog,
    Exporter,
    OffLoop,
    Runtime,
    Store,
)
from subagents.run_logs import run_logs_of
from subagents.runtimes import runtime_plugins
from subagents.runtimes.command import CommandRuntime
from subagents.runtimes.conversation.conversation import ConversationRuntime
from subagents.runtimes.conversation.dialect import LOGIN_NOTE
from subagents.runtimes.dialects import dialects
from subagents.runtimes.git.git_worktrees import GitWorktrees
from subagents.runtimes.process import cgroups
from subagents.runtimes.process.environment import is_on_path
from subagents.runtimes.process.launcher import SETTINGS_VARIABLE
from subagents.runtimes.process.processes import check_sight
from subagents.runtimes.process.secret_values import SecretValues, ask
from subagents.runtimes.process.shim import ProcessAttempts
from subagents.runtimes.provider_keys import passes, provider_of
from subagents.runtimes.runtime_plugins import RefusedPlugin, RuntimeHost
from subagents.runtimes.scripted import ScriptedRuntime
from subagents.store.run_remains import records_in, remains_of, runs_with_files
from subagents.store.sqlite.salvage import salvage
from subagents.store.sqlite.sqlite_store import SqliteStore
from subagents.store.track_record_files import PerformanceFiles
from subagents.stores import permits_of, shared_store, store_of
from subagents.telemetry.chat_threads import ChatThreads, OwnApi
from subagents.telemetry.journal_export import JournalExport
from subagents.telemetry.matrix_room import MatrixRoom
from subagents.telemetry.notification_channels import channel
from subagents.telemetry.notifier import Channel, Notifier
from subagents.telemetry.run_pushes import RunPushes
from subagents.telemetry.span_export import CURSOR_FILE, NoExport, SpanExport
from subagents.version import __version__

BRIDGE = (sys.executable, "-P", "-m", "subagents", "mcp")
"""Our MCP server for workers; ``-P``: no file in a worker's directory stands in for ours."""

STORE_THREADS = 8
"""One commit at a time, the rest read."""

READING_THREADS = 2
"""For files of configuration: a project's may take a second of a processor to read."""

DESCRIPTORS = 16_384
"""Many systems give 1,024, and a thousand callers that wait have a connection each."""


SWITCH_S = 0.0005
"""So long a thread may keep the interpreter while the loop waits for it; Python's own is 5 ms.

Measured here, status calls while a worker's million lines are recorded on other threads: median
1.3 ms instead of 4.2, 90 of 100 under 6 ms instead of 11, and the recording takes as long.
"""

COLLECT_AFTER = 20_000
"""Tracked objects made before the youngest are looked through; Python's own number is 700."""

ARENAS = 2
"""Six runs a second for two minutes: 61 → 64 MiB; with the 16 that glibc gives, 68 → 77."""

_M_ARENA_MAX = -8
_STARTED_S = time.time()


@dataclass(frozen=True, slots=True)
class Node:
    """An engine with its real adapters, and what looks past the engine."""

    engine: Engine
    store: Store
    command: CommandRuntime
    paths: Paths
    threads: tuple[DaemonThreads, ...]
    exporter: Exporter
    notifiers: tuple[Exporter, ...]
    pushes: RunPushes | None
    cluster: ClusterMember | None

    async def stop(self) -> None:
        """Stop the engine; workers continue."""
        await self.engine.stop()
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
        load_config: For what schedules start; None = ``config``, wherever that is.
    """
    clock = SystemClock()
    off_loop = DaemonThreads("store", threads_max=STORE_THREADS)
    reading = DaemonThreads("configuration", threads_max=READING_THREADS)
    renewing = DaemonThreads("ownership", threads_max=ownership.THREADS)
    checks = DaemonThreads("verification")
    processes = DaemonThreads("processes")
    trees = DaemonThreads("worktrees")
    member = member_of(config.settings)
    store = store_of(paths, config.settings.daemon, member)
    kept = config.settings.retention.result_bytes_max
    command = CommandRuntime(paths.attempts_dir, clock, processes, result_bytes_max=kept)
    attempts = ProcessAttempts(paths.attempts_dir, clock, processes)
    host = RuntimeHost(attempts, clock, processes, BRIDGE)
    runtimes, _ = runtimes_of(host, command)
    settings = config.settings
    node = node_name(settings)
    commands_allowed = settings.verification.dangerously_allow_validation_commands

    async def orphans(known: Callable[[], set[AttemptId]]) -> list[tuple[str, int]]:
        return [(attempt, pid) for attempt, pid in await command.orphans(known)]

    shared = None if member is None else shared_store(store)
    logs = run_logs_of(paths, settings, shared)
    environments = logs.environments
    asking = DaemonThreads("secrets")
    secrets = SecretValues(
        lambda: (settings if settings_now is None else settings_now()).secrets,
        lambda run: {**configured_env(run), **given_to(run, environments)},
        os.environ,
        asking,
    )
    exporter = exporter_of(store, paths, settings, settings_now or (lambda: settings))
    pushes = pushes_of(store, paths, settings)
    notifiers = (
        *notifiers_of(store, paths, settings),
        *threads_of(store, paths, settings),
        *(() if pushes is None else (pushes,)),
    )
    ours = node_parts_of(
        paths,
        settings,
        member,
        runtimes,
        processes,
        survey=lambda: engine.partitions.survey,
        identity=lambda: shared_store(store).identity,
        promise=lambda: engine.promise(),  # noqa: PLW0108 - made below
        workplace=lambda: engine.workplace,
    )
    adapters = Adapters(
        peers_promise=ours.peers_promise,
        places=ours.places,
        taking=ours.taking,
        store=store,
        runtimes=runtimes,
        couriers={
            "direct": [
                CommandCourier(settings_now or (lambda: settings), os.environ),
                WebhookCourier(settings_now or (lambda: settings), os.environ),
            ],
            "steer": [SteerCourier(lambda run: runtime_at(runtimes, ours.places, run, None))],
        },
        clock=clock,
        ids=RandomIds(clock),
        off_loop=off_loop,
        renewing=renewing,
        own_loop=on_own_loop,
        verifier=Verifier(
            checks,
            clock,
            commands_allowed=commands_allowed,
            sandbox=CommandSandbox(
                (paths.state_dir, paths.runtime_dir), is_on=settings.verification.sandbox
            ),
        ),
        settings=settings,
        progress_log=logs.progress,
        transcripts=logs.transcripts,
        performance=PerformanceFiles(paths.state_dir),
        results=logs.results,
        tidy_logs=partial(call_all, (logs.tidy, ours.tidy)),
        close_logs=partial(call_all, (logs.close, ours.close)),
        artifact_copies=logs.artifact_copies,
        owner=f"{node}:{os.getpid()}",
        node=node,
        extend_work=ours.extend_work,
        cluster=shared,
        permits=None if shared is None else permits_of(config.settings.daemon, shared),
        contract_env=lambda run: secrets.filled(run, shell_and_given(run, environments)),
        environments=environments,
        worker_secrets=secrets,
        secrets_of=lambda run: own_secrets(
            run.resolved.options,
            os.environ,
            passes=passes_of(runtimes.get(run.resolved.runtime)),
            given={**asked_with(run, environments), **given_to(run, environments)},
            values=secrets.known(run),
        ),
        worker_env=lambda run: {
            **worker_env(run, paths, os.environ, brought_for(run, environments), secrets),
            **trace_env(run, engine.queries.open_run, settings),
        },
        orphans=orphans,
        worktrees=GitWorktrees(paths.worktrees_dir, trees, os.environ),
        passes_provider=passes,
        provider_of=lambda run: provider_of(run, provider_environ(run, environments)),
        settings_of=None if load_config is None else settings_by(load_config, reading),
        proof_of=partial(proof_of, paths=paths, environ=os.environ),
        on_commit=(exporter.on_commit, *(each.on_commit for each in notifiers)),
    )
    engine = Engine(adapters)
    for each in (exporter, *notifiers):
        if isinstance(each, JournalExport):
            each.is_ours = engine.partitions.has_run
    threads = (off_loop, reading, renewing, checks, processes, trees, asking, *ours.threads)
    return Node(engine, store, command, paths, threads, exporter, notifiers, pushes, ours.member)


def call_all(calls: Iterable[Callable[[], None]]) -> None:
    """One after the other."""
    for each in calls:
        each()


def settings_by(load_config: LoadConfig, off_loop: OffLoop) -> SettingsOf:
    """What an operator's spawn in a directory would go by."""

    async def settings_of(cwd: str) -> Settings:
        return (await off_loop(lambda: load_config(cwd, {}, {}))).settings

    return settings_of


def passes_of(runtime: Runtime | None) -> tuple[str, ...]:
    """Which of our variables the runtime's workers get without being named in the agent."""
    return runtime.passes if isinstance(runtime, ConversationRuntime) else ()


def runtimes_of(
    host: RuntimeHost, command: CommandRuntime
) -> tuple[dict[str, Runtime], tuple[RefusedPlugin, ...]]:
    """Every runtime by its name: ours, and those of installed plugins; and the plugins refused."""
    more, refused = runtime_plugins.load(host)
    runtimes: dict[str, Runtime] = {
        **more,
        "command": command,
        "scripted": ScriptedRuntime(host.clock),
        **{dialect.name: host.conversation(dialect) for dialect in dialects()},
    }
    return runtimes, refused


def runtimes_here(paths: Paths) -> tuple[dict[str, Runtime], tuple[RefusedPlugin, ...]]:
    """As ``runtimes_of``, to look at: nothing is started or written."""
    clock, threads = SystemClock(), DaemonThreads("processes")
    command = CommandRuntime(paths.attempts_dir, clock, threads)
    attempts = ProcessAttempts(paths.attempts_dir, clock, threads)
    return runtimes_of(RuntimeHost(attempts, clock, threads, BRIDGE), command)


def exporter_of(
    store: Store, paths: Paths, settings: Settings, settings_now: Callable[[], Settings]
) -> Exporter:
    """What sends spans to the configured receiver, or nothing to nobody.

    Raises:
        ConfigError: There is a receiver, but not what is needed to send to it.
    """
    file = paths.state_dir / CURSOR_FILE
    telemetry = settings.telemetry
    if telemetry.otlp_endpoint is None:
        return NoExport(file)
    try:
        from subagents.telemetry.otlp import OtlpSender  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError(
            f"telemetry.otlp_endpoint is set, but {error.name} is not installed",
            hint="install subagents[otel], or remove telemetry.otlp_endpoint",
            details={"keys": ["telemetry.otlp_endpoint"]},
        ) from error

    def describe(agent_id: str) -> str | None:
        agent = settings_now().agents.get(agent_id)
        return None if agent is None else agent.description

    sender = OtlpSender(
        telemetry.otlp_endpoint,
        headers=telemetry.headers,
        service_name=telemetry.service_name,
        version=__version__,
    )
    return SpanExport(
        store=store, sender=sender, file=file, describe=describe, content=telemetry.content
    )


def notifiers_of(store: Store, paths: Paths, settings: Settings) -> tuple[Exporter, ...]:
    """What tells a person of runs, by each configured channel."""
    return tuple(
        Notifier(
            name=name,
            channel=channel_of(each, settings, os.environ),
            reasons=each.reasons,
            store=store,
            file=paths.state_dir / f"notification-cursor-{name}.json",
        )
        for name, each in settings.notifications.items()
    )


def channel_of(
    configured: NotificationChannel, settings: Settings, environ: Mapping[str, str]
) -> Channel:
    """Where a configured channel leads; nothing is sent."""
    return channel(
        configured.url, environ, lambda name: ask(name, settings.secrets.get(name), environ)
    )


def threads_of(store: Store, paths: Paths, settings: Settings) -> tuple[Exporter, ...]:
    """What writes sessions into threads of the configured room, and takes the replies.

    Raises:
        ConfigError: Some of what it needs is not configured.
    """
    room = room_of(settings, os.environ)
    if room is None:
        return ()
    found = ChatThreads(
        room=room,
        users=settings.threads.users,
        inward=OwnApi(paths.socket),
        store=store,
        file=paths.state_dir / "chat-threads.json",
    )
    return (found,)


def pushes_of(store: Store, paths: Paths, settings: Settings) -> RunPushes | None:
    """What pushes the states of A2A tasks; None = the user named no address that may be told."""
    if not settings.a2a.push_urls:
        return None

    def state_of(run: Run) -> tuple[str, bytes]:
        # With the SDK, which is an extra: only clients of it have something pushed.
        found: tuple[str, bytes] = extras.loaded(TASKS, extra=PACKAGE).pushed(run)
        return found

    return RunPushes(
        urls=settings.a2a.push_urls,
        store=store,
        file=paths.state_dir / "a2a-pushes.json",
        state_of=state_of,
    )


def room_of(settings: Settings, environ: Mapping[str, str]) -> MatrixRoom | None:
    """The configured room; nothing is sent. None = there is none.

    Raises:
        ConfigError: Some of what it needs is not configured.
    """
    given = settings.threads
    missing = [f"threads.{name}" for name in given.__struct_fields__ if not getattr(given, name)]
    if len(missing) == len(given.__struct_fields__):
        return None
    if given.homeserver is None or given.room is None or given.token is None or missing:
        raise ConfigError(
            f"[threads] needs {', '.join(missing)}, too",
            hint="add them, or remove [threads]; to try it: subagents threads test",
            details={"keys": missing},
        )
    return MatrixRoom(
        given.homeserver,
        given.room,
        given.token,
        lambda name: ask(name, settings.secrets.get(name), environ),
    )


def trace_env(
    run: Run, run_of: Callable[[RunId], Run | None], settings: Settings
) -> dict[str, str]:
    """What makes a worker's own telemetry part of our trace; nothing when we send none ourselves:
    its spans would lie in one that never comes.
    """
    if settings.telemetry.otlp_endpoint is None:
        return {}
    root = lineage(run, run_of).root
    return {"TRACEPARENT": traceparent(root, run.id, len(run.attempts))}


def brought_for(run: Run, environments: EnvironmentLog) -> CallerEnvironment:
    """The variables that the run's caller brought.

    Raises:
        UsageError: They are gone; without them the run would be another one.
    """
    if run.resolved.caller_env is None:
        return CallerEnvironment()
    try:
        return environments.read(run.id)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"the variables that its caller gave cannot be read: {error}") from error


def provider_environ(run: Run, environments: EnvironmentLog) -> Mapping[str, str]:
    """The daemon's variables, with those in their place by which this run's worker asks."""
    try:
        brought = brought_for(run, environments)
    except UsageError:
        return os.environ
    if not brought.provider:
        return os.environ
    changed = in_place_of(brought, os.environ, configured_env(run), partial(passes, run.resolved))
    kept = {name: value for name, value in os.environ.items() if name not in changed}
    return kept | {name: value for name, value in changed.items() if value is not None}


def asked_with(run: Run, environments: EnvironmentLog) -> Mapping[str, str]:
    """The variables by which its caller lets the run's worker ask its provider, as ``given_to``."""
    try:
        return brought_for(run, environments).provider
    except UsageError:
        return {}


def given_to(run: Run, environments: EnvironmentLog) -> Mapping[str, str]:
    """The variables that its caller set for the run; none where they cannot be read: then no
    worker can be given them either.
    """
    try:
        return brought_for(run, environments).given
    except UsageError:
        return {}


def shell_and_given(run: Run, environments: EnvironmentLog) -> Mapping[str, str]:
    """All that its caller brought, for what is the caller's own."""
    brought = brought_for(run, environments)
    return {**brought.shell, **brought.given}


def configured_env(run: Run) -> dict[str, str]:
    """``env`` of the run's agent, as it was at the spawn."""
    configured = run.resolved.options.get("env")
    return dict(configured) if isinstance(configured, dict) else {}


def worker_env(
    run: Run,
    paths: Paths,
    environ: Mapping[str, str],
    brought: CallerEnvironment,
    secrets: SecretValues,
) -> dict[str, str | None]:
    """What a worker gets from its caller, its secrets, and what lets it talk back: the socket, and
    a PATH on which our command is found; None = not set, whatever the daemon has.
    """
    configured = configured_env(run)
    asked_for = {name: value for name, value in configured.items() if is_reference(value)}
    env = {
        **over_daemons(brought, environ, configured),
        **in_place_of(brought, environ, configured, partial(passes, run.resolved)),
        **secrets.filled(run, {**asked_for, **brought.given}),
    }
    if "PATH" not in configured and "PATH" not in brought.given:
        path = env.get("PATH") or environ.get("PATH", os.defpath)
        own = os.path.dirname(sys.executable)  # noqa: PTH120  # hot: once per start
        if not is_on_path("subagents", path) and os.access(f"{own}/subagents", os.X_OK):
            env["PATH"] = f"{path}{os.pathsep}{own}"
    note = login_note(run, {**environ, **configured, **brought.given, **env})
    if note:
        env[LOGIN_NOTE] = note
    if brought.process is not None:
        env[SETTINGS_VARIABLE] = brought.process.line
    return {**env, "SUBAGENTS_SOCKET": str(paths.socket)}


def login_note(run: Run, environ: Mapping[str, object]) -> str:
    """Why nobody may be logged in to the run's program: no variable of its environment says so.

    Its program may find a login of its own; this is for the error where it does not.
    """
    names = login_variables(run.resolved.runtime, run.resolved.options)
    if not names or any(environ.get(name) for name in names):
        return ""
    by = f" by {starter}" if (starter := os.environ.get(STARTED_BY)) else ""
    at = time.strftime("%H:%M", time.localtime(_STARTED_S))
    return (
        f"this daemon was started{by} at {at} without {names[0]}, and whoever asked for this run "
        "brought none: ask for it from a shell that has it, or restart the daemon there "
        "(subagents down --yes && subagents up)"
    )


def rebuild_database(paths: Paths, new: Path, *, is_cut: bool = False) -> list[Repair]:
    """Write a new database with what can be read of this home's, and of its runs' files.

    Args:
        paths: Nobody uses its database meanwhile (``StoreFile.locked``).
        new: A file that is not there yet, in a directory of its own.
        is_cut: What was committed last is missing from its log.

    Returns:
        The runs whose record is not what was committed, with what was done about each.

    Raises:
        OSError: The disk is full, or a file cannot be read.
        sqlite3.Error, SubagentsError: The new database cannot be written.
    """
    found = salvage(paths.database, new, runs_with_files(paths.belongings), is_cut=is_cut)
    records = records_in(paths.state_dir)
    repairs = []
    for each in found:
        remains = remains_of(
            each.run_id,
            attempts=paths.attempts_dir,
            transcripts=paths.transcripts_dir,
            record=records.get(each.run_id),
        )
        text = f"{each.found}{remains.words() if each.is_lost else ''}"
        if each.told is not None:
            text += f"; the announcement of its end is:\n{each.told}"
        made_up = None
        if not each.is_known:
            made_up = remains.spawned(each.run_id, requester=each.requester, now_ms=wall_ms())
        repairs.append(Repair(each.run_id, text, made_up, each.is_lost, each.is_told))
    threads = DaemonThreads("store")
    try:
        store = SqliteStore(new)
        clock = SystemClock()
        asyncio.run(apply_repairs(store, threads, clock, RandomIds(clock), repairs))
    finally:
        threads.close()
    return repairs


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
        queries=node.engine.queries,
        load_config=config_loader(node.paths, environ, overrides or {}),
        user=user,
        paths=node.paths,
        info=DaemonInfo(
            version=__version__,
            pid=os.getpid(),
            started_at_ms=wall_ms(),
        ),
        database=node.store,
        orphans=node.engine.orphans,
        off_loop=node.threads[0],
        reading=node.threads[1],
        refusals=Refusals(node.paths.state_dir / FILE_NAME, node.threads[0], node.engine),
        logins=Logins(node.paths, node.threads[0], wall_ms),
        origin_of=node.command.origin_of,
        containment=lambda: cgroups.place().words,
        exporter=node.exporter,
        notifiers=node.notifiers,
        pushes=node.pushes,
        cluster=node.cluster,
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
            await serving
        yield
    finally:
        starting.cancel()
        services.stopping.set()
        await serving
        for threads in node.threads:
            threads.close()


def daemon_settings(overrides: Mapping[str, object]) -> DaemonSettings:
    """How this user's daemon would be started now.

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
    raise_descriptor_limit()
    cgroups.enter_leaf(str(paths.attempts_dir))
    calm_collector()
    bound_arenas()
    sys.setswitchinterval(SWITCH_S)
    loader = config_loader(paths, environ, {})
    node = build_node(paths, config, user.now, loader)
    daemon = config.settings.daemon
    services = services_of(node, environ, user=user)
    try:
        asyncio.run(run_daemon(services, paths=paths, log_path=paths.log_file, settings=daemon))
    except Fenced:
        if member_of(config.settings) is None:
            raise
        # Others have what it had. A node that starts anew takes part again, under a new identity.
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - this program, as it was started
    finally:
        for threads in node.threads:
            threads.close()


def calm_collector() -> None:
    """Leave what the imports made out of every collection, and collect less often.

    A full collection in the middle of a burst is a pause for every caller; run values hold no
    cycles and are not tracked at all (``domain.run.values``).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 20, 50)


def bound_arenas() -> None:
    """Let all threads share ``ARENAS`` pools of memory, where the C library is glibc.

    It gives threads up to eight pools per core, each of which keeps the most that it ever held.
    Call it before the first thread starts. See mallopt(3).
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, ARENAS)


def raise_descriptor_limit() -> None:
    """Let this process and its workers have ``DESCRIPTORS`` open files, or what the system allows.

    A limit that is higher already stays.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
