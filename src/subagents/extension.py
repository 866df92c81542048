"""What an extension adds to the core, and which extensions there are.

An extension is one subject that a user can do without. The core knows none of them: it asks here,
by the name of a hook, for what there is. Ours are ``OWN``, packages of ``subagents.extensions``;
those of other distributions are entry points of the group ``subagents.extensions``:

    [project.entry-points."subagents.extensions"]
    acme = "acme_subagents:extension"

Each is an ``Extension``: names of modules and functions, which are imported when they are needed,
so that a command that needs none of it starts as quickly as without. One that cannot be loaded
keeps nothing else from working: it is a ``Refused`` that says why. See docs/howto/own-extension.md.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any, Final, NamedTuple

GROUP: Final = "subagents.extensions"
OWN: Final = (
    *(
        "track_record",
        "plans",
        "schedules",
        "worktrees",
        "mcp",
        "mcp_tasks",
        "acp",
        "claude",
        "codex",
        "llm",
    ),
    *("cluster", "web", "supervisor", "a2a", "ag_ui"),
    *("notifications", "telemetry"),
    "detectors",
    *("demo", "doctor", "repair", "service", "secrets", "install"),
)
"""The extensions of this distribution, in the order in which they are asked; each is a package
below ``subagents.extensions``."""
NOTHING: Final = MappingProxyType(dict[Any, Any]())

MANY: Final = {
    *("runtimes", "couriers", "followers", "detectors"),
    *("listeners", "endpoints", "middleware", "checks"),
}
"""Hooks that return several things."""


class Command(NamedTuple):
    """One command; its function is imported when it is called."""

    name: str
    function: str
    """``module:function``."""
    summary: str
    spawns: bool = False
    """Its words may be a command with flags of its own: ``--jq`` and ``--format`` are not ours."""
    reads_itself: bool = False
    """Its function is called with all words behind its name; only ``--help`` is ours."""
    is_everyday: bool = False
    """The overview shows it; of a group, one line for all. The others: ``subagents help all``."""


def everyday(name: str, function: str, summary: str, *, spawns: bool = False) -> Command:
    """A command that one needs in the first week."""
    return Command(name, function, summary, spawns, is_everyday=True)


class SettingsTable(NamedTuple):
    """A table of `subagents.toml`; what it may hold is imported when a file is read."""

    name: str
    settings: str
    """``module:Section``, a subclass of ``config.settings.Section`` whose ``TABLE`` is the name."""
    is_named: bool = False
    """Any number of ``[name.<id>]``, each such a section."""


class Extension(NamedTuple):
    """What one adds; a hook is ``module:function``, or empty where it adds nothing there."""

    name: str
    """One word, as its package or entry point is called."""
    commands: Mapping[str, tuple[Command, ...]] = NOTHING
    """Rows of the command table, by the heading that they stand under."""
    parents: Mapping[str, str] = NOTHING
    """First words of commands, and what each is about."""
    renamed: Mapping[str, str] = NOTHING
    """Other names of its commands, such as earlier ones: ``{"plan check": "plan run --dry-run"}``.
    With a colon at its end it goes before what is named: ``{"plan wait": "wait plan:"}``.
    """
    retired: Mapping[str, str] = NOTHING
    """Commands and flags that are looked for and are none, and what to do instead."""
    selectors: Mapping[str, str] = NOTHING
    """What a command of the core is where its one word names something of the extension's:
    ``{"wait plan:": "module:function"}``. It takes what is behind the colon, and the same flags.
    """
    topics: Mapping[str, str] = NOTHING
    """``() → str``: texts of ``subagents help``, by their topic."""
    plan_files: str = ""
    """``(Path) → Mapping``: the body of ``POST /v1/plans`` that a file stands for."""
    settings: tuple[SettingsTable, ...] = ()
    """Its tables of ``subagents.toml``, which only the user's own file and environment set: where
    reports about runs are sent, for example, is the user's decision, and no project's.
    """
    routes: tuple[str, ...] = ()
    """Modules with ``ROUTES``. Those that have ``OPERATIONS``, too, are in the OpenAPI document;
    the others speak protocols that something else describes.
    """
    parts: str = ""
    """``(Engine) → Part``: what is done beside the engine's own parts (``engine.engine.Part``)."""
    endpoints: str = ""
    """``(Services) → Sequence[Endpoint]``: paths that speak protocols of their own."""
    mcp: str = ""
    """``(Services, Mapping[str, Method]) → Mapping[str, Method]``: methods of ``/mcp``, new ones or
    in place of those given, which are ours with what extensions before this one made of them.
    """
    middleware: str = ""
    """``(Services, Unserved) → Sequence[Middleware]``: what stands around every call."""
    listeners: str = ""
    """``(Services, Paths, DaemonSettings) → Sequence[Listener]``: where else the daemon answers."""
    runtimes: str = ""
    """``(RuntimeHost) → Sequence[Runtime]``: who does the work, of the runtimes that the
    configuration knows. Another distribution's is an entry point of the group
    ``subagents.runtimes``.
    """
    worktrees: str = ""
    """``(Path, OffLoop, Mapping[str, str], () → Settings) → Worktrees``: where runs with
    ``isolation: worktree`` work, below that directory, by threads and an environment of their own.
    The first one counts.
    """
    couriers: str = ""
    """``(FollowerHost) → Sequence[Courier]``: who brings a result to a requester."""
    followers: str = ""
    """``(FollowerHost) → Sequence[Exporter]``: who hears of every commit."""
    detectors: str = ""
    """``(ToolUse) → Sequence[Finding]``: builds and commits in what a worker's tool printed. Pure;
    asked of each tool that ended.
    """
    worker_env: str = ""
    """``(Run, run_of, Settings) → Mapping[str, str]``: variables for a worker; in place of
    an ``OwnReference`` it gets the secret."""
    storage: str = ""
    """``(Paths, DaemonSettings) → Store | None``: where ``daemon.store`` leads."""
    node: str = ""
    """``(NodeHost) → NodeParts | None``: what is different where a daemon is not alone."""
    checks: str = ""
    """``(Paths, diagnostics | None) → Iterable[Check]``: what ``doctor`` looks at. The diagnostics
    are the daemon's, where one answers."""
    diagnostics: str = ""
    """``(Services) → object``, or a coroutine: a field of ``GET /v1/diagnostics``, by our name."""


