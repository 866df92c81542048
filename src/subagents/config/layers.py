"""One configuration out of its layers: built in < user file < project file < environment < flags.

Each layer is checked by itself before it is merged, so that a message names the file or variable
that is wrong. Tables merge key by key; lists and values replace. Where each value came from is
kept, for `config --origin`. For agents a project's file counts only where it narrows
(`Config.for_agents`, `trust`).
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from subagents.config import keys
from subagents.config.config_files import Found, find_files, identity
from subagents.config.paths import CONFIG_FILE_NAME, Paths
from subagents.config.settings import (
    ANY_AGENT,
    DEFAULT_LANE,
    OPTIONS_ELSEWHERE,
    PROGRAM_RUNTIMES,
    Agent,
    DaemonSettings,
    Inconsistency,
    Section,
    Settings,
    SubagentDefaults,
    nearest,
    not_configured,
)
from subagents.config.sources import (
    DEFAULT,
    Layer,
    Tree,
    absolute_cwds,
    assignment,
    built_in,
    digest,
    from_environment,
    read,
    subtable,
    text_of,
)
from subagents.config.trust import is_trusted, narrowed
from subagents.domain.redaction.redact_events import redact_setting
from subagents.errors import ConfigError, Forbidden
from subagents.extension import settings_tables

TYPO_LIKENESS: Final = 0.85
"""`comand` is a typo of `command`; `gemini` is not one of `main`."""
SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})
WIDENED: Final = frozenset({"allow_agents", "children", "depth"})
"""Guardrails that a project file would widen if it could."""
IGNORED_SHOWN_MAX: Final = 8
"""Keys named in the warning about a project file."""
GUESSES_MAX: Final = 20
"""The most unknown names that are compared with the agents, to find typos."""
CACHED_MAX: Final = 64
"""Working directories whose configuration is remembered."""
LOOK_AGAIN_S: Final = 1.0
"""How long a new file above a caller's directory may go unseen."""
HIDDEN: Final = "(hidden)"


class Leaf(msgspec.Struct, frozen=True):
    """One effective value, for `config`."""

    key: str
    value: object
    """The value, as JSON has it."""
    origin: str
    """`default`, the file's path, the variable's name, or `flag <key>`."""
    is_secret: bool = False
    """An environment value for workers: show that it is set, not what it is."""

    @property
    def shown(self) -> object:
        """The value as it may be read by whoever sees a screen: a command can hold a token, too."""
        if self.is_secret:
            return HIDDEN
        return redact_setting(self.key.rpartition(".")[2], self.value)


