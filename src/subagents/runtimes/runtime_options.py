"""Reads an agent's runtime section; every runtime says the same of the same mistake."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Final, Literal, TypeVar

import msgspec

from subagents.config.settings import nearest
from subagents.errors import ConfigError
from subagents.runtimes.process.environment import OURS

VARIABLE: Final = r"^[A-Za-z_][A-Za-z0-9_]*"

VariableName = Annotated[str, msgspec.Meta(pattern=VARIABLE + "$")]
VariablePattern = Annotated[str, msgspec.Meta(pattern=VARIABLE + r"\*?$")]
"""A name, or a prefix ``NAME_*``."""


Limit = Literal["memory_mb", "pids", "cpu_percent"]


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What every runtime that starts a program takes; its own options come on top."""

    env: dict[VariableName, str] = {}
    """Variables set for the worker."""
    pass_env: tuple[VariablePattern, ...] = ()
    """Variables let through from the daemon's environment."""
    limits: dict[Limit, int] = {}
    """What its cgroup keeps the worker to; the keys of ``[agents.<id>.limits]``."""
    mcp_servers: tuple[str, ...] | None = None
    """See ``ports.Serving``."""


HANDSHAKE_S: Final = 120.0
"""Long enough for a program that starts its own servers on a busy machine."""


class ConversationOptions(WorkerOptions, frozen=True, kw_only=True):
    """What every runtime takes that talks with its program."""

    handshake_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = HANDSHAKE_S
    """How long each step may take before the program's turn has begun."""
    ask: bool = False
    """What the program asks permission for becomes a question; else nobody is there to ask."""


T = TypeVar("T", bound=WorkerOptions)


def parsed(
    options: Mapping[str, object], form: type[T], *, runtime: str, unknown: str = "", hint: str = ""
) -> T:
    """The options as ``form``, a struct whose fields are all the keys there are.

    Args:
        options: As configured.
        form: What they are.
        runtime: Its name, for the message.
        unknown: Added to the message for a key that there is not.
        hint: Added to the message for a value of the wrong kind.

    Raises:
        ConfigError: Names the key, and the nearest known one or what is allowed.
    """
    shared = WorkerOptions.__struct_fields__
    known = (*(key for key in form.__struct_fields__ if key not in shared), *shared)
    for key in options:
        if key not in known:
            near = nearest(str(key), known)
            meant = f"; did you mean `{near}`?" if near else f"; known are {', '.join(known)}"
            raise ConfigError(f'runtime "{runtime}" knows no option `{key}`{meant}{unknown}')
    try:
        found = msgspec.convert(dict(options), form)
    except msgspec.ValidationError as error:
        raise ConfigError(f'options of runtime "{runtime}": {error}{hint}') from error
    check_variables((*found.env, *found.pass_env))
    for key in known:
        # No argument and no variable can hold one: the system ends a text there.
        if any("\0" in text for text in _texts(getattr(found, key))):
            raise ConfigError(f"`{key}` cannot hold NUL characters")
    return found


def handshake_seconds(options: Mapping[str, object]) -> float:
    """How long each step of a handshake may take, by options that were accepted."""
    given = options.get("handshake_seconds")
    return float(given) if isinstance(given, (int, float)) else HANDSHAKE_S


def check_variables(names: Iterable[str]) -> None:
    """Refuse variables that are ours to set.

    Raises:
        ConfigError: Names the first.
    """
    for name in names:
        if name.startswith(OURS):
            raise ConfigError(f"`{name}`: variables {OURS}* are set by subagents; remove it")


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, dict):
        return (each for each in value.values() if isinstance(each, str))
    return (each for each in value if isinstance(each, str)) if isinstance(value, tuple) else ()
