"""The runtime ``command``: any program is a worker; it needs to know nothing of us.

Options (``[agents.<id>]``):

``command``   argv, required. ``{task}``, ``{prompt}`` and ``{system}`` in any item but the first
              become the task, the composed prompt or what an agent must know of its role, within
              that one argument; no shell of ours is in between.
``stdin``     ``none`` (default), ``task`` or ``prompt``. With ``none`` the worker reads the results
              of the runs it depends on, when it asked for them, so that ``sort | uniq -c`` after
              another run works like a pipe; else nothing.
``env``       Variables set for the worker.
``pass_env``  Names, or prefixes ``NAME_*``, let through from the daemon's environment.

A worker's environment is an allow list: ``PASSED`` and ``pass_env`` from the daemon, then ``env``,
then what the engine adds, then ``SUBAGENTS_RUN_ID``, ``SUBAGENTS_ATTEMPT``,
``SUBAGENTS_ATTEMPT_NUMBER``, ``SUBAGENTS_ATTEMPTS_DIR``, ``SUBAGENTS_SESSION_KEY``,
``SUBAGENTS_AGENT_ID``, ``SUBAGENTS_TASK_FILE``, ``SUBAGENTS_PROMPT_FILE``,
``SUBAGENTS_SYSTEM_PROMPT_FILE``, ``SUBAGENTS_TASK`` (up to 100 KiB) and
``SUBAGENTS_RETRY_REASON`` (of a retry). Nothing else of ours reaches it.
"""

import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from subagents.domain.run.access import Access, AccessLevel, Keeper
from subagents.domain.run.signals import Signal
from subagents.domain.run.spec import Abilities
from subagents.domain.run.values import AttemptId, replace
from subagents.domain.run.worker_output import OutputBatch
from subagents.errors import ConfigError, RuntimeUnavailable, UsageError
from subagents.ports import (
    AttemptRef,
    Bound,
    Clock,
    Launch,
    LongResult,
    OffLoop,
    Origin,
    StartedInfo,
)
from subagents.runtimes.process import sandbox, seclusion
from subagents.runtimes.process.environment import (
    ARGUMENT_BYTES_MAX,
    as_bytes,
    attempt_variables,
    check_environment,
    passed_variables,
    program,
)
from subagents.runtimes.process.shim import (
    SETUP,
    AttemptDirectory,
    PlainReader,
    ProcessAttempts,
    ShimCommand,
)
from subagents.runtimes.runtime_options import WorkerOptions, parsed

_PLACEHOLDER: Final = re.compile(r"\{(task|prompt|system)\}")

SYSTEM_FILE: Final = "system"
"""The name of the system prompt's file in the attempt's directory."""
Stdin = Literal["none", "task", "prompt"]


class CommandOptions(WorkerOptions, frozen=True, kw_only=True):
    """``[agents.<id>]`` of an agent with ``runtime = "command"``."""

    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    stdin: Stdin = "none"


