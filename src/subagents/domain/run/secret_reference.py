"""``secret:NAME`` as the value of a variable: the secret's name, never the secret.

Whoever starts the attempt asks for the value then; no run, event or file holds it.
"""

import re
from collections.abc import Mapping
from typing import Final

from subagents.errors import UsageError

PREFIX: Final = "secret:"
NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
_NAME: Final = re.compile(NAME_PATTERN)


class OwnReference(str):
    """A reference that we made: in a variable of ours, other texts may be what a worker chose."""

    __slots__ = ()


def is_reference(value: object) -> bool:
    """Whether the value of a variable stands for a secret."""
    return isinstance(value, str) and value.startswith(PREFIX)


def referenced(values: Mapping[str, object]) -> dict[str, str]:
    """The names of secrets, by the variables that are to hold them.

    Raises:
        UsageError: A reference without a name that there can be; names the variable.
    """
    found = {}
    for variable, value in values.items():
        if isinstance(value, str) and is_reference(value):
            name = value.removeprefix(PREFIX)
            if not _NAME.fullmatch(name):
                raise UsageError(
                    f"{variable}: what follows `{PREFIX}` is no name of a secret",
                    hint="names have up to 64 letters, digits, `_`, `.` and `-`",
                )
            found[variable] = name
    return found