class Refused(NamedTuple):
    """An extension of another distribution that is not used."""

    name: str
    reason: str


class Found(NamedTuple):
    """All extensions of this installation."""

    used: tuple[Extension, ...]
    refused: tuple[Refused, ...]


@cache
def found() -> Found:
    """Ours in their order, then those of others by name; read once in a process. Never raises."""
    used, refused = [*_own()], []
    for point in _entry_points():
        try:
            extension = point.load()
            if not isinstance(extension, Extension):
                raise TypeError(f"{point.value} is no subagents.extension.Extension")  # noqa: TRY301
            if extension.name != point.name:
                raise ValueError(f"its name is {extension.name!r}, not the entry point's")  # noqa: TRY301
            if extension.name in {each.name for each in used}:
                raise ValueError("another extension has its name")  # noqa: TRY301
            used.append(extension)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - of somebody else's code
            refused.append(Refused(point.name, f"{type(error).__name__}: {error}"))
    return Found(tuple(used), tuple(refused))


@cache
def settings_tables() -> Mapping[str, tuple[SettingsTable, Any]]:
    """The tables that extensions add to ``subagents.toml``, with the ``Section`` of each, by name.

    None = another distribution's cannot be loaded: whatever is written there has no effect, and
    ``problems`` says why. Of two with a name the first counts.
    """
    tables: dict[str, tuple[SettingsTable, Any]] = {}
    for extension in found().used:
        for table in extension.settings:
            kind = None
            try:
                kind = loaded(table.settings)
            except Exception:
                if extension.name in OWN:
                    raise
            tables.setdefault(table.name, (table, kind))
    return tables


def made(hook: str, *given: object) -> Iterator[tuple[str, Any]]:
    """``(extension's name, what its hook returned)``, for those that have it.

    What one of others raises keeps it out, and is logged; what one of ours raises is raised.
    """
    for extension in found().used:
        if not (target := getattr(extension, hook)):
            continue
        try:
            result = loaded(target)(*given)
            yield extension.name, [*result] if hook in MANY else result
        except Exception:
            if extension.name in OWN:
                raise
            log().exception("the extension %s adds nothing: its %s broke", extension.name, hook)


def route_modules() -> Iterator[ModuleType]:
    """The modules of all ``Extension.routes``."""
    for extension in found().used:
        for name in extension.routes:
            try:
                yield import_module(name)
            except Exception:
                if extension.name in OWN:
                    raise
                log().exception("the extension %s adds nothing: %s broke", extension.name, name)


def problems() -> Iterator[Refused]:
    """Which extensions of others are not used, wholly or in part, and why. Imports all of them."""
    yield from found().refused
    for extension in (each for each in found().used if each.name not in OWN):
        targets = [hook for hook in extension[1:] if isinstance(hook, str)]
        rows = [row.function for rows in extension.commands.values() for row in rows]
        tables = [table.settings for table in extension.settings]
        names = [*extension.topics.values(), *extension.selectors.values()]
        targets += [*tables, *rows, *names, *extension.routes]
        for target in filter(None, targets):
            try:
                import_module(target) if target in extension.routes else loaded(target)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - of somebody else's code
                yield Refused(extension.name, f"{target}: {type(error).__name__}: {error}")
                break  # the others often break for the same reason


def loaded(target: str) -> Callable[..., Any]:
    """Import ``module:function``."""
    module, _, name = target.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def _own() -> Iterator[Extension]:
    for name in OWN:
        try:
            module = import_module(f"{GROUP}.{name}")
        except ModuleNotFoundError as error:
            if error.name not in {GROUP, f"{GROUP}.{name}"}:
                raise
            continue  # a copy of the core alone
        yield module.extension


def _entry_points() -> Iterator[Any]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - 10 ms that ``--help`` need not wait

    yield from sorted(entry_points(group=GROUP), key=lambda point: point.name)


def log() -> Any:
    import logging  # noqa: PLC0415 - half a command's own imports, and seldom needed

    return logging.getLogger(__name__)