class CommandRuntime:
    """Runs a program per attempt; takes what ``ProcessAttempts`` takes."""

    def __init__(
        self, attempts_root: Path, clock: Clock, off_loop: OffLoop, *, result_bytes_max: int = 0
    ) -> None:
        self._attempts = ProcessAttempts(
            attempts_root, clock, off_loop, result_bytes_max=result_bytes_max
        )

    @property
    def name(self) -> str:
        return "command"

    @property
    def abilities(self) -> Abilities:
        return Abilities(survives_daemon=True, usage=True, freeze=True, isolate=True)

    def check(self, options: Mapping[str, object]) -> None:
        """Refuse options with which no attempt could ever start.

        Whether the program exists is looked up at the start: it may be installed until then.

        Raises:
            ConfigError: Names the key and what is allowed.
        """
        parse_options(options)

    def check_scope(
        self, options: Mapping[str, object], tools: tuple[str, ...] | None, deny: tuple[str, ...]
    ) -> None:
        """Never asked: a program cannot be kept from anything (``scope_tools`` is false)."""

    def access_of(
        self, options: Mapping[str, object], configured: AccessLevel | None
    ) -> AccessLevel:
        """See ``ports.Bounded.access_of``."""
        del options
        return configured or AccessLevel.FULL

    def bound(self, options: Mapping[str, object], access: Access) -> Bound:
        """See ``ports.Bounded.bound``: bubblewrap keeps any program, and nothing else does.

        Raises:
            Forbidden: There is none.
            UsageError: It would see all of its user's files from where it works.
        """
        del options
        missing = sandbox.problem()
        if missing is not None:
            raise sandbox.unkept(access, missing)
        if access.sees is not None:
            seclusion.check(access.sees, self._attempts.root.parent)
        return Bound(replace(access, kept_by=Keeper.BUBBLEWRAP))

    def unkept_limits(self, limits: Iterable[str]) -> str | None:
        """See ``ports.Limited.unkept_limits``."""
        return self._attempts.unkept_limits(limits)

    def marker(self, ref: AttemptRef) -> Mapping[str, str]:
        """See ``ports.Runtime.marker``."""
        return self._attempts.marker(ref.attempt_id).variables()

    async def start(self, launch: Launch) -> StartedInfo:
        """Start the program, or adopt the attempt when it was started already under this id.

        Raises:
            RuntimeUnavailable: Nothing was started; can be repeated.
            UsageError: The program or working directory is missing, or the task does not fit into
                an argument; nothing was started.
        """
        directory = AttemptDirectory(self._attempts.root, launch.run_id, launch.number)
        return await self._attempts.start(directory, partial(self._command, launch, directory))

    async def discard(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int], ended: bool = False
    ) -> None:
        """Discard output that is kept elsewhere; see ``ports.Runtime.discard``.

        Raises:
            RuntimeUnavailable: Not all could be discarded; repeat it.
        """
        directory = self._attempts.directory(ref)
        await self._attempts.discard(directory, cursor=cursor, positions=positions, ended=ended)

    def watch(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int]
    ) -> AsyncIterator[tuple[Signal | OutputBatch | LongResult, int]]:
        """See ``ports.Runtime.watch``; the cursor is a byte offset in the standard output.

        Positions are byte offsets, too: ``out`` and ``err``.
        """
        directory = self._attempts.directory(ref)
        output = PlainReader(ref.attempt_id, directory, cursor=cursor, positions=positions)
        return self._attempts.watch(ref.attempt_id, directory, output)

    async def stop(self, ref: AttemptRef, *, grace_s: float) -> None:
        """TERM, ``grace_s`` seconds, KILL, for every process of the attempt.

        Raises:
            RuntimeUnavailable: Some survived KILL for ten seconds; repeat it.
        """
        await self._attempts.stop(ref.attempt_id, self._attempts.directory(ref), grace_s=grace_s)

    async def steer(self, ref: AttemptRef, message: str, *, key: str) -> None:  # noqa: ARG002
        """Always raises RuntimeUnavailable: a program reads no messages while it works."""
        raise RuntimeUnavailable(f'runtime "command" cannot steer attempt {ref.attempt_id}')

    async def interrupt(self, ref: AttemptRef, *, key: str) -> None:  # noqa: ARG002
        """Always raises RuntimeUnavailable: a program has no turns."""
        raise RuntimeUnavailable(f'runtime "command" cannot interrupt attempt {ref.attempt_id}')

    async def resume(
        self,
        ref: AttemptRef,
        message: str,  # noqa: ARG002
        *,
        env: Mapping[str, str],  # noqa: ARG002
    ) -> StartedInfo:
        """Always raises RuntimeUnavailable: a program has no session to resume."""
        raise RuntimeUnavailable(f'runtime "command" cannot resume attempt {ref.attempt_id}')

    async def freeze(self, ref: AttemptRef) -> None:
        """See ``ports.Freezable``: SIGSTOP."""
        await self._attempts.freeze(ref.attempt_id, self._attempts.directory(ref))

    async def thaw(self, ref: AttemptRef) -> None:
        """See ``ports.Freezable``: SIGCONT."""
        await self._attempts.thaw(ref.attempt_id, self._attempts.directory(ref))

    async def tidy(self, ref: AttemptRef) -> None:
        """See ``ports.Tidied``."""
        await self._attempts.tidy(self._attempts.directory(ref))

    async def forget(self, ref: AttemptRef) -> None:
        """Delete the attempt's directory with its output. Idempotent."""
        await self._attempts.forget(self._attempts.directory(ref))

    async def orphans(
        self, known: Callable[[], Iterable[AttemptId]]
    ) -> list[tuple[AttemptId, int]]:
        """Live workers of attempts that are not known; see ``ProcessAttempts.orphans``."""
        return await self._attempts.orphans(known)

    def origin_of(self, pid: int) -> Origin | None:
        """The attempt of this installation that the process belongs to, if any."""
        return self._attempts.origin_of(pid)

    def _command(self, launch: Launch, directory: AttemptDirectory) -> ShimCommand:
        options = parse_options(launch.options)
        sandbox.check_place(launch.cwd, launch.access)
        env = worker_env(options, launch, directory, os.environ)
        env |= self._attempts.marker(launch.attempt_id).variables()
        argv = worker_argv(options, launch, path=env.get("PATH", os.defpath))
        check_environment(env)
        access = launch.access
        if access is not None and access.kept_by is Keeper.BUBBLEWRAP:
            argv = list(self._in_sandbox(argv, launch, access, env, directory))
        stdin = {
            "none": as_text_file(launch.previous_results),
            "task": launch.task,
            "prompt": launch.prompt,
        }
        files = {"task": launch.task, "prompt": launch.prompt, SYSTEM_FILE: launch.system_prompt}
        files |= {"stdin": text} if (text := stdin[options.stdin]) else {}
        files |= {SETUP: launch.setup} if launch.setup else {}
        return ShimCommand(
            argv=tuple(map(as_bytes, argv)),
            env={as_bytes(name): as_bytes(value) for name, value in env.items()},
            cwd=as_bytes(launch.cwd),
            files={name: as_bytes(text) for name, text in files.items()},
            limits={str(key): most for key, most in options.limits.items()},
        )

    def _in_sandbox(
        self,
        argv: list[str],
        launch: Launch,
        access: Access,
        env: Mapping[str, str],
        directory: AttemptDirectory,
    ) -> tuple[str, ...]:
        state_dir = self._attempts.root.parent
        hold = partial(self._attempts.hold, directory)
        if access.sees is not None:
            view = seclusion.of_worker(
                env,
                search=(os.environ.get("PATH", os.defpath), launch.env.get("PATH", "")),
                socket=launch.env.get("SUBAGENTS_SOCKET"),
                attempt=directory.path,
                state_dir=state_dir,
            )
            return sandbox.secluded(
                argv,
                cwd=launch.cwd,
                access=access,
                seclusion=view,
                state_dir=state_dir,
                hold=hold,
            )
        places = sandbox.places_of(env, state_dir=state_dir)
        return sandbox.wrapped(
            argv,
            cwd=launch.cwd,
            access=access,
            places=places,
            hold=hold,
            is_offline=not access.network,
        )


