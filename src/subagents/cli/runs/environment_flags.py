"""``--env`` and ``--env-file``: variables of a person's shell for the workers they ask for."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from subagents import process_settings
from subagents.cli.flags import Annotated, Parameter
from subagents.domain.run.shell_variables import provider_variables, shell_variables
from subagents.errors import UsageError

if TYPE_CHECKING:
    from subagents.domain.run.caller_environment import CallerEnvironment

ENV: Final = "--env"
ENV_FILE: Final = "--env-file"
PLACEMENT: Final = "Placement"
"""The domain's word, which takes longer to import than to ask; a test compares them."""
CERTAIN_CHARS_MAX: Final = 64 * 1024
"""The size up to which the shell's variables are always taken."""

Env = Annotated[
    tuple[str, ...],
    Parameter(
        name=(ENV, "-e"),
        metavar="NAME[=VALUE]",
        group=PLACEMENT,
        help="Set a variable for the worker; NAME alone passes on yours. Repeatable. PATH, "
        "VIRTUAL_ENV, locale, terminal, proxies and SSH_AUTH_SOCK are always passed on.",
    ),
]
EnvFile = Annotated[
    tuple[str, ...],
    Parameter(
        name=ENV_FILE,
        metavar="FILE",
        group=PLACEMENT,
        help="A file of NAME=VALUE lines, read as python-dotenv does.",
    ),
]


def brought(env: Sequence[str], env_file: Sequence[str]) -> Mapping[str, object]:
    """What ``environment`` returns, as a document; raises the same.

    The domain, which takes longer to import than a spawn takes, checks only what may be wrong.
    """
    here = os.environ
    shell, provider = shell_variables(here), provider_variables(here)
    names = "".join(("_", *shell, *provider))
    chars = sum(map(len, (*shell.values(), *provider.values())))
    if env or env_file or chars > CERTAIN_CHARS_MAX or not names.isidentifier():
        from msgspec import to_builtins  # noqa: PLC0415

        found: Mapping[str, object] = to_builtins(environment(env, env_file))
        return found
    process = {} if here.get("SUBAGENTS_RUN_ID") else process_settings.own()
    plain = {"shell": shell, "provider": provider, "process": process}
    return {name: value for name, value in plain.items() if value}


def environment(
    env: Sequence[str], env_file: Sequence[str], environ: Mapping[str, str] | None = None
) -> "CallerEnvironment":
    """What the shell and the flags bring; ``--env`` is stronger than a file, the last one wins.

    A worker has no process settings to bring: its own are those that it was started with.

    Args:
        env: ``NAME=VALUE``, or ``NAME`` for the value that it has here.
        env_file: Names of files.
        environ: The shell's variables; None = this process's.

    Raises:
        UsageError: Names the flag, and the line of a file; never a value.
    """
    import msgspec  # noqa: PLC0415  see ``brought``

    from subagents.domain.run.caller_environment import (  # noqa: PLC0415
        CallerEnvironment,
        ProcessSettings,
    )

    here = os.environ if environ is None else environ
    given: dict[str, str] = {}
    for name in env_file:
        given.update(_of_file(name, here))
    for each in env:
        given.update([_variable(each, here)])
    settings = None if here.get("SUBAGENTS_RUN_ID") else process_settings.own()
    found = CallerEnvironment(
        shell=shell_variables(here),
        given=given,
        provider=provider_variables(here),
        process=None if settings is None else msgspec.convert(settings, ProcessSettings),
    )
    problem = found.problem()
    if problem is not None:
        raise UsageError(f"{ENV}: {problem}", details={"field": ENV})
    return found


def _variable(text: str, environ: Mapping[str, str]) -> tuple[str, str]:
    from subagents.domain.run.caller_environment import NAME  # noqa: PLC0415

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
    from pathlib import Path  # noqa: PLC0415  who has such a file

    from subagents.config.files.env_files import variables_of  # noqa: PLC0415
    from subagents.config.files.text_files import read_text  # noqa: PLC0415
    from subagents.domain.run.caller_environment import BYTES_MAX  # noqa: PLC0415

    where = f"{ENV_FILE} {name}"
    text = read_text(
        Path(name).expanduser(), bytes_max=BYTES_MAX, name=where, field=ENV_FILE, streams=True
    )
    return variables_of(text, environ, where=where)
