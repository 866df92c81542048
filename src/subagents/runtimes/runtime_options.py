"""Reads an agent's runtime section; every runtime says the same of the same mistake."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from subagents.errors import ConfigError
from subagents.runtimes.process.environment import OURS

T = TypeVar("T", bound=msgspec.Struct)


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
    known = form.__struct_fields__
    for key in options:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            meant = f"; did you mean `{near[0]}`?" if near else f"; known are {', '.join(known)}"
            raise ConfigError(f'runtime "{runtime}" knows no option `{key}`{meant}{unknown}')
    try:
        return msgspec.convert(dict(options), form)
    except msgspec.ValidationError as error:
        raise ConfigError(f'options of runtime "{runtime}": {error}{hint}') from error


def check_names(names: Iterable[str]) -> None:
    """Refuse variables that are ours to set.

    Raises:
        ConfigError: Names the first.
    """
    for name in names:
        if name.startswith(OURS):
            raise ConfigError(f"`{name}`: variables {OURS}* are set by subagents; remove it")
