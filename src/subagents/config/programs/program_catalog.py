"""The agent programs we know, which one works for an agent, and what distinguishes its versions.

Only files are looked at: nothing is started and no request is made. Blocking, some ``stat`` calls.
"""

import hashlib
import importlib.util
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

import msgspec

from subagents.config.entry_points import entry_points
from subagents.config.settings import RUNTIME_PLUGINS, Agent

CLAUDE_SESSION_PLACES: Final = (
    *("projects", "session-env", "sessions", "shell-snapshots", "file-history", "tasks", "todos"),
    *("backups", "cache", "debug", "plans", "statsig", "telemetry", "usage-data", "paste-cache"),
)
"""What it keeps of its sessions, in its configuration directory. Its settings, hooks and plugins
are read-only in a sandbox: the user's next session would run what a worker wrote there."""
LLM_DISTRIBUTION: Final = "pydantic-ai-slim"
NOT_ABOUT_TOOLS: Final = ("env", "pass_env", "handshake_seconds", "mcp_servers")
"""Options that do not change what a worker may do with its tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """An agent program: how it is found, run and logged in to.

    Args:
        name: What it is called on PATH, and as an agent.
        runtime: The runtime made for it.
        title: What people call it.
        package: How it is installed.
        variables: Any of these set is a login.
        login_files: Any of these there is a login: ``$VARIABLE/`` or ``~/`` and a path, with
            ``:WORD`` one that has that word in it.
        login: What a person types to log in.
        model: Without it an agent cannot work; written as a line of the agent.
    """

    name: str
    runtime: str
    title: str
    package: str = ""
    variables: tuple[str, ...] = ()
    login_files: tuple[str, ...] = ()
    login: str = ""
    model: str | None = None

    @property
    def options(self) -> dict[str, str]:
        """``runtime_options`` of an agent that it works for."""
        return {"agent": self.name} if self.runtime == "acp" else {}


PROGRAMS: Final = msgspec.json.decode(
    Path(__file__).with_name("programs.json").read_bytes(), type=tuple[Program, ...]
)
"""The first that is found is offered first."""
CLAUDE: Final = PROGRAMS[0]

LLM_MODULE: Final = "pydantic_ai"


def where(program: Program, environ: Mapping[str, str]) -> str | None:
    """The absolute path of the program, or of the one that a Python package brings along."""
    on_path = shutil.which(program.name, path=environ.get("PATH", os.defpath))
    if on_path is not None:
        return str(Path(on_path).absolute())
    return bundled_claude() if program.name == CLAUDE.name else None


def bundled_claude() -> str | None:
    """The Claude Code in the package ``claude-agent-sdk``; nothing of it is imported."""
    package = package_directory("claude_agent_sdk")
    file = package / "_bundled" / "claude" if package is not None else None
    return str(file) if file is not None and os.access(file, os.X_OK) else None


def package_directory(module: str) -> Path | None:
    """Where an importable package lies; None = it is not installed."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def login_variables(runtime: str, options: Mapping[str, object]) -> tuple[str, ...]:
    """Variables any of which lets an agent's program log in; () = none is known.

    Args:
        runtime: The agent's.
        options: The agent's.
    """
    for program in PROGRAMS:
        if program.runtime == runtime and program.options.get("agent") in {
            None,
            options.get("agent"),
        }:
            return program.variables
    return ()


def known(name: str) -> Program | None:
    """The program of that name on PATH."""
    return next((each for each in PROGRAMS if each.name == name), None)


def package_root(file: Path) -> Path | None:
    """The directory of the npm package that a program belongs to."""
    for directory in file.parents:
        if directory.parent.name == "node_modules" or directory.parent.name.startswith("@"):
            return directory if (directory / "package.json").is_file() else None
    return None


class _Manifest(msgspec.Struct):
    version: str | None = None


def _package_version(script: str) -> str | None:
    package = package_root(Path(os.path.realpath(script)))
    try:
        data = b"{}" if package is None else (package / "package.json").read_bytes()
        return msgspec.json.decode(data, type=_Manifest).version
    except (OSError, msgspec.DecodeError):
        return None


