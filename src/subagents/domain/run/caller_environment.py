"""The variables that a person's shell, or their program, brings along for the workers it asks for.

Their values are in no event and no run: a file beside the run holds them, for its retries and over
restarts. The run itself knows their names.
"""

import re
from collections.abc import Mapping
from typing import Final

from subagents.domain.run.secret_reference import referenced
from subagents.domain.run.shell_variables import is_of_shell
from subagents.domain.run.values import Value
from subagents.errors import UsageError

OURS: Final = "SUBAGENTS_"
VARIABLES_MAX: Final = 1_000
BYTES_MAX: Final = 256 * 1024
"""Of all names and values together; a process is not given much more by most systems."""
VALUE_BYTES_MAX: Final = 128 * 1024 - 1
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class CallerEnvironment(Value, frozen=True):
    """What a caller brings."""

    shell: dict[str, str] = {}
    """Of ``SHELL_VARIABLES``, those that are set where it was called; for plain commands."""
    given: dict[str, str] = {}
    """Set by name for these runs, whatever their agent; stronger than everything configured."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted({*self.shell, *self.given}))

    def problem(self) -> str | None:
        """Why no process can be started with these; None = it can."""
        bytes_total = 0
        for name, value in (*self.shell.items(), *self.given.items()):
            if not _NAME.fullmatch(name):
                return f"{name[:100]!r} is no name of a variable"
            if name.startswith(OURS):
                return f"{name[:100]} belongs to subagents and cannot be set for workers"
            size = len(value.encode("utf-8", "surrogateescape"))
            if "\0" in value or size > VALUE_BYTES_MAX:
                return f"the value of {name} is too long or holds a NUL character"
            bytes_total += len(name) + size + 2
        if len(self.shell) + len(self.given) > VARIABLES_MAX:
            return f"there are more than {VARIABLES_MAX} variables"
        if bytes_total > BYTES_MAX:
            return f"all of it is more than {BYTES_MAX:,} bytes"
        try:
            referenced(self.given)
        except UsageError as error:
            return f"{error.message}; {error.hint}"
        return None


def over_daemons(
    environment: CallerEnvironment, daemon: Mapping[str, str], configured: Mapping[str, object]
) -> dict[str, str | None]:
    """What a plain command's worker gets of the shell, in place of what the daemon has.

    Args:
        environment: Of whoever called.
        daemon: The daemon's variables.
        configured: The agent's own ``env``, which is stronger than the shell's.

    Returns:
        Values by name; None = what the daemon has and the shell lacks: not set for the worker,
        either.
    """
    if not environment.shell:
        return {}
    lacking = dict.fromkeys(filter(is_of_shell, daemon))
    found: dict[str, str | None] = {**lacking, **environment.shell}
    return {name: value for name, value in found.items() if name not in configured}


def require_usable(environment: CallerEnvironment) -> None:
    """Refuse variables that no worker can be given.

    Raises:
        UsageError: Names the variable.
    """
    problem = environment.problem()
    if problem is not None:
        raise UsageError(f"environment: {problem}", details={"field": "environment"})