class Config(msgspec.Struct, frozen=True):
    """The merged settings and where they came from."""

    settings: Settings
    origins: dict[str, str]
    """Dotted key → origin, for every key that some layer (the built-in one too) set."""
    files: tuple[Path, ...] = ()
    """The files read, weakest first."""
    warnings: tuple[str, ...] = ()
    """What is allowed, but probably not meant; `doctor` shows it."""
    own: Settings | None = None
    """The settings without the project file; None = there is none, or it is trusted as it
    stands."""
    ignored: tuple[str, ...] = ()
    """A line for each file that does not count, and one when something of the project file was
    left out for agents; a receipt shows them.
    """
    user_text: str = ""
    """The content of the user file; "" = there is none that counts."""
    refusal_hint: str | None = None
    """The hint for an agent that is refused, where a project file could not widen its limits."""

    def for_agents(self) -> "Config":
        """The effective configuration for agents: of the project's file only what narrows.

        Agents that only the project defines stay, but to spawn one the user's `allow_agents` has
        to name it: there "*" means the agents the user knows.
        """
        if self.own is None:
            return self
        settings, left_out = narrowed(self.settings, self.own)
        lines = (_ignored_line(self.files[-1], left_out),) if left_out else ()
        ignored = (*self.ignored, *lines)
        hint = (
            f"{self.files[-1]} cannot allow agents more than the user's own file does, unless a"
            f" person trusts it: subagents config --trust {self.files[-1]}"
        )
        return msgspec.structs.replace(
            self, settings=settings, own=None, ignored=ignored, refusal_hint=hint
        )

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Around a spawn: a refusal gets the hint that a project file cannot widen limits."""
        try:
            yield
        except Forbidden as error:
            if error.guardrail in WIDENED:
                hints = (error.hint, self.refusal_hint)
                error.hint = "; ".join(hint for hint in hints if hint) or None
            raise

    def leaves(self) -> Iterator[Leaf]:
        """Every effective value, sorted by key, without keys that are unset and have no default."""
        raw = msgspec.to_builtins(self.settings)
        agents = {"defaults": {"subagents": raw.pop("defaults")}, **raw.pop("agents")}
        for path, value in sorted(_flat({"agents": agents, **raw.pop("tables"), **raw})):
            key = keys.dotted(path)
            if value is not None and value != {}:
                origin = self.origins.get(key, DEFAULT)
                shown = list(value) if isinstance(value, tuple) else value
                is_secret = "env" in path[2:-1] or keys.is_hidden(path)
                yield Leaf(key, shown, origin, is_secret=is_secret)


def _ignored_line(file: Path, left_out: Sequence[str]) -> str:
    shown = ", ".join(left_out[:IGNORED_SHOWN_MAX])
    more = len(left_out) - IGNORED_SHOWN_MAX
    others = f" and {more} more" if more > 0 else ""
    return (
        f"{file}: ignored for agents: {shown}{others}"
        f" (a project file cannot widen; to allow it: subagents config --trust {file})"
    )


def load(
    cwd: Path | None,
    environ: Mapping[str, str],
    *,
    paths: Paths,
    overrides: Mapping[str, object] | None = None,
    user_text: str | None = None,
) -> Config:
    """Read, check and merge all layers.

    Args:
        cwd: The nearest `subagents.toml` that counts, in it or above up to the root of the
            repository or the home directory, is the project file; None = no project.
        environ: `SUBAGENTS_A__B=value` sets `a.b`; the value is TOML where it parses and fits,
            else text. Names without `__`, such as SUBAGENTS_HOME, are no configuration. `HOME`
            is where the search ends.
        paths: Names the user file, which need not exist.
        overrides: Dotted key → value, strongest of all. Text is read as in the environment.
        user_text: A former content of the user file, used instead of the present one.

    Raises:
        ConfigError: Names the file (with the line, for a syntax error), variable or flag, the
            key, and what is allowed. Nothing was loaded.
    """
    own_file, candidates = find_files(cwd, paths.config_file, environ.get("HOME"))
    ignored: list[str] = []
    if user_text is not None:
        user: Layer | None = read(paths.config_file, user_text)
    else:
        user = None if own_file is None else _first_that_counts([own_file], paths, ignored)
    project_layer = _first_that_counts(candidates, paths, ignored)
    read_layers = [layer for layer in (user, project_layer) if layer is not None]
    files = tuple(Path(layer.origin) for layer in read_layers)
    # The weakest first. Variables spell an id with `_`: the files say which ids have a `-`.
    layers = [built_in(environ), *read_layers]
    known_ids = [name for layer in layers for name in subtable(layer.values, "agents")]
    layers += list(from_environment(environ, known_ids, cwd))
    layers += [
        assignment(f"flag {key}", key.split("."), value, cwd)
        for key, value in (overrides or {}).items()
    ]
    if project_layer is not None:
        ignored += (
            f"{project_layer.origin}: [{name}] counts in your own file alone"
            for name in settings_tables()
            if project_layer.values.pop(name, None) is not None
        )
    for layer in layers:
        absolute_cwds(layer, environ)
    merged, origins = _merged(layers)
    settings = _settings(merged)
    _check_together(settings, origins)
    own: Settings | None = None
    if project_layer is not None and not is_trusted(paths, files[-1], project_layer.digest):
        # Not checked together: what is missing in it may stand in the project's file.
        own = _settings(_merged([each for each in layers if each is not project_layer])[0])
    warnings = tuple(_warnings(settings, origins))
    text = "" if user is None else user.text
    return Config(settings, origins, files, warnings, own, tuple(ignored), user_text=text)


def _first_that_counts(
    candidates: Iterable[Found], paths: Paths, ignored: list[str]
) -> Layer | None:
    """The first file that is ours, or trusted as it is; a line about each one before it."""
    for found in candidates:
        if found.problem is None:
            return read(found.file)
        # Read once: its owner may write another text between two looks.
        text = _text_if_readable(found.file)
        if text is not None and is_trusted(paths, found.file, digest(text)):
            return read(found.file, text)
        ignored.append(found.ignored)
    return None


def _text_if_readable(file: Path) -> str | None:
    try:
        return text_of(file)
    except ConfigError:
        return None  # whatever it is, it does not count


def _merged(layers: Iterable[Layer]) -> tuple[Tree, dict[str, str]]:
    merged: Tree = {}
    origins: dict[str, str] = {}
    for layer in layers:
        _merge(merged, layer.values, layer.origin, origins)
    return merged, origins


class _Remembered(NamedTuple):
    """An answer, or a refusal, and what it was read from."""

    config: Config | ConfigError
    found: object
    """All that it depends on."""
    files: tuple[str, ...]
    """Whose content matters, whether or not they are there."""
    near: object
    """What these files were."""
    looked_s: float


class ConfigCache:
    """`load`, remembered while the files do not change.

    The daemon asks for every spawn. The files that were read are looked at each time, and so is
    where a caller would put one: its directory. What takes longer, the search through the
    directories above and who may write them, is done again after `LOOK_AGAIN_S`.

    Args:
        environ: As for `load`, copied: that of a process does not change.
        paths: As for `load`.
        clock: Gives seconds, from any beginning.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        paths: Paths,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # A copy: what `os.environ` says is decoded each time.
        self._environ = dict(environ)
        self._paths = paths
        self._clock = clock
        self._loaded: dict[Path | None, _Remembered] = {}

    def load(self, cwd: Path | None = None) -> Config:
        """As `load`, without flags.

        A refusal is remembered, too: a file that takes a second to refuse would take it for each
        spawn.

        Raises:
            ConfigError: As `load`; an earlier good answer is not used instead.
        """
        now_s, known = self._clock(), self._loaded.get(cwd)
        if (
            known is not None
            and now_s - known.looked_s < LOOK_AGAIN_S
            and [identity(each) for each in known.files] == known.near
        ):
            return _answer(known.config)
        # Before reading: a file that changes meanwhile is then read again next time.
        user, projects = find_files(cwd, self._paths.config_file, self._environ.get("HOME"))
        here = () if cwd is None else (str(cwd / CONFIG_FILE_NAME),)
        own = (str(self._paths.config_file), str(self._paths.trusted_file))
        files = (*own, *here, *(str(each.file) for each in projects))
        near = [identity(each) for each in files]
        found = (user, projects, near)
        is_same = known is not None and known.found == found
        config = known.config if known is not None and is_same else self._read(cwd)
        if len(self._loaded) >= CACHED_MAX:
            self._loaded.clear()
        self._loaded[cwd] = _Remembered(config, found, files, near, now_s)
        return _answer(config)

    def _read(self, cwd: Path | None) -> Config | ConfigError:
        try:
            return load(cwd, self._environ, paths=self._paths)
        except ConfigError as error:
            return error


