"""The contract flags of ``run`` and ``spawn``, whose order means something.

``--min-items 3`` belongs to the last ``--verify`` before it. A command-line parser that collects
options by name loses that order, so these flags are taken out of the arguments here, before the
parser sees the rest, and come back as one document. Pure: reads no file.

Source: 5-surfaces §2 (flags), 2-lifecycle §6 (contract).
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from subagents.errors import UsageError

VERIFY: Final = "--verify"
MODIFIERS: Final = {
    "--verify-json": "json",
    "--min-items": "min_items",
    "--required-keys": "required_keys",
    "--min-bytes": "min_bytes",
    "--schema": "schema_file",
    "--sha256": "sha256",
}
_WITHOUT_VALUE: Final = "--verify-json"
END_OF_OPTIONS: Final = "--"


class ArtifactFlags(msgspec.Struct, rename="camel", omit_defaults=True):
    """One ``--verify`` with its modifiers; ``schema_file`` is a path that nobody opened yet."""

    path: str
    json: bool = False
    min_items: int | None = None
    required_keys: tuple[str, ...] = ()
    min_bytes: int | None = None
    schema_file: str | None = None
    sha256: str | None = None


def extract(argv: Sequence[str]) -> tuple[list[str], list[ArtifactFlags]]:
    """Take the contract flags out of ``argv``; everything after ``--`` is the task's.

    ``--min-items``, ``--required-keys`` and ``--schema`` make a check a JSON check by themselves.

    Returns:
        The other arguments in their order, and one entry for each ``--verify``.

    Raises:
        UsageError: A modifier stands before any ``--verify``, a value is missing or no number.
            Names the flag.
    """
    rest: list[str] = []
    artifacts: list[ArtifactFlags] = []
    arguments = iter(argv)
    for argument in arguments:
        if argument == END_OF_OPTIONS:
            rest += [argument, *arguments]
            break
        flag, has_value, value = argument.partition("=")
        if flag == VERIFY:
            path = value if has_value else _next_value(flag, arguments)
            artifacts.append(ArtifactFlags(path=path))
        elif flag not in MODIFIERS:
            rest.append(argument)
        elif not artifacts:
            raise UsageError(
                f"{flag} describes the file of a --verify before it, and there is none",
                hint=f"write: --verify out.json {flag} …",
                details={"field": flag},
            )
        elif flag == _WITHOUT_VALUE:
            if has_value:
                raise UsageError(f"{flag} takes no value", details={"field": flag})
            artifacts[-1].json = True
        else:
            _modify(artifacts[-1], flag, value if has_value else _next_value(flag, arguments))
    return rest, artifacts


def _next_value(flag: str, arguments: Iterator[str]) -> str:
    value = next(arguments, None)
    if value is None or value == END_OF_OPTIONS:
        raise UsageError(f"{flag} needs a value", details={"field": flag})
    return value


def _modify(artifact: ArtifactFlags, flag: str, value: str) -> None:
    name = MODIFIERS[flag]
    if getattr(artifact, name):
        raise UsageError(
            f"{flag} stands twice after --verify {artifact.path}", details={"field": flag}
        )
    match name:
        case "min_items" | "min_bytes":
            if not (value.isascii() and value.isdigit() and len(value) <= 15):
                raise UsageError(
                    f"{flag} must be a whole number, 0 or more, not {value!r}",
                    details={"field": flag},
                )
            setattr(artifact, name, int(value))
        case "required_keys":
            keys = tuple(key.strip() for key in value.split(","))
            if not all(keys):
                raise UsageError(
                    f"{flag} must be keys separated by commas, not {value!r}",
                    details={"field": flag},
                )
            artifact.required_keys = keys
        case _:
            if not value:
                raise UsageError(f"{flag} must not be empty", details={"field": flag})
            setattr(artifact, name, value)
    if name in {"min_items", "required_keys"}:
        artifact.json = True
