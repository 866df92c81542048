"""The contract flags of every command that spawns, whose order means something.

``--min-items 3`` belongs to the last ``--verify`` before it. A command-line parser that collects
options by name loses that order, so these flags are taken out of the arguments here, before the
parser sees the rest, and come back as one document. Pure: reads no file.
"""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from subagents.cli.flag_table import CHECKS
from subagents.errors import UsageError

END_OF_OPTIONS: Final = "--"
DIGITS_MAX: Final = 15

Check: TypeAlias = dict[str, object]
"""One ``--verify`` with its modifiers, named as in ``Artifact``; ``schema`` is the name of a file
that nobody opened yet."""


def kebab(name: str) -> str:
    """``retryCount`` → ``retry-count``."""
    return "".join(f"-{each.lower()}" if each.isupper() else each for each in name)


def flag_of(name: str) -> str:
    """The flag of a parameter of ``Artifact``."""
    return _NAMED.get(name, f"--{kebab(name)}")


VERIFY: Final = "--verify"
EXISTING: Final = "--verify-existing"
_NAMED: Final = {
    "path": VERIFY,
    "json": "--verify-json",
    "junit": "--verify-junit",
    "regex": "--verify-regex",
    "fresh": EXISTING,
}
_IMPLIES: Final = {"minItems": "json", "requiredKeys": "json", "minTests": "junit"}


def extract(argv: Sequence[str]) -> tuple[list[str], list[Check]]:
    """Take the contract flags out of ``argv``; everything after ``--`` is the task's.

    ``--verify-existing`` before any ``--verify`` holds for all. ``--min-items``,
    ``--required-keys`` and ``--schema`` make a check a JSON check by themselves, ``--min-tests``
    one of JUnit XML.

    Returns:
        The other arguments in their order, and one entry for each ``--verify``.

    Raises:
        UsageError: A modifier stands before any ``--verify``, a value is missing or no number.
            Names the flag.
    """
    rest: list[str] = []
    checks: list[Check] = []
    all_of_them: Check = {}
    arguments = iter(argv)
    for argument in arguments:
        if argument == END_OF_OPTIONS:
            rest += [argument, *arguments]
            break
        flag, has_value, value = argument.partition("=")
        if flag == VERIFY:
            path = value if has_value else _next_value(flag, arguments)
            checks.append({"path": path, **all_of_them})
        elif flag not in CHECKS:
            rest.append(argument)
        elif flag == EXISTING and not checks and not has_value:
            all_of_them["fresh"] = False
        elif not checks:
            raise UsageError(
                f"{flag} describes the file of a {VERIFY} before it, and there is none",
                hint=f"write: {VERIFY} out.json {flag} …",
                details={"field": flag},
            )
        elif CHECKS[flag][1] == "set":
            if has_value:
                raise UsageError(f"{flag} takes no value", details={"field": flag})
            checks[-1][CHECKS[flag][0]] = flag != EXISTING
        else:
            _modify(checks[-1], flag, value if has_value else _next_value(flag, arguments))
    return rest, checks


def _next_value(flag: str, arguments: Iterator[str]) -> str:
    value = next(arguments, None)
    if value is None or value == END_OF_OPTIONS:
        raise UsageError(f"{flag} needs a value", details={"field": flag})
    return value


def _modify(check: Check, flag: str, value: str) -> None:
    name, kind = CHECKS[flag]
    if name in check:
        raise UsageError(
            f"{flag} stands twice after {VERIFY} {check['path']}", details={"field": flag}
        )
    check[name] = _parsed(kind, flag, value)
    if name in _IMPLIES:
        check[_IMPLIES[name]] = True


def _parsed(kind: str, flag: str, value: str) -> object:
    if kind == "int":
        if not (value.isascii() and value.isdigit() and len(value) <= DIGITS_MAX):
            raise UsageError(
                f"{flag} must be a whole number, 0 or more, not {value!r}", details={"field": flag}
            )
        return int(value)
    if kind == "texts":
        keys = [key.strip() for key in value.split(",")]
        if not all(keys):
            raise UsageError(
                f"{flag} must be keys separated by commas, not {value!r}", details={"field": flag}
            )
        return keys
    if not value:
        raise UsageError(f"{flag} must not be empty", details={"field": flag})
    return value
