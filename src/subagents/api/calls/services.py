"""What the daemon's calls use; put together in ``wiring``."""

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypedDict

from starlette.requests import Request

from subagents.api.calls.refusals import Refusals
from subagents.config.layers import Config
from subagents.config.paths import Paths
from subagents.config.user_config import UserConfig
from subagents.domain.rules.parameter_checks import check_task
from subagents.domain.run.access import Ceiling
from subagents.domain.run.run import Run
from subagents.domain.run.usage import Amounts
from subagents.domain.run.values import SessionKey
from subagents.engine.engine import Engine
from subagents.engine.records.counters import Histogram
from subagents.engine.runs.sessions import Sent
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.engine.runs.surroundings import Surroundings
from subagents.errors import ConfigError, Unavailable
from subagents.ports import Audience, Database, Exporter, ExportState, OffLoop, Origin
from subagents.text import iso

LAGS_S: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)


class AsOf(TypedDict):
    """The fields of ``wire.listing.Listing`` that are known before the list is."""

    seq: int
    now_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonInfo:
    """What never changes while this process lives."""

    version: str
    pid: int
    started_at_ms: int
    code: str = ""
    """Its ``code_stamp`` when it started."""


async def _no_port() -> str:
    raise Unavailable("this daemon opens no TCP port")


@dataclass(slots=True)
class TcpPort:
    """The daemon's TCP port; whoever serves it fills this."""

    url: str | None = None
    """Where it answers now; None = nowhere."""
    open: Callable[[], Awaitable[str]] = _no_port
    """Answer there, or go on to; returns the address. Raises ``Unavailable`` when none can be had.
    """


def _no_origin(_pid: int) -> Origin | None:
    return None


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything the daemon's calls use."""

    engine: Engine
    load_config: Callable[[str | None, Mapping[str, str], Mapping[str, object]], Config]
    """``(cwd, SUBAGENTS_… variables of the caller, dotted key → value)``; blocking, and what a
    project's file says decides for how long: ``config_in`` asks it."""
    paths: Paths
    info: DaemonInfo
    database: Database
    """Where everything is kept; blocking, asked through ``off_loop``."""
    off_loop: OffLoop
    reading: OffLoop
    """Runs what reads configuration, which may be anybody's file: nothing else waits behind it."""
    refusals: Refusals
    tcp: TcpPort = field(default_factory=TcpPort)
    node: str | None = None
    """This daemon's name among others; None = it is alone."""
    origin_of: Callable[[int], Origin | None] = _no_origin
    """The attempt of this home that the process of that id belongs to; microseconds."""
    containment: Callable[[], str] = str
    """How workers' processes are kept together, in words; blocking."""
    user: UserConfig | None = None
    """The user's configuration, which outlives its errors; None = it cannot change."""
    followers: Mapping[str, Sequence[Exporter]] = field(default_factory=dict)
    """What reports runs to the outside, by the extension that it is of."""
    parts: dict[str, object] = field(default_factory=dict)
    """What extensions have while the daemon lives, under their names."""
    loop_lag_s: Histogram = field(default_factory=lambda: Histogram(LAGS_S))
    """How late the loop came back to what was due; for ``/metrics``, as the next one."""
    failures: Counter[str] = field(default_factory=Counter)
    """Calls that ended in an error, by its code."""
    now_ms: Callable[[], int] = wall_ms
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by a signal or ``POST /v1/shutdown``; long polls end, then the daemon."""

    @property
    def refusing(self) -> str | None:
        """Why no new runs are accepted; None = they are."""
        # A broken store is worse than a broken configuration, and named first.
        problem = None if self.user is None else self.user.problem
        if self.engine.degraded is not None or problem is None:
            return self.engine.degraded
        return f"the configuration is wrong, what it said before holds: {problem.message}"

    def config_known(self) -> Config:
        """The user's configuration for what starts no run: also while it is wrong, as it was.

        Raises:
            ConfigError: It is wrong, and what it was is not known.
        """
        return self.load_config(None, {}, {}) if self.user is None else self.user.known()

    async def config_in(
        self,
        cwd: str | None,
        variables: Mapping[str, str] | None = None,
        overrides: Mapping[str, object] | None = None,
        *,
        is_operator: bool,
    ) -> Config:
        """The configuration in effect for a caller there; no file is read on the loop.

        Args:
            cwd: The caller's directory; None = the user's own file alone.
            variables: ``SUBAGENTS_…`` variables of the caller.
            overrides: Dotted key → value.
            is_operator: False = a project's file can only narrow.

        Raises:
            ConfigError: It is wrong.
        """
        if self.user is not None:
            # Keeps what is good now, for when the file becomes wrong later.
            self.user.known()
        load, given, flags = self.load_config, variables or {}, overrides or {}

        def read() -> Config:
            config = load(cwd, given, flags)
            return config if is_operator else config.for_agents()

        return await self.reading(read)

    def as_of(self) -> AsOf:
        """The moment of a list; asked for before its rows are read.

        So no row is older than ``seq``, and the events behind that number bring all that it lacks.
        """
        return AsOf(seq=self.engine.queries.seq, now_at=iso(self.now_ms()))

    def told(self, audience: Audience) -> list[ExportState]:
        """The state of each receiver of that kind; without those that are sent nothing."""
        followers = (each for found in self.followers.values() for each in found)
        states = (each.state for each in followers if each.audience is audience)
        return [state for state in states if state is not None]

    def around(self) -> Surroundings:
        """What rows need in addition to their runs, for one answer."""
        return self.engine.surroundings()

    async def send(
        self,
        run: Run,
        message: str,
        *,
        by: SessionKey,
        mode: str,
        key: str | None,
        is_operator: bool,
        ceiling: Ceiling | None = None,
        added: Amounts | None = None,
    ) -> Sent:
        """Send to the session of a run under the configuration effective where it works.

        An agent gains nothing from a project's file there, and ``allow_agents`` holds for it.

        Raises:
            UsageError: The message is empty or too long. Also what ``Sessions.send`` raises.
        """
        check_task(message, field="message")
        try:
            config = await self.config_in(run.resolved.project, is_operator=is_operator)
        except ConfigError:
            if run.is_settled:
                raise  # continuing it would be a new run, which needs a configuration that is right
            config = self.config_known()
            config = config if is_operator else config.for_agents()
        with config.explaining():
            sent = await self.engine.sessions.send(
                run.id,
                message,
                SpawnContext(
                    session=by, settings=config.settings, is_operator=is_operator, ceiling=ceiling
                ),
                mode=mode,
                key=key,
                added=added,
            )
        return sent._replace(warnings=(*sent.warnings, *config.ignored)) if sent.is_new else sent

    def free_bytes(self) -> int:
        """Room on the disk that holds the state. Blocking."""
        return shutil.disk_usage(self.paths.state_dir).free


def services_of(request: Request) -> Services:
    found: Services = request.app.state.services
    return found
