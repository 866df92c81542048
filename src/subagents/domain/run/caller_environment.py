"""What a person's shell, or their program, brings along for the workers it asks for: variables, and
how processes run there.

The values of variables are in no event and no run: a file next to the run holds them, for its
retries and over restarts. The run itself knows their names.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from subagents.domain.run.secret_reference import referenced
from subagents.domain.run.shell_variables import is_login, is_of_provider, is_of_shell
from subagents.domain.run.values import Value
from subagents.errors import UsageError

OURS: Final = "SUBAGENTS_"
VARIABLES_MAX: Final = 1_000
BYTES_MAX: Final = 256 * 1024
"""The most that all names and values may take together; most systems give a process not much
more."""
VALUE_BYTES_MAX: Final = 128 * 1024 - 1
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The whole name of a variable."""


NICE: Final = range(-20, 20)
UMASK_MAX: Final = 0o777
PROCESSORS_MAX: Final = 8_192
LIMIT_MAX: Final = 2**63 - 1
LIMITS: Final = frozenset(
    (
        *("as", "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile"),
        *("nproc", "rss", "rtprio", "rttime", "sigpending", "stack"),
    )
)
"""Names of ``RLIMIT_…``."""


class ProcessSettings(Value, frozen=True):
    """How processes run where it was called; a worker runs like that as far as the system lets it.

    Not all of it can be granted: whoever started the daemon may be allowed less.
    """

    umask: int = 0o022
    """The permissions that new files do not get; 0 to 0o777."""
    nice: int = 0
    """-20 to 19; lower is sooner, and only for those who may."""
    processors: tuple[int, ...] = ()
    """Numbers of those it may use; () = all."""
    limits: dict[str, tuple[int, int]] = {}
    """Soft and hard limit by name (see ``LIMITS``), in the system's units; -1 = none."""

    @property
    def line(self) -> str:
        """As the launcher of shims reads it."""
        words = [f"umask={self.umask:04o}", f"priority={self.nice}"]
        if self.processors:
            words.append(f"processors={','.join(map(str, self.processors))}")
        words += [f"{name}={soft}:{hard}" for name, (soft, hard) in self.limits.items()]
        return " ".join(words)

    def problem(self) -> str | None:
        """Why no process can be run like that; None = one can."""
        if not 0 <= self.umask <= UMASK_MAX:
            return "umask must be 0 to 0o777"
        if self.nice not in NICE:
            return "nice must be -20 to 19"
        if not all(0 <= each < PROCESSORS_MAX for each in self.processors[: PROCESSORS_MAX + 1]):
            return f"processors are 0 to {PROCESSORS_MAX - 1}"
        if len(self.processors) > PROCESSORS_MAX:
            return f"there are more than {PROCESSORS_MAX} processors"
        for name, pair in self.limits.items():
            if name not in LIMITS:
                return f"there is no limit {name[:100]!r}"
            if not all(-1 <= each <= LIMIT_MAX for each in pair):
                return f"the limit {name} must be two numbers from -1 on"
        return None


class CallerEnvironment(Value, frozen=True):
    """What a caller brings."""

    shell: dict[str, str] = {}
    """The ``SHELL_VARIABLES`` that are set where it was called; for plain commands."""
    given: dict[str, str] = {}
    """Set by name for these runs, whatever their agent; stronger than everything configured."""
    provider: dict[str, str] = {}
    """The ``PROVIDER_VARIABLES`` that are set where it was called; for agent programs."""
    process: ProcessSettings | None = None
    """None = as the daemon's own."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all variables."""
        return tuple(sorted({*self.shell, *self.given, *self.provider}))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is brought."""
        return not (self.shell or self.given or self.provider) and self.process is None

    def problem(self) -> str | None:
        """Why no process can be started with these; None = it can."""
        # Checked here, with the variable's name: `execve` would fail for the whole worker, unnamed.
        bytes_total = 0
        for name, value in (*self.shell.items(), *self.given.items(), *self.provider.items()):
            if not NAME.fullmatch(name):
                return f"{name[:100]!r} is no name of a variable"
            if name.startswith(OURS):
                return f"{name[:100]} belongs to subagents and cannot be set for workers"
            size = len(value.encode("utf-8", "surrogateescape"))
            if "\0" in value or size > VALUE_BYTES_MAX:
                return f"the value of {name} is too long or holds a NUL character"
            bytes_total += len(name) + size + 2
        if len(self.shell) + len(self.given) + len(self.provider) > VARIABLES_MAX:
            return f"there are more than {VARIABLES_MAX} variables"
        if bytes_total > BYTES_MAX:
            return f"all of it is more than {BYTES_MAX:,} bytes"
        try:
            referenced(self.given)
        except UsageError as error:
            return f"{error.message}; {error.hint}"
        return None if self.process is None else self.process.problem()


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


def in_place_of(
    environment: CallerEnvironment,
    daemon: Mapping[str, str],
    configured: Mapping[str, object],
    passes: Callable[[str], bool],
) -> dict[str, str | None]:
    """What an agent program's worker gets of its caller's provider, in place of the daemon's.

    All or nothing: a key of one place must not go to the address of another. A caller who has no
    login in its variables leaves the daemon's, and so does an agent whose own section has one.

    ``passes`` says whether the runtime lets a variable through; all else is as in
    ``over_daemons``.
    """
    theirs = {name: value for name, value in environment.provider.items() if passes(name)}
    if not any(map(is_login, theirs)) or any(passes(n) and is_login(n) for n in configured):
        return {}
    lacking = dict.fromkeys(name for name in daemon if passes(name) and is_of_provider(name))
    found: dict[str, str | None] = {**lacking, **theirs}
    return {name: value for name, value in found.items() if name not in configured}


def require_usable(environment: CallerEnvironment) -> None:
    """Refuse variables that no worker can be given.

    Raises:
        UsageError: Names the variable.
    """
    problem = environment.problem()
    if problem is not None:
        raise UsageError(f"environment: {problem}", details={"field": "environment"})
