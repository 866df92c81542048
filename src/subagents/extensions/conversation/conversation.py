"""Workers that take messages while they work: any program whose protocol a ``Dialect`` speaks.

A turn is one process behind the shim. Its input is a file that only grows, its output another, so
a new daemon continues where the old one was killed (``worker_input``, ``turn_reader``). When the
protocol says that the turn is over, the program's input ends; one that does not exit by itself is
ended. A further turn is a new process that resumes the program's own session. Why it is made so:
docs/decisions/0023-conversations-are-folds-over-files.md.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from subagents.domain.rules import ceilings
from subagents.domain.run.access import Access, AccessLevel, Keeper
from subagents.domain.run.signals import Exited, Signal
from subagents.domain.run.spec import Abilities
from subagents.domain.run.values import AttemptId, replace
from subagents.domain.run.worker_output import OutputBatch
from subagents.errors import RuntimeUnavailable
from subagents.extensions.conversation import greeting
from subagents.extensions.conversation.dialect import (
    Asks,
    AsksUsually,
    Awaiting,
    Dialect,
    InputLine,
    KeepsSessions,
    Opening,
    PassesByOptions,
    ProgramPlaces,
    Restrained,
    SelfKept,
    Serves,
    servers_unkept,
)
from subagents.extensions.conversation.turn_reader import OVERDUE, TurnReader
from subagents.extensions.conversation.worker_input import WorkerInput, first_input
from subagents.ports import (
    LOGIN_NOTE,
    AttemptRef,
    Bound,
    Clock,
    Launch,
    LongResult,
    OffLoop,
    StartedInfo,
    UsualProvider,
    Varied,
    unserved,
)
from subagents.runtimes.process import sandbox
from subagents.runtimes.process.discard import discard_all
from subagents.runtimes.process.environment import (
    as_bytes,
    attempt_variables,
    check_environment,
    passed_variables,
)
from subagents.runtimes.process.processes import alive, send
from subagents.runtimes.process.shim import (
    READY,
    SETUP,
    AttemptDirectory,
    ProcessAttempts,
    ShimCommand,
)
from subagents.runtimes.runtime_options import handshake_seconds
from subagents.runtimes.runtime_plugins import RuntimeHost

S = TypeVar("S")

LAUNCH: Final = "launch"
OPENING: Final = "opening"

EXIT_BOUND_S: Final = 5.0
"""How long a program may take to exit by itself after its turn; then it is ended."""
END_GRACE_S: Final = 2.0
SETUP_LOOK_S: Final = 1.0
ACCEPT_BOUND_S: Final = 30.0
"""How long it may take to confirm a message. Without a confirmation the message counts as accepted:
it is in the program's input, and the turn is not over before it was answered."""
INTERRUPT_BOUND_S: Final = 8.0
READER_BOUND_S: Final = 5.0
"""How long a message waits for its reader, right after a start."""
POLL_S: Final = 0.05


