"""The runtime ``command``: any program is a worker; it needs to know nothing of us.

Options (``[agents.<id>]``):

``command``   argv, required. ``{task}`` and ``{prompt}`` in any item but the first become the task
              or the composed prompt, within that one argument; no shell of ours is in between.
``stdin``     ``none`` (default), ``task`` or ``prompt``. With ``none`` the worker reads the results
              of the runs it depends on, when it asked for them, so that ``sort | uniq -c`` after
              another run works like a pipe; else nothing.
``env``       Variables set for the worker.
``pass_env``  Names, or prefixes ``NAME_*``, let through from the daemon's environment.

A worker's environment is an allow list: ``PASSED`` and ``pass_env`` from the daemon, then ``env``,
then what the engine adds, then ``SUBAGENTS_RUN_ID``, ``SUBAGENTS_ATTEMPT``,
``SUBAGENTS_ATTEMPT_NUMBER``, ``SUBAGENTS_ATTEMPTS_DIR``, ``SUBAGENTS_SESSION_KEY``,
``SUBAGENTS_AGENT_ID``, ``SUBAGENTS_TASK_FILE``, ``SUBAGENTS_PROMPT_FILE``, ``SUBAGENTS_TASK``
(up to 100 KiB) and ``SUBAGENTS_RETRY_REASON`` (of a retry). Nothing else of ours reaches it.
"""

import difflib
import os
import re
import shutil
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from subagents.domain.said import Heard
from subagents.domain.signals import Signal
from subagents.domain.spec import Abilities
from subagents.domain.values import AttemptId
from subagents.errors import ConfigError, RuntimeUnavailable, UsageError
from subagents.ports import AttemptRef, Clock, Launch, OffLoop, StartedInfo
from subagents.runtimes.shim import Command, Place, ProcessAttempts

PASSED: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM",
    "COLORTERM", "TMPDIR", "XDG_*", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
"""Let through always: who and where the user is, and how to show and verify things.

Not among them, because they give access or may hold a password: SSH_AUTH_SOCK, the proxy
variables, and every API key. ``pass_env`` names what an agent needs of those.
"""

TASK_VARIABLE_BYTES_MAX: Final = 100 * 1024
RETRY_REASON_BYTES_MAX: Final = 4 * 1024
ARGUMENT_BYTES_MAX: Final = 128 * 1024 - 1
"""Linux takes no longer single argument (MAX_ARG_STRLEN, with its NUL)."""

_PLACEHOLDER: Final = re.compile(r"\{(task|prompt)\}")
_NAME: Final = r"^[A-Za-z_][A-Za-z0-9_]*"
_NAME_OR_PREFIX: Final = _NAME + r"\*?$"
_OURS: Final = "SUBAGENTS_"

Stdin = Literal["none", "task", "prompt"]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """``[agents.<id>]`` of an agent with ``runtime = "command"``."""

    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    stdin: Stdin = "none"
    env: dict[Annotated[str, msgspec.Meta(pattern=_NAME + "$")], str] = {}
    pass_env: tuple[Annotated[str, msgspec.Meta(pattern=_NAME_OR_PREFIX)], ...] = ()