def _answer(config: Config | ConfigError) -> Config:
    if isinstance(config, Config):
        return config
    # Another one each time: it gets the places where it is raised.
    raise ConfigError(config.message, hint=config.hint, details=config.details)


def _merge(into: Tree, values: Tree, origin: str, origins: dict[str, str]) -> None:
    for path, value in _flat(values):
        target = into
        for part in path[:-1]:
            target = _descend(target, part)
        if value == {}:
            # An agent without a key, say: it is there, but no key of it has an origin.
            _descend(target, path[-1])
        else:
            target[path[-1]] = value
            origins[keys.dotted(path)] = origin


def _descend(values: Tree, name: str) -> Tree:
    """The table of that name; in ``runtime_options`` it may replace a weaker layer's value."""
    if not isinstance(values.get(name), dict):
        values[name] = {}
    return subtable(values, name)


def _flat(values: Tree, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    for name, value in values.items():
        here = (*path, name)
        if isinstance(value, dict) and value:
            yield from _flat(value, here)
        else:
            yield here, value


def _settings(merged: Tree) -> Settings:
    agents = dict(subtable(merged, "agents"))
    defaults = agents.pop("defaults", {})
    rest = {name: value for name, value in merged.items() if name != "agents"}
    subagents = defaults.get("subagents", {}) if isinstance(defaults, dict) else {}
    tables = {}
    for name, (table, kind) in settings_tables().items():
        rest.pop(name, None)
        values = subtable(merged, name)
        if kind is not None and table.is_named:
            tables[name] = {
                each: _required(f"{name}.{each}", values[each], kind) for each in values
            }
        elif kind is not None:
            tables[name] = msgspec.convert(values, kind)
    settings = msgspec.convert(rest, Settings)
    return msgspec.structs.replace(
        settings,
        tables=tables,
        defaults=msgspec.convert(subagents, SubagentDefaults),
        agents={name: _agent(value) for name, value in agents.items()},
    )


def _required(key: str, values: object, kind: type[Section]) -> Section:
    """A table of an extension, of which some key may have to be set.

    Raises:
        ConfigError: Names the key that is missing.
    """
    for each in msgspec.structs.fields(kind):
        if each.required and isinstance(values, dict) and each.encode_name not in values:
            hint = f"set it, or remove [{key}]"
            raise ConfigError(f"{key}.{each.encode_name} is missing", hint=hint)
    return msgspec.convert(values, kind)


def _agent(values: object) -> Agent:
    agent = msgspec.convert(values, Agent)
    allowed = tuple(name.strip().lower() for name in agent.subagents.allow_agents)
    own = msgspec.structs.replace(agent.subagents, allow_agents=allowed)
    return msgspec.structs.replace(agent, subagents=own)


def _check_together(settings: Settings, origins: Mapping[str, str]) -> None:
    """Refuse what only the merged result can show; the message names the layer that set it last."""
    for key, text, hint in _inconsistencies(settings, origins):
        # A table has no origin of its own, but each value in it has.
        inside = (origins[name] for name in origins if name.startswith(f"{key}."))
        origin = origins.get(key) or next(inside, DEFAULT)
        details = {"origin": origin, "keys": [key]}
        raise ConfigError(f"{origin}: {text}", hint=hint, details=details)


def _inconsistencies(settings: Settings, origins: Mapping[str, str]) -> Iterator[Inconsistency]:
    yield from _of_daemon(settings.daemon)
    for _, kind in settings_tables().values():
        if kind is not None:
            yield from kind.inconsistencies(settings)
    chosen = settings.defaults.agent
    if chosen is not None and chosen not in settings.agents:
        key = "agents.defaults.subagents.agent"
        configured = f"configured: {', '.join(sorted(settings.agents))}"
        yield Inconsistency(key, not_configured(key, chosen, settings.agents), configured)
    for agent_id, agent in settings.agents.items():
        yield from _of_agent(f"agents.{agent_id}", agent, settings, origins)


def _of_daemon(daemon: DaemonSettings) -> Iterator[Inconsistency]:
    if (daemon.tls_cert is None) != (daemon.tls_key is None):
        given, missing = (
            ("tls_key", "tls_cert") if daemon.tls_cert is None else ("tls_cert", "tls_key")
        )
        yield Inconsistency(
            f"daemon.{given}",
            f"daemon.{missing} is missing; {given} has no effect without it",
            f"set daemon.{missing} to the file that belongs to it, or remove daemon.{given}",
        )
    if not daemon.is_loopback and daemon.tls_cert is None:
        yield Inconsistency(
            "daemon.http_host",
            f"daemon.http_host must be a loopback address (127.0.0.1, ::1 or localhost), not"
            f' "{daemon.http_host}", unless daemon.tls_cert and daemon.tls_key are set: a token'
            " would travel in the clear",
            "set both to the files of a certificate, or forward the port: ssh -L",
        )


def _of_agent(
    key: str, agent: Agent, settings: Settings, origins: Mapping[str, str]
) -> Iterator[Inconsistency]:
    if agent.runtime == "command" and agent.command is None:
        yield Inconsistency(
            f"{key}.runtime",
            f'{key}.command is missing; runtime "command" needs the program to run',
            'add command = ["bash", "-c", "{task}"], for example',
        )
    if agent.runtime is None and (agent.command is not None or agent.script is not None):
        option, runtime = ("script", "scripted") if agent.script else ("command", "command")
        yield Inconsistency(
            f"{key}.{option}",
            f"{key}.runtime is missing; {option} has no effect without one",
            f'add runtime = "{runtime}"',
        )
    yield from _of_options(key, agent, origins)
    if agent.courier.command is not None:
        yield from _of_courier(f"{key}.courier.command", agent.courier.command)
    if agent.courier.webhook_secret_env is not None and agent.courier.webhook is None:
        yield Inconsistency(
            f"{key}.courier.webhook_secret_env",
            f"{key}.courier.webhook is missing; webhook_secret_env has no effect without it",
            'add webhook = "https://…"',
        )
    if agent.lane is not None and agent.lane not in (DEFAULT_LANE, *settings.lanes):
        yield Inconsistency(
            f"{key}.lane",
            not_configured(f"{key}.lane", agent.lane, settings.lanes),
            f"add [lanes.{agent.lane}] with slots = N",
        )


def _of_options(key: str, agent: Agent, origins: Mapping[str, str]) -> Iterator[Inconsistency]:
    """Each option has one place, and a runtime that reads it."""
    for name in OPTIONS_ELSEWHERE:
        # `acp` takes the command of an agent that it does not know among its own options.
        is_own = name == "command" and agent.runtime in PROGRAM_RUNTIMES
        if name in agent.runtime_options and not is_own:
            yield Inconsistency(
                f"{key}.runtime_options.{name}",
                f"{key}.runtime_options.{name} must be {key}.{name}",
                f"move it out of runtime_options: {key}.{name}",
            )
    if agent.runtime is None and agent.runtime_options:
        yield Inconsistency(
            f"{key}.runtime_options.{next(iter(agent.runtime_options))}",
            f"{key}.runtime is missing; runtime_options have no effect without one",
            f'add runtime = "{PROGRAM_RUNTIMES[0]}", for example',
        )
    for name in ("command", "stdin", "script"):
        is_set = origins.get(f"{key}.{name}", DEFAULT) != DEFAULT
        if is_set and agent.runtime in PROGRAM_RUNTIMES:
            yield Inconsistency(
                f"{key}.{name}",
                f'{key}.{name} has no effect with runtime "{agent.runtime}"',
                f"remove it; the options of this runtime go into [{key}.runtime_options]",
            )


def _of_courier(key: str, command: tuple[str, ...]) -> Iterator[Inconsistency]:
    """The text is a worker's, so it may choose neither the program nor a shell's script."""
    if not command[0] or "{" in command[0]:
        text = f"{key} must begin with a program, not {command[0]!r}"
        yield Inconsistency(key, text, "put {text} into an argument")
    is_shell = Path(command[0]).name in SHELLS
    script = command[command.index("-c") + 1 :][:1] if is_shell and "-c" in command else ()
    if any(name in word for word in script for name in ("{text}", "{textJson}")):
        yield Inconsistency(
            key,
            f"{key} puts {{text}} into a shell's script: a worker's text would be run",
            'read the text from stdin ("cat"), or make {text} an argument after the script ("$1")',
        )


def _warnings(settings: Settings, origins: Mapping[str, str]) -> Iterator[str]:
    guesses_left = GUESSES_MAX
    for agent_id, agent in settings.agents.items():
        key = f"agents.{agent_id}.subagents.allow_agents"
        for name in agent.subagents.allow_agents:
            if name == ANY_AGENT or name in settings.agents:
                continue
            # Each is compared with all agents, and the daemon waits for it.
            guesses_left -= 1
            if guesses_left < 0:
                return
            # An agent that is not there yet may be allowed ahead; a near miss is a typo.
            if nearest(name, settings.agents, likeness=TYPO_LIKENESS):
                origin = origins.get(key, DEFAULT)
                yield f"{origin}: {not_configured(key, name, settings.agents)}"