class ConversationRuntime(Generic[S]):
    """Runs the programs of one dialect.

    Args:
        dialect: Their protocol.
        attempts: Starts, follows and ends their processes.
        clock: Waits, and times the output.
        off_loop: Carries everything that blocks.
        bridge: Program and arguments of our MCP server over stdio, for the worker to start.
    """

    def __init__(
        self,
        dialect: Dialect[S],
        attempts: ProcessAttempts,
        clock: Clock,
        off_loop: OffLoop,
        *,
        bridge: tuple[str, ...],
    ) -> None:
        self._dialect = dialect
        self._attempts = attempts
        self._clock = clock
        self._off_loop = off_loop
        self._bridge = bridge
        self._live: dict[AttemptId, _LiveTurn[S]] = {}

    @property
    def name(self) -> str:
        return self._dialect.name

    @property
    def abilities(self) -> Abilities:
        return self._dialect.abilities

    def abilities_of(self, options: Mapping[str, object]) -> Abilities:
        """See ``ports.Varied``: programs of one protocol may differ in their abilities."""
        dialect = self._dialect
        return dialect.abilities_of(options) if isinstance(dialect, Varied) else dialect.abilities

    @property
    def passes(self) -> tuple[str, ...]:
        """See ``Dialect.passes``."""
        return self._dialect.passes

    def passed(self, options: Mapping[str, object], model: str | None) -> tuple[str, ...]:
        """See ``ports.Asking.passed``."""
        dialect = self._dialect
        if isinstance(dialect, PassesByOptions):
            return dialect.passed(options, model)
        return dialect.passes

    @property
    def usual_provider(self) -> UsualProvider | None:
        """See ``ports.Asking.usual_provider``."""
        dialect = self._dialect
        return dialect.usual_provider if isinstance(dialect, AsksUsually) else None

    def check(self, options: Mapping[str, object]) -> None:
        """See ``ports.Runtime.check``."""
        self._dialect.check(options)

    def check_servers(self, options: Mapping[str, object]) -> None:
        """See ``ports.Serving.check_servers``."""
        dialect = self._dialect
        if not isinstance(dialect, Serves):
            raise servers_unkept(self.name, "it does not know how to start its program with them")
        dialect.check_servers(options)

    def unserved(self, options: Mapping[str, object]) -> tuple[str, str] | None:
        """See ``unserved`` of the ports."""
        return unserved(self._dialect, options)

    def check_scope(
        self, options: Mapping[str, object], tools: tuple[str, ...] | None, deny: tuple[str, ...]
    ) -> None:
        """See ``ports.Runtime.check_scope``."""
        self._dialect.check_scope(options, tools, deny)

    def access_of(
        self, options: Mapping[str, object], configured: AccessLevel | None
    ) -> AccessLevel:
        """See ``ports.Bounded.access_of``."""
        dialect = self._dialect
        if isinstance(dialect, Restrained):
            return dialect.access_of(options, configured)
        return configured or AccessLevel.FULL

    def bound(self, options: Mapping[str, object], access: Access) -> Bound:
        """See ``ports.Bounded.bound``.

        Raises:
            Forbidden: Neither the program, nor bubblewrap, nor its tools can keep a worker to it.
        """
        return bounded(self._dialect, options, access)

    def greeting_problem(
        self, options: Mapping[str, object], *, environ: Mapping[str, str], timeout_s: float
    ) -> str | None:
        """See ``greeting.Greeted``."""
        return greeting.problem(self._dialect, options, environ=environ, timeout_s=timeout_s)

    def unkept_limits(self, limits: Iterable[str]) -> str | None:
        """See ``ports.Limited.unkept_limits``."""
        return self._attempts.unkept_limits(limits)

    def marker(self, ref: AttemptRef) -> Mapping[str, str]:
        """See ``ports.Runtime.marker``."""
        return self._attempts.marker(ref.attempt_id, ref.turns).variables()

    async def start(self, launch: Launch) -> StartedInfo:
        """Start the program, or adopt the attempt when it was started already under this id.

        Raises:
            RuntimeUnavailable: Nothing was started; can be repeated.
            UsageError: The program or working directory is missing, or the program cannot do what
                is asked; nothing was started.
        """
        directory = AttemptDirectory(self._attempts.root, launch.run_id, launch.number)
        opening = self._opening(launch, turn=1, message=launch.prompt)
        return await self._attempts.start(
            directory, partial(self._command, launch, opening, directory)
        )

    async def resume(self, ref: AttemptRef, message: str, *, env: Mapping[str, str]) -> StartedInfo:
        """Start the next turn in the same session of the program.

        Raises:
            RuntimeUnavailable: Its session is not known, or its files are gone.
            UsageError: As for ``start``.
        """
        first = AttemptDirectory(self._attempts.root, ref.run_id, ref.number)
        launch = await self._off_loop(partial(_read, first.path / LAUNCH, Launch))
        if launch is None or ref.native_session is None:
            raise RuntimeUnavailable(
                f"attempt {ref.attempt_id} has no session of {self.name} to resume"
            )
        launch = replace(launch, env=dict(env), native_session=ref.native_session)
        opening = replace(self._opening(launch, turn=ref.turns, message=message), used=ref.usage)
        directory = self._attempts.directory(ref)
        return await self._attempts.start(
            directory, partial(self._command, launch, opening, directory)
        )

    async def watch(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int]
    ) -> AsyncIterator[tuple[Signal | OutputBatch | LongResult, int]]:
        """See ``ports.Runtime.watch``; cursor and positions are byte offsets in ``out``, ``err``.

        While it is watched, the program is answered; and ended once its turn is over.
        """
        directory = self._attempts.directory(ref)
        opening = await self._off_loop(partial(_read, directory.path / OPENING, Opening))
        if opening is None:
            # It was never started: reading shows just that.
            opening = _unstarted(ref)
        live = _LiveTurn[S](asyncio.get_running_loop())
        reader = TurnReader(
            self._dialect,
            opening,
            directory,
            WorkerInput(directory.path),
            cursor=cursor,
            positions=positions,
            now_ms=self._clock.now_ms,
            on_change=live.notify,
        )
        live.reader = reader
        self._live[ref.attempt_id] = live
        ending = asyncio.gather(
            self._end_when_done(ref, directory, live),
            self._end_when_mute(ref, directory, live, handshake_seconds(opening.options)),
        )
        try:
            async for seen, at in self._attempts.watch(ref.attempt_id, directory, reader):
                yield reader.as_ended(seen) if isinstance(seen, Exited) else seen, at
        finally:
            ending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ending
            if self._live.get(ref.attempt_id) is live:
                del self._live[ref.attempt_id]
            live.notify()

    async def discard(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int], ended: bool = False
    ) -> None:
        """Discard output that is kept elsewhere; see ``ports.Runtime.discard``.

        Raises:
            RuntimeUnavailable: Not all could be discarded; repeat it.
        """
        try:
            if ended:
                # The next turn may be at work by now: it comes out of the end of this one.
                for directory in await self._off_loop(partial(self._turns, ref)):
                    if directory.turn <= ref.turns:
                        await self._off_loop(partial(discard_all, directory.path))
            elif (live := self._live.get(ref.attempt_id)) is not None:
                await self._off_loop(
                    partial(live.reader.discard_before, cursor=cursor, positions=positions)
                )
        except OSError as error:
            raise RuntimeUnavailable(f"cannot discard output: {error}") from error

    async def stop(self, ref: AttemptRef, *, grace_s: float) -> None:
        """TERM, ``grace_s`` seconds, KILL, for every process of the attempt.

        Raises:
            RuntimeUnavailable: Some survived KILL for ten seconds; repeat it.
        """
        await self._attempts.stop(ref.attempt_id, self._attempts.directory(ref), grace_s=grace_s)

    async def steer(self, ref: AttemptRef, message: str, *, key: str) -> None:
        """Put a message into the present turn; returns when the program accepted it.

        Raises:
            RuntimeUnavailable: No turn takes messages now; the message stays for the next one.
        """
        live = await self._live_turn(ref)
        line = self._dialect.steer(live.reader.state, message, key=key)
        if line is None or live.reader.is_done:
            raise RuntimeUnavailable(f"attempt {ref.attempt_id} takes no message now")
        await self._send(live, ref, line)

        def is_answered() -> bool:
            return self._dialect.accepted(live.reader.state, key) is not None

        await live.until(lambda: is_answered() or live.reader.is_over, ACCEPT_BOUND_S, self._clock)
        taken = self._dialect.accepted(live.reader.state, key)
        if taken is False or (taken is None and live.reader.is_over):
            raise RuntimeUnavailable(f"attempt {ref.attempt_id} did not accept the message")

    async def permit(self, ref: AttemptRef, call_id: str, *, allow: bool, lasting: bool) -> None:
        """See ``ports.Permitting``."""
        live = await self._live_turn(ref)
        found = None
        if isinstance(self._dialect, Asks):
            found = self._dialect.permissions(live.reader.state).get(call_id)
        if found is None and not live.reader.is_over:
            raise RuntimeUnavailable(f"attempt {ref.attempt_id} has not asked for {call_id} yet")
        if found is not None:
            line = found.deny if not allow else found.lasting if lasting else found.once
            await self._send(live, ref, InputLine(f"permit:{call_id}", line.encode()))

    async def interrupt(self, ref: AttemptRef, *, key: str) -> None:
        """End the present turn; see ``ports.Runtime.interrupt``.

        Raises:
            RuntimeUnavailable: There is no turn, or its program cannot be interrupted.
        """
        live = await self._live_turn(ref)
        line = self._dialect.interrupt(live.reader.state, key=key)
        if line is None:
            raise RuntimeUnavailable(f"attempt {ref.attempt_id} has no turn to interrupt")
        await self._send(live, ref, line)
        await live.until(
            lambda: live.reader.is_done or live.reader.is_over, INTERRUPT_BOUND_S, self._clock
        )

    async def tidy(self, ref: AttemptRef) -> None:
        """See ``ports.Tidied``."""
        dialect = self._dialect
        kept = dialect.session_files if isinstance(dialect, KeepsSessions) else frozenset()
        await self._attempts.tidy(*await self._off_loop(partial(self._turns, ref)), kept=kept)

    async def forget(self, ref: AttemptRef) -> None:
        """Delete the attempt's directories with all its turns. Idempotent."""
        await self._attempts.forget(*await self._off_loop(partial(self._turns, ref)))

    def _turns(self, ref: AttemptRef) -> list[AttemptDirectory]:
        """The directories of the attempt's turns that are there, and of the first: it is last."""
        root = self._attempts.root
        found = (root / ref.run_id).glob(f"{ref.number}.*")
        turns = (int(each.name.partition(".")[2]) for each in found if each.is_dir())
        return [
            AttemptDirectory(root, ref.run_id, ref.number, turn)
            for turn in (*sorted(turns, reverse=True), 1)
        ]

    async def _live_turn(self, ref: AttemptRef) -> "_LiveTurn[S]":
        """The turn as it is read; a turn that has just begun may take a moment.

        Raises:
            RuntimeUnavailable: Nobody reads it: it is over.
        """
        waited_s = 0.0
        while ref.attempt_id not in self._live and waited_s < READER_BOUND_S:
            worker = self._attempts.directory(ref).shim()
            if worker is None or not alive(worker):
                break
            await self._clock.sleep(POLL_S)
            waited_s += POLL_S
        live = self._live.get(ref.attempt_id)
        if live is None:
            raise RuntimeUnavailable(f"attempt {ref.attempt_id} is not live")
        return live

    async def _send(self, live: "_LiveTurn[S]", ref: AttemptRef, line: InputLine) -> None:
        try:
            await self._off_loop(partial(live.reader.worker_input.send, [line]))
        except OSError as error:
            raise RuntimeUnavailable(f"cannot reach attempt {ref.attempt_id}: {error}") from error

    async def _end_when_done(
        self, ref: AttemptRef, directory: AttemptDirectory, live: "_LiveTurn[S]"
    ) -> None:
        """Once the turn is over, end the program's input, and then whatever does not exit."""
        await live.until(lambda: live.reader.is_done, None, self._clock)
        feeder = await self._off_loop(directory.feeder)
        if feeder is not None:
            send(feeder, signal.SIGTERM)
        await self._clock.sleep(EXIT_BOUND_S)
        await self._attempts.stop(ref.attempt_id, directory, grace_s=END_GRACE_S)

    async def _end_when_mute(
        self,
        ref: AttemptRef,
        directory: AttemptDirectory,
        live: "_LiveTurn[S]",
        handshake_s: float,
    ) -> None:
        """End a program that owes for too long what its turn needs to begin."""
        dialect, reader = self._dialect, live.reader
        if not isinstance(dialect, Awaiting):
            return
        while (directory.path / SETUP).exists() and not (directory.path / READY).exists():
            if reader.is_over:
                return
            await self._clock.sleep(SETUP_LOOK_S)  # it cannot speak before
        while (owed := dialect.awaits(reader.state)) is not None and not reader.is_over:

            def is_given(owed: str = owed) -> bool:
                return reader.is_over or dialect.awaits(reader.state) != owed

            await live.until(is_given, handshake_s, self._clock)
            if not is_given():
                text = (
                    f"the program owed {owed} for {handshake_s:g} s "
                    "(runtime_options.handshake_seconds) and was ended: it may not speak the "
                    f'protocol of runtime "{self.name}", or wait for a login'
                )
                await self._off_loop(partial((directory.path / OVERDUE).write_text, text))
                await self._attempts.stop(ref.attempt_id, directory, grace_s=END_GRACE_S)
                return

    def _opening(self, launch: Launch, *, turn: int, message: str) -> Opening:
        return Opening(
            attempt_id=launch.attempt_id,
            run_id=launch.run_id,
            number=launch.number,
            turn=turn,
            message=message,
            system_prompt=launch.system_prompt,
            cwd=launch.cwd,
            session_uuid=launch.session_key.rpartition(":")[2],
            session_id=launch.native_session,
            model=launch.model,
            thinking=launch.thinking,
            tools=launch.tools,
            tools_deny=launch.tools_deny,
            access=launch.access,
            options=launch.options,
            given=tuple(sorted(launch.env)),
            login_note=launch.env.get(LOGIN_NOTE, ""),
            withheld=launch.unset,
            bridge=self._bridge,
        )

    def _command(
        self, launch: Launch, opening: Opening, directory: AttemptDirectory
    ) -> ShimCommand:
        sandbox.check_place(launch.cwd, launch.access)
        options = launch.options
        names = _texts(options.get("pass_env"))
        configured = options.get("env")
        env = passed_variables(os.environ, (*self._dialect.passes, *names))
        for name in launch.unset:
            env.pop(name, None)
        env |= configured if isinstance(configured, dict) else {}
        env |= launch.env | attempt_variables(launch, directory.path)
        invocation = self._dialect.invocation(
            opening, directory=str(directory.path), path=env.get("PATH", os.defpath)
        )
        env |= invocation.env | self._attempts.marker(launch.attempt_id, opening.turn).variables()
        check_environment(env)
        argv = invocation.argv
        if launch.access is not None and launch.access.kept_by is Keeper.BUBBLEWRAP:
            argv = self._in_sandbox(argv, launch, launch.access, env, directory)
        files = {
            LAUNCH: msgspec.json.encode(replace(launch, env={})),
            OPENING: msgspec.json.encode(opening),
            "task": as_bytes(launch.task),
            "prompt": as_bytes(opening.message),
            **first_input(self._dialect.begin(opening).input_lines),
            **({SETUP: as_bytes(launch.setup)} if launch.setup else {}),
            **invocation.files,
        }
        return ShimCommand(
            argv=tuple(map(as_bytes, argv)),
            env={as_bytes(name): as_bytes(value) for name, value in env.items()},
            cwd=as_bytes(launch.cwd),
            files=files,
            limits=_limits(options.get("limits")),
            is_fed=True,
        )

    def _in_sandbox(
        self,
        argv: tuple[str, ...],
        launch: Launch,
        access: Access,
        env: Mapping[str, str],
        directory: AttemptDirectory,
    ) -> tuple[str, ...]:
        root = self._attempts.root
        own = ProgramPlaces()
        if isinstance(self._dialect, Restrained):
            own = self._dialect.places(launch.options, env)
        places = sandbox.places_of(
            env,
            state_dir=root.parent,
            # Some keep their conversation next to the attempt's other files.
            writable=(*own.writable, str(root / launch.run_id)),
            guarded=own.guarded,
        )
        hold = partial(self._attempts.hold, directory)
        return sandbox.wrapped(argv, cwd=launch.cwd, access=access, places=places, hold=hold)