class CommandRuntime:
    """Runs a program per attempt.

    Args:
        attempts_root: Holds the attempt directories; created when missing.
        clock: Only waits.
        off_loop: Carries everything that blocks.

    Source: 7-runtimes "The shim" and the row ``command``.
    """

    def __init__(self, attempts_root: Path, clock: Clock, off_loop: OffLoop) -> None:
        self._attempts = ProcessAttempts(attempts_root, clock, off_loop)

    @property
    def name(self) -> str:
        return "command"

    @property
    def abilities(self) -> Abilities:
        return Abilities(survives_daemon=True, usage=True)

    def check(self, options: Mapping[str, object]) -> None:
        """Refuse options with which no attempt could ever start.

        Whether the program exists is looked up at the start: it may be installed until then.

        Raises:
            ConfigError: Names the key and what is allowed.
        """
        parse_options(options)

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
        place = Place(self._attempts.root, launch.run_id, launch.number)
        return await self._attempts.start(place, partial(self._command, launch, place))

    async def discard(
        self, ref: AttemptRef, *, cursor: int, heard: Mapping[str, int], ended: bool = False
    ) -> None:
        """Let go of output that is kept elsewhere; see ``ports.Runtime.discard``.

        Raises:
            RuntimeUnavailable: Not all could be let go; repeating goes on.
        """
        place = self._attempts.place(ref)
        await self._attempts.discard(place, cursor=cursor, heard=heard, ended=ended)

    def watch(
        self, ref: AttemptRef, *, cursor: int, heard: Mapping[str, int]
    ) -> AsyncIterator[tuple[Signal | Heard, int]]:
        """See ``ports.Runtime.watch``; the cursor is a byte offset in the standard output.

        Positions are byte offsets, too: ``out`` and ``err``.
        """
        place = self._attempts.place(ref)
        return self._attempts.watch(ref.attempt_id, place, cursor=cursor, heard=heard)

    async def stop(self, ref: AttemptRef, *, grace_s: float) -> None:
        """TERM, ``grace_s`` seconds, KILL, for every process of the attempt.

        Raises:
            RuntimeUnavailable: Some did not die of KILL within ten seconds; repeating goes on.
        """
        await self._attempts.stop(ref.attempt_id, self._attempts.place(ref), grace_s=grace_s)

    async def steer(self, ref: AttemptRef, message: str, *, key: str) -> None:  # noqa: ARG002
        """Always raises RuntimeUnavailable: a program reads no messages while it works."""
        raise RuntimeUnavailable(f'runtime "command" cannot steer attempt {ref.attempt_id}')

    async def resume(
        self,
        ref: AttemptRef,
        message: str,  # noqa: ARG002
        *,
        env: Mapping[str, str],  # noqa: ARG002
    ) -> StartedInfo:
        """Always raises RuntimeUnavailable: a program has no session to go on with."""
        raise RuntimeUnavailable(f'runtime "command" cannot resume attempt {ref.attempt_id}')

    async def forget(self, ref: AttemptRef) -> None:
        """Delete the attempt's directory with its output. Idempotent."""
        await self._attempts.forget(self._attempts.place(ref))

    async def orphans(self, known: Iterable[AttemptId]) -> list[tuple[AttemptId, int]]:
        """``(attempt id, pid)`` of live workers of this installation that are not in ``known``."""
        return await self._attempts.orphans(known)

    def attempt_of(self, pid: int) -> AttemptId | None:
        """The attempt of this installation that the process belongs to, if any."""
        return self._attempts.attempt_of(pid)

    def _command(self, launch: Launch, place: Place) -> Command:
        options = parse_options(launch.options)
        if not Path(launch.cwd).is_dir():
            raise UsageError(f"the working directory {launch.cwd} does not exist; name it in `cwd`")
        env = worker_env(options, launch, place, os.environ)
        env |= self._attempts.marker(launch.attempt_id).variables()
        argv = worker_argv(options, launch, path=env.get("PATH", os.defpath))
        _check_env(env)
        stdin = {
            "none": as_text_file(launch.previous_results),
            "task": launch.task,
            "prompt": launch.prompt,
        }
        files = {"task": launch.task, "prompt": launch.prompt}
        if stdin[options.stdin]:
            files["stdin"] = stdin[options.stdin]
        return Command(
            argv=tuple(map(_bytes, argv)),
            env={_bytes(name): _bytes(value) for name, value in env.items()},
            cwd=_bytes(launch.cwd),
            files={name: _bytes(text) for name, text in files.items()},
        )


def as_text_file(text: str) -> str:
    """With a final newline, as programs that count or read lines expect."""
    return f"{text}\n" if text and not text.endswith("\n") else text


def parse_options(options: Mapping[str, object]) -> Options:
    """Return the options of a ``command`` agent.

    Raises:
        ConfigError: Names the key and what is allowed.
    """
    known = Options.__struct_fields__
    for key in options:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            meant = f"; did you mean `{near[0]}`?" if near else f"; known are {', '.join(known)}"
            raise ConfigError(f'runtime "command" knows no option `{key}`{meant}')
    try:
        parsed = msgspec.convert(dict(options), Options)
    except msgspec.ValidationError as error:
        raise ConfigError(f'options of runtime "command": {error}{_hint(options)}') from error
    if not parsed.command[0] or _PLACEHOLDER.search(parsed.command[0]):
        raise ConfigError(
            "`command` must begin with a program; a task may be an argument, not the program"
        )
    for name in (*parsed.env, *parsed.pass_env):
        if name.startswith(_OURS):
            raise ConfigError(f"`{name}`: variables {_OURS}* are set by subagents; remove it")
    texts = (*parsed.command, *parsed.env.values())
    if any("\0" in text for text in texts):
        raise ConfigError("`command` and `env` cannot hold NUL characters")
    return parsed


