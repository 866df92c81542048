"""Which variables of a person's shell go with the runs it asks for, without being named."""

from collections.abc import Mapping
from typing import Final

SHELL_VARIABLES: Final = (
    "PATH", "VIRTUAL_ENV", "LANG", "LANGUAGE", "LC_*", "TERM", "COLORTERM", "NO_COLOR",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "all_proxy", "no_proxy", "SSH_AUTH_SOCK",
)  # fmt: skip
"""Which programs are found, which language and terminal they speak, and how they reach others."""


_NAMES: Final = frozenset(SHELL_VARIABLES)
_PREFIXES: Final = tuple(each[:-1] for each in SHELL_VARIABLES if each.endswith("*"))


def is_of_shell(name: str) -> bool:
    """Whether it is one of ``SHELL_VARIABLES``."""
    return name in _NAMES or name.startswith(_PREFIXES)


def shell_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """``SHELL_VARIABLES`` as they are where a person calls; none in a worker of ours.

    A worker has none to bring: it is an agent, and what it spawns has what the daemon gives.
    """
    if environ.get("SUBAGENTS_RUN_ID"):
        return {}
    found = {name: value for name, value in environ.items() if is_of_shell(name)}
    # What is not text cannot be sent; such a value of a PATH is nobody's.
    return {name: value for name, value in found.items() if _is_text(value)}


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
