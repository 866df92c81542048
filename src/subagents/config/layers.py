"""One configuration out of its layers: built in < user file < project file < environment < flags.

Each layer is checked by itself before it is merged, so that a message names the file or variable
that is wrong. Tables merge key by key; lists and values replace. Where each value came from is
kept, for `config show --origin`.

Source: 5-surfaces §5, §7.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from subagents.config import keys
from subagents.config.paths import Paths
from subagents.config.settings import (
    ANY_AGENT,
    DEFAULT_LANE,
    Agent,
    Settings,
    SubagentDefaults,
    nearest,
)
from subagents.config.sources import (
    DEFAULT,
    PREFIX,
    Tree,
    absolute_cwds,
    assignment,
    built_in,
    find_files,
    from_environment,
    identity,
    read,
    subtable,
)
from subagents.errors import ConfigError

TYPO_LIKENESS: Final = 0.85
"""`comand` is a typo of `command`; `gemini` is not one of `main`."""
CACHED_MAX: Final = 64
"""Working directories whose configuration is remembered."""


class Leaf(msgspec.Struct, frozen=True):
    """One effective value, for `config show`."""

    key: str
    value: object
    """In JSON values."""
    origin: str
    """`default`, the file's path, the variable's name, or `flag <key>`."""
    is_secret: bool = False
    """An environment value for workers: show that it is set, not what it is."""


class Config(msgspec.Struct, frozen=True):
    """The merged settings and where they came from."""

    settings: Settings
    origins: dict[str, str]
    """Dotted key → origin, for every key that some layer (the built-in one too) set."""
    files: tuple[Path, ...] = ()
    """The files read, weakest first."""
    warnings: tuple[str, ...] = ()
    """What is allowed, but probably not meant; `doctor` shows it."""

    def leaves(self) -> Iterator[Leaf]:
        """Every effective value, sorted by key, without keys that are unset and have no default."""
        raw = msgspec.to_builtins(self.settings)
        agents = {"defaults": {"subagents": raw.pop("defaults")}, **raw.pop("agents")}
        for path, value in sorted(_flat({"agents": agents, **raw})):
            key = keys.dotted(path)
            if value is not None and value != {}:
                origin = self.origins.get(key, DEFAULT)
                shown = list(value) if isinstance(value, tuple) else value
                yield Leaf(key, shown, origin, is_secret="env" in path[2:-1])


def load(
    cwd: Path | None,
    environ: Mapping[str, str],
    *,
    paths: Paths,
    overrides: Mapping[str, object] | None = None,
) -> Config:
    """Read, check and merge all layers.

    Args:
        cwd: The nearest `subagents.toml` in it or above is the project file; None = no project.
        environ: `SUBAGENTS_A__B=value` sets `a.b`; the value is TOML where it parses and fits,
            else text. Names without `__`, such as SUBAGENTS_HOME, are no configuration.
        paths: Names the user file, which need not exist.
        overrides: Dotted key → value, strongest of all. Text is read as in the environment.

    Raises:
        ConfigError: Names the file (with the line, for a syntax error), variable or flag, the
            key, and what is allowed. Nothing was loaded.
    """
    layers = [built_in(environ)]
    files = tuple(file for file in find_files(cwd, paths.config_file) if file is not None)
    layers += [read(file) for file in files]
    known_ids = [name for layer in layers for name in subtable(layer.values, "agents")]
    layers += list(from_environment(environ, known_ids, cwd))
    layers += [
        assignment(f"flag {key}", key.split("."), value, cwd)
        for key, value in (overrides or {}).items()
    ]
    merged: Tree = {}
    origins: dict[str, str] = {}
    for layer in layers:
        absolute_cwds(layer, environ)
        _merge(merged, layer.values, layer.origin, origins)
    settings = _settings(merged)
    _check_together(settings, origins)
    return Config(settings, origins, files, tuple(_warnings(settings, origins)))


class ConfigCache:
    """`load`, remembered while neither the files nor the environment change.

    The daemon asks for every spawn: an unchanged answer costs a `stat` per directory.
    """

    def __init__(self, environ: Mapping[str, str], paths: Paths) -> None:
        self._environ = environ
        self._paths = paths
        self._loaded: dict[Path | None, tuple[object, Config]] = {}

    def load(self, cwd: Path | None = None) -> Config:
        """As `load`, without flags. A failure is not remembered.

        Raises:
            ConfigError: As `load`; an earlier good answer is not used instead.
        """
        # Before reading: a file that changes meanwhile is then read again next time.
        seen = self._fingerprint(cwd)
        cached = self._loaded.get(cwd)
        if cached is not None and cached[0] == seen:
            return cached[1]
        config = load(cwd, self._environ, paths=self._paths)
        if len(self._loaded) >= CACHED_MAX:
            self._loaded.clear()
        self._loaded[cwd] = (seen, config)
        return config

    def _fingerprint(self, cwd: Path | None) -> object:
        return (
            [
                (name, self._environ[name])
                for name in self._environ
                if name.startswith(PREFIX) or name in ("PATH", "HOME")
            ],
            [identity(file) for file in find_files(cwd, self._paths.config_file)],
        )


def _merge(into: Tree, values: Tree, origin: str, origins: dict[str, str]) -> None:
    for path, value in _flat(values):
        target = into
        for part in path[:-1]:
            target = subtable(target, part)
        if value == {}:
            subtable(target, path[-1])
        else:
            target[path[-1]] = value
            origins[keys.dotted(path)] = origin


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
    settings = msgspec.convert(rest, Settings)
    return msgspec.structs.replace(
        settings,
        defaults=msgspec.convert(subagents, SubagentDefaults),
        agents={name: _agent(value) for name, value in agents.items()},
    )


def _agent(values: object) -> Agent:
    agent = msgspec.convert(values, Agent)
    allowed = tuple(name.strip().lower() for name in agent.subagents.allow_agents)
    own = msgspec.structs.replace(agent.subagents, allow_agents=allowed)
    return msgspec.structs.replace(agent, subagents=own)


def _check_together(settings: Settings, origins: Mapping[str, str]) -> None:
    """What only the merged result can show; the message names the layer that said it last."""
    chosen = settings.defaults.agent
    if chosen is not None and chosen not in settings.agents:
        key = "agents.defaults.subagents.agent"
        configured = f"configured: {', '.join(sorted(settings.agents))}"
        raise _inconsistent(key, _not_configured(key, chosen, settings.agents), configured, origins)
    for agent_id, agent in settings.agents.items():
        key = f"agents.{agent_id}"
        if agent.runtime == "command" and agent.command is None:
            raise _inconsistent(
                f"{key}.runtime",
                f'{key}.command is missing; runtime "command" needs the program to run',
                'add command = ["bash", "-c", "{task}"], for example',
                origins,
            )
        if agent.runtime is None and (agent.command is not None or agent.script is not None):
            option, runtime = ("script", "scripted") if agent.script else ("command", "command")
            raise _inconsistent(
                f"{key}.{option}",
                f"{key}.runtime is missing; {option} says nothing without one",
                f'add runtime = "{runtime}"',
                origins,
            )
        if agent.lane is not None and agent.lane not in (DEFAULT_LANE, *settings.lanes):
            raise _inconsistent(
                f"{key}.lane",
                _not_configured(f"{key}.lane", agent.lane, settings.lanes),
                f"add [lanes.{agent.lane}] with slots = N",
                origins,
            )


def _inconsistent(key: str, text: str, hint: str, origins: Mapping[str, str]) -> ConfigError:
    origin = origins.get(key, DEFAULT)
    return ConfigError(f"{origin}: {text}", hint=hint, details={"origin": origin, "keys": [key]})


def _not_configured(key: str, name: str, configured: Iterable[str]) -> str:
    near = nearest(name, configured)
    guess = f'; did you mean "{near}"?' if near else ""
    return f'{key} names "{name}", which is not configured{guess}'


def _warnings(settings: Settings, origins: Mapping[str, str]) -> Iterator[str]:
    for agent_id, agent in settings.agents.items():
        key = f"agents.{agent_id}.subagents.allow_agents"
        for name in agent.subagents.allow_agents:
            if name == ANY_AGENT or name in settings.agents:
                continue
            # An agent that is not there yet may be allowed ahead; a near miss is a typo.
            if nearest(name, settings.agents, likeness=TYPO_LIKENESS):
                origin = origins.get(key, DEFAULT)
                yield f"{origin}: {_not_configured(key, name, settings.agents)}"
