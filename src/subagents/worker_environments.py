"""What a worker finds in its environment, and what its contract's commands do.

From its caller, the agent's section, its secrets and the extensions; and what lets it talk back.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec

from subagents import extension
from subagents.config.paths import Paths
from subagents.config.programs.program_catalog import login_variables
from subagents.config.settings import Settings
from subagents.domain.redaction.own_secrets import own_secrets
from subagents.domain.rules.provider_limits import Provider
from subagents.domain.run.caller_environment import CallerEnvironment, in_place_of, over_daemons
from subagents.domain.run.run import Run
from subagents.domain.run.secret_reference import OwnReference, is_reference
from subagents.domain.run.shell_variables import STARTED_BY
from subagents.domain.run.values import RunId
from subagents.errors import UsageError
from subagents.ports import LOGIN_NOTE, EnvironmentLog, OffLoop
from subagents.runtimes.process.environment import is_on_path
from subagents.runtimes.process.launcher import SETTINGS_VARIABLE
from subagents.runtimes.process.secret_values import SecretValues
from subagents.runtimes.provider_keys import ProviderKeys

_STARTED_S: Final = time.time()


class WorkerEnvironments:
    """The environments of all runs of one daemon.

    Args:
        paths: The home.
        settings_now: Gives the daemon's settings as they are when it is called.
        brought: What callers brought for their runs.
        providers: Which variables workers use with their providers.
        asking: Threads on which programs are asked for secrets.
        environ: The daemon's environment.
    """

    def __init__(
        self,
        *,
        paths: Paths,
        settings_now: Callable[[], Settings],
        brought: EnvironmentLog,
        providers: ProviderKeys,
        asking: OffLoop,
        environ: Mapping[str, str],
    ) -> None:
        self._paths = paths
        self._settings_now = settings_now
        self._brought = brought
        self._providers = providers
        self._environ = environ
        self.secrets = SecretValues(
            lambda: settings_now().secrets,
            lambda run: {
                **configured_env(run),
                **self._readable(run).given,
                **_references(self._added(run, lambda _: None)),
            },
            environ,
            asking,
        )
        """The secrets of all runs, once they were asked for."""

    def of_worker(self, run: Run, run_of: Callable[[RunId], Run | None]) -> dict[str, str | None]:
        """What its next worker gets besides what every program has; None = not set, whatever the
        daemon has.

        Args:
            run: The run.
            run_of: An open run by its id.

        Raises:
            UsageError: What its caller brought is gone; without it the run would be another one.
        """
        found = self._own(run, self._brought_for(run))
        added = self._added(run, run_of)
        return found | added | self.secrets.filled(run, _references(added))

    def of_contract(self, run: Run) -> Mapping[str, str]:
        """What its contract's commands get of the caller's own.

        Raises:
            UsageError: As ``of_worker``.
        """
        brought = self._brought_for(run)
        return self.secrets.filled(run, {**brought.shell, **brought.given})

    def secrets_of(self, run: Run) -> tuple[str, ...]:
        """What its worker must not repeat."""
        brought = self._readable(run)
        return own_secrets(
            run.resolved.options,
            self._environ,
            passes=self._providers.passed_to_all(run.resolved.runtime),
            given={**brought.provider, **brought.given},
            values=self.secrets.known(run),
        )

    def provider_of(self, run: Run) -> Provider:
        """The provider whose limits its attempts share, by the credentials that its worker uses."""
        return self._providers.provider_of(run, self._provider_environ(run))

    def _own(self, run: Run, brought: CallerEnvironment) -> dict[str, str | None]:
        """What it gets from its caller, its secrets, and what lets it talk back: the socket, and a
        PATH on which our command is found.
        """
        configured, environ = configured_env(run), self._environ
        asked_for = {name: value for name, value in configured.items() if is_reference(value)}
        passes = partial(self._providers.passes, run.resolved)
        # The later ones win: of the same name, a secret that was asked for replaces its reference.
        env = {
            **over_daemons(brought, environ, configured),
            **in_place_of(brought, environ, configured, passes),
            **self.secrets.filled(run, {**asked_for, **brought.given}),
        }
        if "PATH" not in configured and "PATH" not in brought.given:
            path = env.get("PATH") or environ.get("PATH", os.defpath)
            # A worker asks and reports by our command, which a PATH of cron or pipx may not have.
            own = os.path.dirname(sys.executable)  # noqa: PTH120  # hot: once per start
            if not is_on_path("subagents", path) and os.access(f"{own}/subagents", os.X_OK):
                env["PATH"] = f"{path}{os.pathsep}{own}"
        note = login_note(run, {**environ, **configured, **brought.given, **env})
        if note:
            env[LOGIN_NOTE] = note
        if brought.process is not None:
            env[SETTINGS_VARIABLE] = brought.process.line
        return {**env, "SUBAGENTS_SOCKET": str(self._paths.socket)}

    def _added(self, run: Run, run_of: Callable[[RunId], Run | None]) -> dict[str, str]:
        """What extensions add; some of it refers to secrets."""
        found = extension.made("worker_env", run, run_of, self._settings_now())
        return {name: value for _, more in found for name, value in more.items()}

    def _brought_for(self, run: Run) -> CallerEnvironment:
        if run.resolved.caller_env is None:
            return CallerEnvironment()
        try:
            return self._brought.read(run.id)
        except (OSError, msgspec.DecodeError) as error:
            raise UsageError(
                f"the variables that its caller gave cannot be read: {error}"
            ) from error

    def _provider_environ(self, run: Run) -> Mapping[str, str]:
        """The daemon's variables, with those in their place by which this run's worker asks."""
        brought = self._readable(run)
        if not brought.provider:
            return self._environ
        passes = partial(self._providers.passes, run.resolved)
        changed = in_place_of(brought, self._environ, configured_env(run), passes)
        kept = {name: value for name, value in self._environ.items() if name not in changed}
        return kept | {name: value for name, value in changed.items() if value is not None}

    def _readable(self, run: Run) -> CallerEnvironment:
        """What its caller brought; nothing where that cannot be read: no worker is given it."""
        try:
            return self._brought_for(run)
        except UsageError:
            return CallerEnvironment()


def _references(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if isinstance(value, OwnReference)}


def configured_env(run: Run) -> dict[str, str]:
    """``env`` of the run's agent, as it was at the spawn."""
    configured = run.resolved.options.get("env")
    return dict(configured) if isinstance(configured, dict) else {}


def login_note(run: Run, environ: Mapping[str, object]) -> str:
    """Why nobody may be logged in to the run's program: no variable of its environment says so.

    Its program may find another login; this is for the error where it does not.
    """
    names = login_variables(run.resolved.runtime, run.resolved.options)
    if not names or any(environ.get(name) for name in names):
        return ""
    by = f" by {starter}" if (starter := os.environ.get(STARTED_BY)) else ""
    at = time.strftime("%H:%M", time.localtime(_STARTED_S))
    return (
        f"this daemon was started{by} at {at} without {names[0]}, and whoever asked for this run "
        "brought none: ask for it from a shell that has it, or restart the daemon there "
        "(subagents down --yes && subagents up)"
    )
