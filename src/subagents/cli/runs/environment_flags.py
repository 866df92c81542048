"""``--env`` and ``--env-file``: variables of a person's shell for the workers they ask for."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import cyclopts
import msgspec

from subagents import process_settings
from subagents.cli.runs.spawn_flags import GROUPS
from subagents.domain.run.caller_environment import (
    BYTES_MAX,
    NAME,
    CallerEnvironment,
    ProcessSettings,
)
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
        help="A file of NAME=VALUE lines, read as python-dotenv does.",
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
        given.update(_of_file(name, here))
    for each in env:
        given.update([_variable(each, here)])
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


def _variable(text: str, environ: Mapping[str, str]) -> tuple[str, str]:
    name, has_value, value = text.partition("=")
    if not has_value:
        if not NAME.fullmatch(name):
            # Most likely a value whose name was forgotten, and that is nobody's to see.
            raise UsageError(
                f"{ENV}: what stands there is no name of a variable",
                hint=f"{ENV} NAME passes yours on, {ENV} NAME=VALUE gives it one",
                details={"field": ENV},
            )
        if name not in environ:
            from subagents.domain.redaction.redact import redact  # noqa: PLC0415

            raise UsageError(
                f"{ENV}: {redact(name)} is not set here",
                hint=f"export it, or give its value: {ENV} NAME=VALUE",
                details={"field": ENV},
            )
        value = environ[name]
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{ENV}: the value of {name} is no text") from error
    return name, value


def _of_file(name: str, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The variables of a file.

    Raises:
        UsageError: It cannot be read, or is no such file; nothing of it is in the message.
    """
    from subagents.config.files.env_files import variables_of  # noqa: PLC0415  who has such a file
    from subagents.config.files.text_files import read_text  # noqa: PLC0415

    where = f"{ENV_FILE} {name}"
    text = read_text(
        Path(name).expanduser(), bytes_max=BYTES_MAX, name=where, field=ENV_FILE, streams=True
    )
    return variables_of(text, environ, where=where)
