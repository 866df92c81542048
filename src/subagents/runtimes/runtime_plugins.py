"""Runtimes of other installed packages: entry points of the group ``subagents.runtimes``.

A plugin is a callable that takes a ``RuntimeHost`` and returns a ``ports.Runtime``:

    [project.entry-points."subagents.runtimes"]
    acme = "acme_subagents:runtime"

One that cannot be loaded keeps nothing else from working: it is a ``RefusedPlugin`` that says why.

See docs/howto/own-runtime.md.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Final

from subagents import extension
from subagents.config.entry_points import SHADOWED, entry_points
from subagents.config.settings import RUNTIME_PLUGINS
from subagents.ports import Clock, OffLoop, Runtime
from subagents.runtimes.process.shim import ProcessAttempts

log = logging.getLogger(__name__)

RUNTIME_ON: Final = "subagents.extensions.conversation.conversation:runtime_on"
METHODS: Final = (
    *("check", "check_scope", "marker", "start", "watch", "discard", "stop", "steer"),
    *("interrupt", "resume", "forget"),
)
"""The methods of ``ports.Runtime``; ``name`` and ``abilities`` are looked at by their values."""


@dataclass(frozen=True, slots=True)
class RuntimeHost:
    """What a runtime gets from the daemon."""

    attempts: ProcessAttempts
    """Starts, follows and ends processes behind the shim; its ``root`` has all attempts' files."""
    clock: Clock
    off_loop: OffLoop
    """Carries everything that blocks: ``await off_loop(work)``."""
    bridge: tuple[str, ...]
    """Program and arguments of our MCP server over stdio, for a worker to start."""

    @property
    def root(self) -> Path:
        """Where attempts have their directories."""
        return self.attempts.root

    def conversation(self, dialect: object) -> Runtime:
        """As ``extensions.conversation.conversation.runtime_on``."""
        made: Runtime = extension.loaded(RUNTIME_ON)(self, dialect)
        return made


@dataclass(frozen=True, slots=True)
class RefusedPlugin:
    """A plugin that is not used."""

    name: str
    package: str
    reason: str


def load(host: RuntimeHost) -> tuple[Mapping[str, Runtime], tuple[RefusedPlugin, ...]]:
    """The runtimes of all installed plugins by name, and what is wrong with the others.

    Never raises: whatever a plugin does wrong is its ``RefusedPlugin``. Blocking, it imports them.
    """
    loaded: dict[str, Runtime] = {}
    refused: list[RefusedPlugin] = []
    for name, points in entry_points(RUNTIME_PLUGINS).items():
        reason = _unfit(name, points)
        if reason is None:
            try:
                loaded[name] = _made(name, points[0], host)
                continue
            except (Exception, SystemExit) as error:  # noqa: BLE001 - of somebody else's code
                reason = f"{type(error).__name__}: {error}"
        refused.append(RefusedPlugin(name, _packages(points), reason))
        log.warning(
            "the runtime plugin %s of %s is not used: %s", name, refused[-1].package, reason
        )
    return loaded, tuple(refused)


def _unfit(name: str, points: Iterable[EntryPoint]) -> str | None:
    if name in SHADOWED:
        return "it has the name of a runtime of ours; give it another one"
    given = [point.value for point in points]
    if len(given) > 1:
        return f"two packages bring one of that name ({', '.join(given)}); remove one"
    return None


def _made(name: str, point: EntryPoint, host: RuntimeHost) -> Runtime:
    factory: Callable[[RuntimeHost], Runtime] = point.load()
    if not callable(factory):
        raise TypeError(f"{point.value} is not callable; it must take a RuntimeHost")
    made = factory(host)
    missing = [each for each in METHODS if not callable(getattr(made, each, None))]
    if missing:
        raise TypeError(f"what {point.value} returned has no method {', '.join(missing)}")
    if made.name != name:
        raise ValueError(f"its name is {made.name!r}, but the entry point's is {name!r}")
    _ = made.abilities
    return made


def _packages(points: Iterable[EntryPoint]) -> str:
    names = {point.dist.name for point in points if point.dist is not None}
    return ", ".join(sorted(names)) or "an unknown package"
