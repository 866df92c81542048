"""Values of ``secret:NAME`` variables: asked for when an attempt begins, kept in memory alone.

A secret comes from the command that ``[secrets.NAME]`` of the user's own configuration names, else
from the system's keyring, which is asked in a process of its own: some of its backends wait for a
person to unlock them, and one that hangs is killed.

A daemon that takes over a live worker reads the values from that worker's own environment, so that
they are redacted as before; where that is not possible, it asks for them again.
"""

import contextlib
import importlib.util
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from subagents import process_group
from subagents.config.settings import SecretSource
from subagents.domain.redaction.own_secrets import OWN_CHARS_MIN
from subagents.domain.redaction.redact import redact
from subagents.domain.run.caller_environment import VALUE_BYTES_MAX
from subagents.domain.run.run import Run
from subagents.domain.run.secret_reference import referenced
from subagents.domain.run.values import RunId
from subagents.errors import RuntimeUnavailable, SubagentsError, UsageError
from subagents.installation import extra_command
from subagents.ports import OffLoop
from subagents.text import one_line

log = logging.getLogger(__name__)

SERVICE: Final = "subagents"
"""What the secrets are kept under in the keyring."""
ANSWER_S_MAX: Final = 30.0
"""Long enough for a person to type a passphrase."""
RUNS_KEPT: Final = 10_000
COMPLAINT_CHARS: Final = 120


class SecretValues:
    """See ``ports.WorkerSecrets``.

    Args:
        sources: ``[secrets]`` of the user's own configuration, as it is now.
        variables: All variables of a run's workers that may refer to secrets.
        environ: The environment of the commands.
        off_loop: Threads for this alone: a command may take ``ANSWER_S_MAX`` seconds.
    """

    def __init__(
        self,
        sources: Callable[[], Mapping[str, SecretSource]],
        variables: Callable[[Run], Mapping[str, object]],
        environ: Mapping[str, str],
        off_loop: OffLoop,
    ) -> None:
        self._sources = sources
        self._variables = variables
        self._environ = environ
        self._off_loop = off_loop
        self._values: dict[RunId, dict[str, str]] = {}
        self._known: dict[RunId, tuple[str, ...]] = {}

    async def load(self, run: Run) -> None:
        """See ``ports.WorkerSecrets.load``."""
        names = sorted(set(referenced(self._variables(run)).values()))
        values = {
            name: await self._off_loop(partial(ask, name, self._sources().get(name), self._environ))
            for name in names
        }
        if values:
            self._values[run.id] = values
            self._remember(run.id, values.values())

    async def recall(self, run: Run) -> None:
        """See ``ports.WorkerSecrets.recall``."""
        try:
            wanted = referenced(self._variables(run))
            if not wanted or run.id in self._known:
                return
            pid = run.attempt.turn.pid
            living = {} if pid is None else await self._off_loop(partial(_environment_of, pid))
            found = [living[variable] for variable in wanted if living.get(variable)]
            if len(found) == len(wanted):
                self._remember(run.id, found)
            else:
                await self.load(run)
        except SubagentsError as error:
            log.warning("%s: its output is recorded as it comes: %s", run.id, error.message)

    def filled(self, run: Run, variables: Mapping[str, str]) -> dict[str, str]:
        """The variables with values in place of references.

        Raises:
            UsageError: One was not loaded.
        """
        values = self._values.get(run.id, {})
        found = dict(variables)
        for variable, name in referenced(variables).items():
            if name not in values:
                raise UsageError(f'secret "{name}" is not known (any more)')
            found[variable] = values[name]
        return found

    def known(self, run: Run) -> tuple[str, ...]:
        """Every value that an attempt of the run was given, to be redacted in what it writes."""
        return self._known.get(run.id, ())

    def _remember(self, run_id: RunId, values: Iterable[str]) -> None:
        # Also those of earlier attempts: their output may still be read, and shown.
        known = {*self._known.pop(run_id, ()), *values}
        self._known[run_id] = tuple(sorted(known))
        while len(self._known) > RUNS_KEPT:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._values.pop(oldest, None)