def as_text_file(text: str) -> str:
    """With a final newline, as programs that count or read lines expect."""
    return f"{text}\n" if text and not text.endswith("\n") else text


def parse_options(options: Mapping[str, object]) -> CommandOptions:
    """Return the options of a ``command`` agent.

    Raises:
        ConfigError: Names the key and what is allowed.
    """
    found = parsed(options, CommandOptions, runtime="command", hint=_hint(options))
    if not found.command[0] or _PLACEHOLDER.search(found.command[0]):
        raise ConfigError(
            "`command` must begin with a program; a task may be an argument, not the program"
        )
    return found


def _hint(options: Mapping[str, object]) -> str:
    if not options.get("command"):
        return '; `command` is a list of words, for example ["bash", "-c", "{task}"]'
    if isinstance(options["command"], str):
        return '; `command` is a list of words; for a shell line use ["bash", "-c", "…"]'
    if options.get("stdin") not in {None, "none", "task", "prompt"}:
        return '; `stdin` is "none", "task" or "prompt"'
    return "; variable names have letters, digits and _; in `pass_env` also a last *"


def worker_env(
    options: CommandOptions, launch: Launch, directory: AttemptDirectory, daemon: Mapping[str, str]
) -> dict[str, str]:
    """The worker's environment without its marker; see the head of this file."""
    passed = passed_variables(daemon, options.pass_env)
    for name in launch.unset:
        passed.pop(name, None)
    system = {"SUBAGENTS_SYSTEM_PROMPT_FILE": str(directory.path / SYSTEM_FILE)}
    return passed | options.env | launch.env | attempt_variables(launch, directory.path) | system


def worker_argv(options: CommandOptions, launch: Launch, *, path: str) -> list[str]:
    """The worker's argv, its program as an absolute path.

    Raises:
        UsageError: No such program, not executable, or an argument that no system takes.
    """
    texts = {"task": launch.task, "prompt": launch.prompt, "system": launch.system_prompt}
    argv = [program(options.command[0], cwd=launch.cwd, path=path, key="command")]
    for item in options.command[1:]:
        # In one pass: a task may itself contain "{prompt}".
        argv.append(_PLACEHOLDER.sub(lambda match: texts[match[1]], item))
        if "\0" in argv[-1]:
            raise UsageError(
                "the task contains a NUL character, which no argument can hold; "
                'hand it over with `stdin = "task"`'
            )
        size = len(as_bytes(argv[-1]))
        if size > ARGUMENT_BYTES_MAX:
            raise UsageError(
                f"`command`: an argument of {size:,} bytes is too long with the task in it "
                f"(at most {ARGUMENT_BYTES_MAX:,}); hand the task over with "
                '`stdin = "task"` or read $SUBAGENTS_TASK_FILE',
                details={"bytes": size, "bytesMax": ARGUMENT_BYTES_MAX},
            )
    return argv
