"""``--env`` and ``--env-file``: variables of a person's shell for the workers they ask for."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import cyclopts
import msgspec

from subagents import process_settings
from subagents.cli.runs.spawn_flags import GROUPS
from subagents.domain.run.caller_environment import BYTES_MAX, CallerEnvironment, ProcessSettings
from subagents.domain.run.parameter import PLACEMENT
from subagents.domain.run.shell_variables import provider_variables, shell_variables
from subagents.errors import UsageError

ENV: Final = "--env"
ENV_FILE: Final = "--env-file"

Env = Annotated[
    tuple[str, ...],
    cyclopts.Parameter(
        name=(ENV, "-e"),
        negative=(),
        metavar="NAME[=VALUE]",
        group=GROUPS[PLACEMENT],
        help="Set a variable for the worker; NAME alone passes on yours. Repeatable. PATH, "
        "VIRTUAL_ENV, locale, terminal, proxies and SSH_AUTH_SOCK are always passed on.",
    ),
]
EnvFile = Annotated[
    tuple[str, ...],
    cyclopts.Parameter(
        name=ENV_FILE,
        negative=(),
        metavar="FILE",
        group=GROUPS[PLACEMENT],
        help="A file of NAME=VALUE lines.",
    ),
]


def environment(
    env: Sequence[str], env_file: Sequence[str], environ: Mapping[str, str] | None = None
) -> CallerEnvironment:
    """What the shell and the flags bring; ``--env`` is stronger than a file, the last one wins.

    Args:
        env: ``NAME=VALUE``, or ``NAME`` for the value that it has here.
        env_file: Names of files.
        environ: The shell's variables; None = this process's.

    Raises:
        UsageError: Names the flag, and the line of a file; never a value.
    """
    here = os.environ if environ is None else environ
    given: dict[str, str] = {}
    for name in env_file:
        given.update(_lines(name, here))
    for each in env:
        given.update([_variable(each, here, where=ENV)])
    found = CallerEnvironment(
        shell=shell_variables(here),
        given=given,
        provider=provider_variables(here),
        process=brought_settings(here),
    )
    problem = found.problem()
    if problem is not None:
        raise UsageError(f"{ENV}: {problem}", details={"field": ENV})
    return found


def brought_settings(environ: Mapping[str, str]) -> ProcessSettings | None:
    """How processes run here; a worker has none to bring."""
    if environ.get("SUBAGENTS_RUN_ID"):
        return None
    return msgspec.convert(process_settings.own(), ProcessSettings)


def _variable(text: str, environ: Mapping[str, str], *, where: str) -> tuple[str, str]:
    name, has_value, value = text.partition("=")
    if not has_value:
        if name not in environ:
            raise UsageError(
                f"{where}: {name} is not set here",
                hint=f"export {name}, or give its value: {name}=VALUE",
                details={"field": ENV},
            )
        value = environ[name]
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{where}: the value of {name} is no text") from error
    return name, value


def _lines(name: str, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The variables of a file: comments and empty lines apart, ``export`` and quotes are taken off.

    Raises:
        UsageError: It cannot be read, or is no such file.
    """
    details = {"field": ENV_FILE}
    try:
        with Path(name).expanduser().open("rb") as file:
            content = file.read(BYTES_MAX + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise UsageError(f"{ENV_FILE} {name}: {why}", details=details) from error
    if len(content) > BYTES_MAX:
        raise UsageError(f"{ENV_FILE} {name}: is over {BYTES_MAX:,} bytes", details=details)
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip().removeprefix("export ").lstrip()
        if not stripped or stripped.startswith("#"):
            continue
        variable, value = _variable(stripped, environ, where=f"{ENV_FILE} {name}:{number}")
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        yield variable.rstrip(), value