def _hint(options: Mapping[str, object]) -> str:
    if not options.get("command"):
        return '; `command` is a list of words, for example ["bash", "-c", "{task}"]'
    if isinstance(options["command"], str):
        return '; `command` is a list of words; for a shell line use ["bash", "-c", "…"]'
    if options.get("stdin") not in {None, "none", "task", "prompt"}:
        return '; `stdin` is "none", "task" or "prompt"'
    return "; variable names have letters, digits and _; in `pass_env` also a last *"


def worker_env(
    options: Options, launch: Launch, place: Place, daemon: Mapping[str, str]
) -> dict[str, str]:
    """The worker's environment without its marker; see the head of this file."""
    allowed = (*PASSED, *options.pass_env)
    passed = {
        name: value
        for name, value in daemon.items()
        if not name.startswith(_OURS) and any(_matches(name, pattern) for pattern in allowed)
    }
    told = {
        "PWD": launch.cwd,
        "SUBAGENTS_RUN_ID": launch.run_id,
        "SUBAGENTS_ATTEMPT_NUMBER": str(launch.number),
        "SUBAGENTS_SESSION_KEY": launch.session_key,
        "SUBAGENTS_AGENT_ID": launch.agent_id,
        "SUBAGENTS_TASK_FILE": str(place.path / "task"),
        "SUBAGENTS_PROMPT_FILE": str(place.path / "prompt"),
    }
    if len(_bytes(launch.task)) <= TASK_VARIABLE_BYTES_MAX and "\0" not in launch.task:
        told["SUBAGENTS_TASK"] = launch.task
    if launch.retry_reason:
        reason = _bytes(launch.retry_reason.replace("\0", ""))[:RETRY_REASON_BYTES_MAX]
        told["SUBAGENTS_RETRY_REASON"] = reason.decode("utf-8", "ignore")
    return passed | options.env | launch.env | told


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def worker_argv(options: Options, launch: Launch, *, path: str) -> list[str]:
    """The worker's argv, its program as an absolute path.

    Raises:
        UsageError: No such program, not executable, or an argument that no system takes.
    """
    texts = {"task": launch.task, "prompt": launch.prompt}
    argv = [_program(options.command[0], cwd=launch.cwd, path=path)]
    for item in options.command[1:]:
        # In one pass: a task may itself contain "{prompt}".
        argv.append(_PLACEHOLDER.sub(lambda match: texts[match[1]], item))
        if "\0" in argv[-1]:
            raise UsageError(
                "the task contains a NUL character, which no argument can hold; "
                'hand it over with `stdin = "task"`'
            )
        size = len(_bytes(argv[-1]))
        if size > ARGUMENT_BYTES_MAX:
            raise UsageError(
                f"`command`: an argument of {size:,} bytes is too long with the task in it "
                f"(at most {ARGUMENT_BYTES_MAX:,}); hand the task over with "
                '`stdin = "task"` or read $SUBAGENTS_TASK_FILE',
                details={"bytes": size, "bytesMax": ARGUMENT_BYTES_MAX},
            )
    return argv


def _program(name: str, *, cwd: str, path: str) -> str:
    if "/" in name:
        program = Path(cwd, name)
        if not program.is_file():
            raise UsageError(f"`command`: there is no program {program}")
        if not os.access(program, os.X_OK):
            raise UsageError(f"`command`: {program} is not executable; chmod +x it")
        return str(program)
    found = shutil.which(name, path=path)
    if found is None:
        raise UsageError(
            f"`command`: no program {name!r} on the worker's PATH ({path}); "
            "install it, give its full path, or set PATH in `env`"
        )
    return str(Path(cwd, found))


def _check_env(env: Mapping[str, str]) -> None:
    for name, value in env.items():
        size = len(_bytes(name)) + 1 + len(_bytes(value))
        if "\0" in value or size > ARGUMENT_BYTES_MAX:
            raise UsageError(f"environment variable {name} is too long or holds a NUL character")


def _bytes(text: str) -> bytes:
    # Paths and variables may hold undecodable bytes, which Python keeps as surrogates.
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")