def ask(name: str, source: SecretSource | None, environ: Mapping[str, str]) -> str:
    """The secret's value. Blocking, for ``ANSWER_S_MAX`` seconds at most.

    Raises:
        UsageError: There is no such secret, or its value is none that can be used.
        RuntimeUnavailable: The command or the keyring did not answer.
    """
    argv = keyring_command("get", name) if source is None else source.command
    try:
        done = process_group.run(argv, timeout_s=ANSWER_S_MAX, env=environ)
    except subprocess.TimeoutExpired as error:
        raise RuntimeUnavailable(
            f'secret "{name}": {_asked(source)} did not answer within {ANSWER_S_MAX:.0f} s; '
            f"unlock it, then try it: subagents secret {name} --check"
        ) from error
    except OSError as error:
        raise UsageError(
            f'secret "{name}": {_asked(source)} cannot be started: {error.strerror}; '
            f"correct secrets.{name}.command in your subagents.toml"
        ) from error
    if done.returncode != 0:
        words = last_words(done.stderr)
        if source is None:
            problem = (
                f"cannot be read from the keyring{words}" if words else "is not in the keyring"
            )
            raise UsageError(f'secret "{name}" {problem}; {_ways_out(name)}')
        raise RuntimeUnavailable(
            f'secret "{name}": {_asked(source)} ended with exit code {done.returncode}{words}; '
            f"try it in a terminal: subagents secret {name} --check"
        )
    return _usable(name, done.stdout)


def keyring_command(action: str, name: str) -> tuple[str, ...]:
    """What reads (``get``), stores (``set``) or deletes (``del``) it in the system's keyring.

    Raises:
        UsageError: The extra is not installed.
    """
    if importlib.util.find_spec("keyring") is None:
        raise UsageError(
            f'secret "{name}": no command is configured for it, and subagents[keyring] is not '
            f"installed; {_ways_out(name, has_keyring=False)}"
        )
    # -I: no file in a working directory stands in for a module.
    return (sys.executable, "-I", "-m", "keyring", action, SERVICE, name)


def last_words(stderr: bytes) -> str:
    """The last line of what a program wrote to stderr, behind a colon; "" = it wrote nothing."""
    lines = redact(stderr.decode("utf-8", "replace")).strip().splitlines()
    return f": {one_line(lines[-1], COMPLAINT_CHARS)}" if lines else ""


def _ways_out(name: str, *, has_keyring: bool = True) -> str:
    keyring = f"store it: subagents secret {name}" if has_keyring else extra_command("keyring")
    return f'{keyring}, or set secrets.{name}.command = ["pass", "show", "…"] in subagents.toml'


def _asked(source: SecretSource | None) -> str:
    return "the keyring" if source is None else f"its command ({source.command[0]})"


def _usable(name: str, answer: bytes) -> str:
    value = answer.removesuffix(b"\n").removesuffix(b"\r")
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f'secret "{name}": its value is no text in UTF-8') from error
    if b"\0" in value or len(value) > VALUE_BYTES_MAX:
        raise UsageError(f'secret "{name}": its value is too long or holds a NUL character')
    if len(text.strip()) < OWN_CHARS_MIN:
        raise UsageError(
            f'secret "{name}": its value has fewer than {OWN_CHARS_MIN} characters, too few to '
            "be recognised and redacted; make it longer, or give it as an ordinary variable"
        )
    return text


def _environment_of(pid: int) -> dict[str, str]:
    """The variables of a process; none where that cannot be seen."""
    with contextlib.suppress(OSError):
        data = Path(f"/proc/{pid}/environ").read_bytes()
        pairs = (os.fsdecode(each).partition("=") for each in data.split(b"\0"))
        return {name: value for name, _, value in pairs if name}
    return {}