# -- what works for an agent ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Installed:
    """The program that works for one agent."""

    name: str
    """What was looked for: a name on PATH, a path, or a Python package."""
    program: Program | None
    """What is known of it; None = nothing."""
    place: str | None
    """Its absolute path; None = it is not there."""
    package_version: str | None = None
    """The version of the npm package that it belongs to; None = it belongs to none."""
    marks: tuple[str, ...] = ()
    """Tell this version from every other: names, sizes and times of its files."""

    @property
    def fingerprint(self) -> str:
        """The marks as one short word."""
        return hashlib.sha256("\0".join(self.marks).encode()).hexdigest()[:16]


def installed(agent: Agent, environ: Mapping[str, str]) -> Installed | None:
    """What works for that agent; None = it needs no program (``scripted``, or none at all).

    Args:
        agent: Its ``env`` may set another PATH.
        environ: The daemon's, or what comes nearest to it.
    """
    path = agent.env.get("PATH") or environ.get("PATH", os.defpath)
    match agent.runtime:
        case None | "scripted":
            return None
        case "llm":
            return _of_package(LLM_MODULE, LLM_DISTRIBUTION)
        case "claude-code":
            own = agent.runtime_options.get("program")
            return _of_command((str(own),), CLAUDE, path) if own else _of_program(CLAUDE, path)
        case "command":
            return _of_command(agent.command or (), None, path)
        case "codex" | "acp":
            return _of_options(agent, path)
        case _:
            return _of_plugin(str(agent.runtime))


def subject(agent: Agent, found: Installed | None) -> str:
    """Names what a probe of that agent proves something of: its program as it is started.

    Another version, another runtime or other options are another subject.
    """
    options = {k: v for k, v in agent.options.items() if k not in NOT_ABOUT_TOOLS}
    # In a fixed order: how the keys of a table are arranged makes no other subject.
    text = msgspec.json.encode((agent.runtime, options), order="deterministic")
    digest = hashlib.sha256(text).hexdigest()[:16]
    return f"{agent.runtime}:{digest}:{found.fingerprint if found is not None else '-'}"


def _of_options(agent: Agent, path: str) -> Installed:
    named = agent.runtime_options.get("agent") if agent.runtime == "acp" else agent.runtime
    program = known(str(named))
    command = agent.runtime_options.get("command")
    if isinstance(command, (list, tuple)) and command:
        return _of_command(tuple(map(str, command)), program, path)
    return _of_program(program, path) if program is not None else Installed(str(named), None, None)


def _of_program(program: Program, path: str) -> Installed:
    place = where(program, {"PATH": path})
    version = None if place is None else _package_version(place)
    return Installed(program.name, program, place, version, _marks(place))


def _of_command(command: tuple[str, ...], program: Program | None, path: str) -> Installed:
    if not command:
        return Installed("", program, None)
    first = command[0]
    place = first if os.path.isabs(first) else shutil.which(first, path=path)  # noqa: PTH117
    if place is not None and not os.access(place, os.X_OK):
        place = None
    # An interpreter's script is the program more than the interpreter is.
    scripts = [word for word in command[1:] if word.startswith("/") and Path(word).is_file()]
    marks = [mark for word in (place, *scripts) for mark in _marks(word)]
    files = [*scripts, *([] if place is None else [place])]
    version = next(filter(None, map(_package_version, files)), None)
    return Installed(first, program, place, version, tuple(marks))


def _marks(place: str | None) -> tuple[str, ...]:
    if place is None:
        return ()
    real = os.path.realpath(place)
    try:
        found = os.stat(real)  # noqa: PTH116
    except OSError:
        return (real,)
    return real, str(found.st_size), str(found.st_mtime_ns)


def _of_package(module: str, distribution: str) -> Installed:
    directory = package_directory(module)
    if directory is None:
        return Installed(module, None, None)
    return Installed(module, None, str(directory), marks=_versions(distribution, "subagents"))


def _of_plugin(name: str) -> Installed:
    for point in entry_points(RUNTIME_PLUGINS).get(name, ()):
        if point.dist is not None:
            marks = (*_versions(point.dist.name), point.value)
            return Installed(name, None, point.value, marks=marks)
        return Installed(name, None, point.value, marks=(point.value,))
    return Installed(name, None, None)


def _versions(*distributions: str) -> tuple[str, ...]:
    found = []
    for name in distributions:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(name)
    return tuple(found)