def bounded(dialect: object, options: Mapping[str, object], access: Access) -> Bound:
    """How a program of that dialect is kept to ``access``; see ``ports.Bounded.bound``."""
    if isinstance(dialect, SelfKept):
        kept = dialect.kept_by_program(options, access)
        if kept is not None:
            return Bound(replace(kept, kept_by=Keeper.PROGRAM))
    # Its program must reach its model: without the network it is only without the tools for it.
    offline = ceilings.network_deny(access)
    if access.level is AccessLevel.FULL:
        return Bound(replace(access, kept_by=Keeper.TOOLS), offline)
    missing = sandbox.problem()
    if missing is None:
        return Bound(replace(access, kept_by=Keeper.BUBBLEWRAP), offline)
    denied = dialect.kept_by_tools(options, access) if isinstance(dialect, Restrained) else None
    if denied is None:
        raise sandbox.unkept(access, missing)
    deny = tuple(dict.fromkeys((*denied, *offline)))
    return Bound(replace(access, kept_by=Keeper.TOOLS), deny)


class _LiveTurn(Generic[S]):
    """A turn that is being read, and those who wait for what its reader finds."""

    reader: TurnReader[S]

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._changed = asyncio.Event()

    def notify(self) -> None:
        """Something was read; from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def until(
        self, condition: Callable[[], bool], bound_s: float | None, clock: Clock
    ) -> None:
        """Wait until the condition holds, ``bound_s`` seconds at most; None = for ever."""
        timer = None if bound_s is None else asyncio.ensure_future(clock.sleep(bound_s))
        try:
            while not condition() and (timer is None or not timer.done()):
                change = asyncio.ensure_future(self._changed.wait())
                waiting = {change} if timer is None else {change, timer}
                try:
                    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    change.cancel()
        finally:
            if timer is not None:
                timer.cancel()


T = TypeVar("T")


def _read(path: Path, form: type[T]) -> T | None:
    """A value that was written next to the attempt's files; None when it is not there. Blocking."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=form)
    except (OSError, msgspec.DecodeError):
        return None


def _unstarted(ref: AttemptRef) -> Opening:
    """Stands for the opening of a turn that has no files."""
    return Opening(
        attempt_id=ref.attempt_id,
        run_id=ref.run_id,
        number=ref.number,
        turn=ref.turns,
        message="",
        system_prompt="",
        cwd="",
        session_uuid="",
        options=ref.options,
    )


def _limits(value: object) -> dict[str, int]:
    return {str(key): int(most) for key, most in value.items()} if isinstance(value, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, (list, tuple)) else ()


def runtime_on(host: RuntimeHost, dialect: Dialect[S]) -> ConversationRuntime[S]:
    """The runtime of a program that speaks ``dialect``; TypeError names what that one lacks."""
    lacks = [each for each in vars(Dialect) if each[0] != "_" and not hasattr(dialect, each)]
    if lacks:  # noticed later, its runs would hang
        raise TypeError(f"{type(dialect).__name__} has no {', '.join(lacks)}")
    return ConversationRuntime(
        dialect, host.attempts, host.clock, host.off_loop, bridge=host.bridge
    )
