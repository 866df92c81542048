"""Which installed program works for an agent, and how one version of it is told from the next.

Nothing is started: a program is what its files are. Blocking, some ``stat`` calls.
"""

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

import msgspec

from subagents.config import entry_points as plugins
from subagents.config import program_catalog as programs
from subagents.config.program_catalog import CLAUDE, Program
from subagents.config.settings import RUNTIME_PLUGINS, Agent

LLM_DISTRIBUTION: Final = "pydantic-ai-slim"
NOT_ABOUT_TOOLS: Final = ("env", "pass_env")
"""Options that do not change what a worker may do with its tools."""


@dataclass(frozen=True, slots=True)
class Installed:
    """The program that works for one agent."""

    name: str
    """What was looked for: a name on PATH, a path, or a Python package."""
    program: Program | None
    """What is known of it; None = nothing."""
    place: str | None
    """Its absolute path; None = it is not there."""
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
            return _package(programs.LLM_MODULE, LLM_DISTRIBUTION)
        case "claude-code":
            own = agent.runtime_options.get("program")
            return _started((str(own),), CLAUDE, path) if own else _known(CLAUDE, path)
        case "command":
            return _started(agent.command or (), None, path)
        case "codex" | "acp":
            return _of_options(agent, path)
        case _:
            return _plugin(str(agent.runtime))


def subject(agent: Agent, found: Installed | None) -> str:
    """Names what a probe of that agent proves something of: its program as it is started.

    Another version, another runtime or other options are another subject.
    """
    options = {k: v for k, v in agent.options.items() if k not in NOT_ABOUT_TOOLS}
    text = msgspec.json.encode((agent.runtime, options), order="deterministic")
    digest = hashlib.sha256(text).hexdigest()[:16]
    return f"{agent.runtime}:{digest}:{found.fingerprint if found is not None else '-'}"


def _of_options(agent: Agent, path: str) -> Installed:
    named = agent.runtime_options.get("agent") if agent.runtime == "acp" else agent.runtime
    program = programs.known(str(named))
    command = agent.runtime_options.get("command")
    if isinstance(command, (list, tuple)) and command:
        return _started(tuple(map(str, command)), program, path)
    return _known(program, path) if program is not None else Installed(str(named), None, None)


def _known(program: Program, path: str) -> Installed:
    place = programs.where(program, {"PATH": path})
    return Installed(program.name, program, place, _marks(place))


def _started(command: tuple[str, ...], program: Program | None, path: str) -> Installed:
    if not command:
        return Installed("", program, None)
    first = command[0]
    place = first if os.path.isabs(first) else shutil.which(first, path=path)  # noqa: PTH117
    if place is not None and not os.access(place, os.X_OK):
        place = None
    # An interpreter's script is the program more than the interpreter is.
    scripts = [word for word in command[1:] if word.startswith("/") and Path(word).is_file()]
    marks = [mark for word in (place, *scripts) for mark in _marks(word)]
    return Installed(first, program, place, tuple(marks))


def _marks(place: str | None) -> tuple[str, ...]:
    if place is None:
        return ()
    real = os.path.realpath(place)
    try:
        found = os.stat(real)  # noqa: PTH116
    except OSError:
        return (real,)
    return real, str(found.st_size), str(found.st_mtime_ns)


def _package(module: str, distribution: str) -> Installed:
    directory = programs.package_directory(module)
    if directory is None:
        return Installed(module, None, None)
    return Installed(module, None, str(directory), _versions(distribution, "subagents"))


def _plugin(name: str) -> Installed:
    for point in plugins.entry_points(RUNTIME_PLUGINS).get(name, ()):
        if point.dist is not None:
            return Installed(name, None, point.value, (*_versions(point.dist.name), point.value))
        return Installed(name, None, point.value, (point.value,))
    return Installed(name, None, None)


def _versions(*distributions: str) -> tuple[str, ...]:
    found = []
    for name in distributions:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(name)
    return tuple(found)
