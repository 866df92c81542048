"""Attempts as processes behind a shim: started once, followed through files, adopted again.

The daemon holds no pipe and no exit status: ``shim.sh`` starts the worker and records its end, and
everything known of an attempt is in its directory. So a worker outlives the daemon, and a new
daemon continues where the old one was killed.

Nothing that is written here is synced: after a power cut the worker is gone as well, and an attempt
whose files are missing or torn is reported as vanished. What is deleted is: it must not come back.
"""

import asyncio
import contextlib
import errno
import os
import re
import shutil
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from signal import SIGCONT, SIGSTOP, Signals
from typing import Final, NamedTuple, Protocol

from subagents.domain.redaction.redact import MARGIN_BYTES, ending
from subagents.domain.run.run import Exit
from subagents.domain.run.signals import Exited, Signal, Vanished
from subagents.domain.run.values import AttemptId, RunId, replace
from subagents.durable_files import private, sync
from subagents.errors import RuntimeUnavailable, UsageError
from subagents.ports import AttemptRef, Clock, OffLoop, Origin, StartedInfo
from subagents.process_identity import answers_signals
from subagents.runtimes.output.output_reader import (
    EMPTIED,
    ERR,
    OUT,
    STDERR_BYTES_MAX,
    Output,
    Seen,
    Sizes,
    has_result,
    tail,
)
from subagents.runtimes.output.terminal_text import clean
from subagents.runtimes.process import cgroups
from subagents.runtimes.process.backpressure import FROZEN, HELD, Backpressure
from subagents.runtimes.process.discard import Discarded, discard_all, discard_before, discarded
from subagents.runtimes.process.git_places import PlaceHolders
from subagents.runtimes.process.launcher import LAUNCHER
from subagents.runtimes.process.origins import Origins
from subagents.runtimes.process.poller import Poller
from subagents.runtimes.process.processes import (
    Census,
    Identity,
    Marker,
    alive,
    end_tree,
    marked,
    on_end,
    signal_tree,
)

SHELL: Final = "/bin/sh"
SHIM: Final = Path(__file__).with_name("shim.sh")
SETUP, READY = "setup", "ready"
"""Files of ``shim.sh``: what goes before the worker, and that it has succeeded."""

START_BOUND_S: Final = 5.0
"""How long a claimed attempt may take to show its worker; usually it takes 3 ms."""

CLAIM_BOUND_S: Final = 60.0
"""How long a shim that runs may take to claim its attempt, on a machine that is very busy."""

LOOKS_AT_START_S: Final = (0.003, 0.002, 0.003, 0.005, 0.008)
"""The waits before the looks for a worker that was just started; no thread is kept longer."""
START_AGAIN_S: Final = (0.01, 0.1, 0.5)
"""The waits after which a start is repeated that failed for a reason of ours or the machine's."""
TRANSIENT: Final = frozenset(
    {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ECHILD, errno.EINTR}
)
READ_AGAIN_S: Final = 0.02
"""When the record of an exit takes longer than this, output is read meanwhile."""

_STOPPED: Final = "stopped\n"
"""The claim of an attempt that was stopped before it started: it never will."""
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
"""A number as the shim writes it; a file that holds anything else says nothing."""
_LAST: Final[Mapping[str, str]] = {"claim": "boot", "pid": "session", "feeder": "boot"}
"""The first word of the last line of each file of records: with it the file is complete."""


class AttemptDirectory:
    """The directory of one turn of an attempt, and what its files say: microseconds to read."""

    def __init__(self, root: Path, run_id: RunId, number: int, turn: int = 1) -> None:
        if not run_id or "/" in run_id or run_id.startswith("."):
            raise UsageError(f"run id {run_id!r} cannot name a directory")
        # A further turn is a process of its own, and so has files of its own.
        self.path = Path(
            f"{root}/{run_id}/{number}" if turn == 1 else f"{root}/{run_id}/{number}.{turn}"
        )
        self.turn = turn
        self.out = f"{self.path}/out"
        self.err = f"{self.path}/err"
        self._complete: dict[str, tuple[str, float]] = {}
        """What the files say that never change again."""

    @property
    def is_claimed(self) -> bool:
        return os.path.exists(f"{self.path}/claim")  # noqa: PTH110  # hot: beside a start

    @property
    def was_stopped(self) -> bool:
        return self._text("claim")[0] == _STOPPED

    def shim(self) -> Identity | None:
        """Whoever may start the worker; None until it has written itself down."""
        # Both say it; the later one first, which who asks has mostly read.
        return self._identity("pid", "shim") or self._identity("claim", "shim")

    def worker(self) -> Identity | None:
        """The worker; None until it runs."""
        return self._identity("pid", "worker")

    def cgroup(self) -> str | None:
        """The cgroup that its shim was started in; None = in none, or there was no shim."""
        for name in ("pid", "claim"):
            path = _records(self._text(name)[0], last=_LAST[name]).get("cgroup")
            if path:
                return " ".join(path)
        return None

    def feeder(self) -> Identity | None:
        """What hands ``in`` on to the worker; its end is the end of the worker's input."""
        return self._identity("feeder", "feeder")

    def exit(self) -> Exit | None:
        """How the worker ended; None while that is not recorded, or when it never ran."""
        match self._end():
            case ["code", code, *_] if _NUMBER.fullmatch(code):
                return Exit(code=int(code))
            case ["signal", number, *_] if _NUMBER.fullmatch(number):
                return Exit(signal=int(number))
        return None

    @property
    def ended_alone(self) -> bool:
        """Whether nothing that the worker started outlived it; False while it lives."""
        return self._end()[-1:] == ["alone"]

    def sizes(self) -> Sizes:
        """How much was written so far."""
        return Sizes(out=_size(self.out), err=_size(self.err))

    @property
    def attempt(self) -> tuple[RunId, int]:
        """The run and the number that it is of."""
        return RunId(self.path.parent.name), int(self.path.name.partition(".")[0])

    def earlier(self) -> "list[AttemptDirectory]":
        """The directories of the attempt's turns before this one."""
        root = self.path.parent.parent
        return [AttemptDirectory(root, *self.attempt, turn) for turn in range(1, self.turn)]

    def discarded(self) -> Discarded:
        """How much of the output was discarded."""
        return discarded(self.path)

    def create(self, files: Mapping[str, bytes], *, is_fed: bool = False) -> None:
        """Make the directory with ``files``; a file that is there already is replaced whole.

        With ``is_fed`` the worker reads from a FIFO, into which the shim feeds ``in``. What begins
        with the same is then left as it is: a shim that an earlier daemon started just before it
        was killed may be reading it, and would not see what is appended to another file.
        """
        _make_private(self.path)
        for name, content in files.items():
            if is_fed and _begins_with(self.path / name, content):
                continue
            # Two starters may write the same at once, and a worker may read already.
            draft = f"{self.path}/.{name}.{os.getpid()}.{threading.get_ident()}"
            with open(draft, "wb", opener=private) as file:
                file.write(content)
            os.replace(draft, f"{self.path}/{name}")  # noqa: PTH105
        if is_fed:
            with contextlib.suppress(FileExistsError):
                os.mkfifo(self.path / "stdin", 0o600)

    def claim_as_stopped(self) -> None:
        """Claim it so that no shim ever will; nothing when it is claimed already."""
        # Where no file can be made (a full disk), no shim can claim it either.
        with contextlib.suppress(OSError):
            self.create({})
            with (self.path / "claim").open("x") as claim:
                claim.write(_STOPPED)

    def tidy(self, kept: frozenset[str] = frozenset()) -> None:
        """Delete what is not read once the run is over: all but these and the claim. Idempotent.

        It keeps the attempt from being started again by a database restored from before its start.
        """
        kept |= {"claim"}
        with contextlib.suppress(FileNotFoundError):
            # Until nothing comes any more: its output may be discarded meanwhile.
            while left := [each for each in os.listdir(self.path) if each not in kept]:  # noqa: PTH208
                for each in left:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(f"{self.path}/{each}")  # noqa: PTH108  # hot: once per file

    def delete(self) -> None:
        """Delete the directory, and the run's when this was its last attempt. Idempotent."""
        while self.path.exists():
            # Output is let go of meanwhile: a file that is gone first ends rmtree half way.
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(self.path)
        run = self.path.parent
        with contextlib.suppress(OSError):  # other attempts are still there, or it is gone
            run.rmdir()
        # A name whose going is not on the disk comes back when the power is cut. Also when nothing
        # was there: an earlier call may have failed here, behind the deletion.
        with contextlib.suppress(FileNotFoundError):  # nothing was ever started here
            sync(run if run.exists() else run.parent)

    def _end(self) -> list[str]:
        text, _ = self._text("exit")
        return text.split() if text.endswith("\n") else []

    def _identity(self, name: str, whose: str) -> Identity | None:
        text, at_s = self._text(name)
        return _identity(_records(text, last=_LAST[name]), whose, at_s)

    def _text(self, name: str) -> tuple[str, float]:
        """What a file of the shim says, and when it was written; read until it is complete."""
        found = self._complete.get(name)
        if found is not None:
            return found
        try:
            file = os.open(f"{self.path}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return "", 0.0
        try:
            text = os.read(file, 4096).decode(errors="replace")
            found = text, os.fstat(file).st_mtime
        finally:
            os.close(file)
        if _records(text, last=_LAST[name]) if name in _LAST else text.endswith("\n"):
            self._complete[name] = found
        return found


def _make_private(directory: Path) -> None:
    """Make it, with those above it that are missing."""
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        _make_private(directory.parent)
        _make_private(directory)


def _begins_with(path: Path, content: bytes) -> bool:
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        return file.read(len(content)) == content
    return False


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116  # beside the paths as texts
    except FileNotFoundError:
        return 0


def _records(text: str, *, last: str) -> dict[str, list[str]]:
    """The lines by their first word; empty unless the ``last`` one is complete."""
    if not text.endswith("\n"):
        return {}
    records = {words[0]: words[1:] for words in map(str.split, text.splitlines()) if words}
    return records if last in records else {}


def _identity(records: Mapping[str, list[str]], name: str, at_s: float) -> Identity | None:
    match records.get(name), records.get("boot"):
        case [pid, start], [boot] if _NUMBER.fullmatch(pid):
            return Identity(int(pid), start, boot, at_s)
    return None


class ShimCommand(NamedTuple):
    """What a shim is to run."""

    argv: Sequence[bytes]
    env: Mapping[bytes, bytes]
    cwd: bytes
    files: Mapping[str, bytes]
    """Put into the attempt directory before; ``stdin`` is what the worker reads."""
    limits: Mapping[str, int] = {}
    """``[agents.<id>.limits]``, which its cgroup keeps it to."""
    is_fed: bool = False
    """It reads what is appended to the file ``in`` instead."""


class AttemptReader(Protocol):
    """Reads what one attempt writes, forward. Blocking, for one thread at a time."""

    @property
    def position(self) -> int:
        """Behind all that was read of the standard output."""
        ...

    @property
    def fed(self) -> Sizes:
        """How far both files were read."""
        ...

    def read(self, *, until: Sizes | None = None) -> tuple[list[Seen], bool]:
        """What is new, for some milliseconds; returns ``(what was seen, there may be more)``."""
        ...

    def finish(self) -> list[Seen]:
        """After the last ``read``, when the worker is gone."""
        ...


class ProcessAttempts:
    """Starts, follows and ends attempts that are processes; the base of every process runtime.

    Args:
        root: Holds ``<runId>/<number>/``; created when missing. One installation, one root.
        clock: Only waits.
        off_loop: Carries starting processes, reading output and looking at all processes.
        result_bytes_max: The part of the output that stays on the disk while it may be the result.
    """

    def __init__(
        self, root: Path, clock: Clock, off_loop: OffLoop, *, result_bytes_max: int = 0
    ) -> None:
        self._result_bytes_max = result_bytes_max
        self.root = Path(os.path.abspath(root))  # noqa: PTH100  # resolve() would follow links
        self._clock = clock
        self._off_loop = off_loop
        self._census = Census(off_loop)
        self._poller = Poller()
        self._origins = Origins(str(self.root))
        self._held = PlaceHolders(self.root.parent / "held")
        self._ended: dict[Marker, bool] = {}
        """Turns that we saw end, with all before them, and whose processes can be nowhere but in
        their cgroups; True = and are not there: none is left."""

    def directory(self, ref: AttemptRef) -> AttemptDirectory:
        """Of the turn that ``ref`` names."""
        return AttemptDirectory(self.root, ref.run_id, ref.number, ref.turns)

    def hold(self, directory: AttemptDirectory, work: str) -> Mapping[str, str]:
        """Hold what git obeys there in place until the attempt is over; see ``PlaceHolders``."""
        return self._held.hold(work, _name_of(directory))

    def marker(self, attempt_id: AttemptId, turn: int = 1) -> Marker:
        """For the environment of a process, by which ``stop`` will find it."""
        marker = Marker(attempt_id, str(self.root), turn)
        self._ended.pop(marker, None)
        return marker

    def unkept_limits(self, limits: Iterable[str]) -> str | None:
        """Which of these limits nothing here can enforce, and why; None = all can. Blocking."""
        return cgroups.place().unkept(limits)

    async def start(
        self, directory: AttemptDirectory, command: Callable[[], ShimCommand]
    ) -> StartedInfo:
        """Start the attempt, or adopt it when it was started before.

        Args:
            directory: The attempt's.
            command: Called only when it was not; may refuse with UsageError.

        Raises:
            RuntimeUnavailable: Nothing was started (no room for files or processes).
            UsageError: As ``command`` raises, or its arguments are too long; nothing was started.
        """
        shim_pid = await self._off_loop(partial(self._launch, directory, command))
        await self._until_started(directory, shim_pid)
        worker = directory.worker()
        if worker is None and not directory.is_claimed:
            raise RuntimeUnavailable(
                f"the attempt directory {directory.path} could not be claimed; is its disk full "
                "or read-only? Nothing was started"
            ) from OSError(errno.ENOSPC, "no claim")
        shim = directory.shim()
        adopted = shim_pid is None or shim is None or shim.pid != shim_pid
        return StartedInfo(pid=None if worker is None else worker.pid, adopted=adopted)

    async def watch(
        self, attempt_id: AttemptId, directory: AttemptDirectory, output: AttemptReader
    ) -> AsyncIterator[Seen]:
        """Yield the attempt's signals and output; see ``ports.Runtime.watch``.

        Needs nothing but the directory, so that it serves a new daemon as well. Ends with
        ``Exited``, also when the exit was not recorded but its end was seen, or ``Vanished``.
        """
        await self._until_started(directory, None)
        marker = Marker(attempt_id, str(self.root), directory.turn)

        def unread() -> int:
            written, read = directory.sizes(), output.fed
            return max(written.out - read.out, 0) + max(written.err - read.err, 0)

        pressure = Backpressure(marker, directory.path, directory.shim, unread, self._census)
        await pressure.take_over()
        seen_alive = False
        # First the worker, whose end its shim records a moment later. A shim may outlive it, with
        # what the worker left behind; without one (it was killed) how it ended stays unknown. Then
        # again the worker, of which nothing was known before its shim was killed.
        for identify, follow in (
            (directory.worker, partial(self._until_ended, pressure=pressure)),
            (directory.shim, self._until_recorded),
            (directory.worker, partial(self._until_ended, pressure=pressure)),
        ):
            if directory.exit() is not None:
                break
            identity = identify()
            if identity is None or not alive(identity):
                continue
            seen_alive = seen_alive or identify == directory.worker
            async with contextlib.aclosing(follow(identity, directory, output)) as found:
                async for each in found:
                    yield each
        # Its shim ends at this moment: who stops it later looks again, and here nobody waits.
        left_in = partial(self._groups, tries=1)
        rest = _Rest(attempt_id, directory, output, seen_alive=seen_alive, left_in=left_in)
        while rest.signal is None:
            for each in await self._off_loop(rest.read):
                yield each
        if rest.is_gone is not None:
            self._ended[marker] = rest.is_gone
        yield rest.signal, output.position

    async def discard(
        self, directory: AttemptDirectory, *, cursor: int, positions: Mapping[str, int], ended: bool
    ) -> None:
        """Discard output that is kept elsewhere; see ``ports.Runtime.discard``.

        Raises:
            RuntimeUnavailable: Not all could be discarded; repeat it.
        """
        before = partial(
            discard_before,
            directory.path,
            out=min(cursor, positions.get(OUT, 0)),
            err=positions.get(ERR, 0),
            result_bytes_max=self._result_bytes_max,
        )
        if not ended and any(name.endswith(EMPTIED) for name in positions):
            return  # the offsets are not those of the file any more
        try:
            await self._off_loop(partial(discard_all, directory.path) if ended else before)
        except OSError as error:
            raise RuntimeUnavailable(f"cannot discard output: {error}") from error

    async def stop(
        self, attempt_id: AttemptId, directory: AttemptDirectory, *, grace_s: float
    ) -> None:
        """End every process of the attempt; see ``processes.end_tree``.

        One that was not started never will be: a start that comes late finds it claimed.
        """
        await self._end(attempt_id, directory, grace_s=grace_s)
        if self._held.is_used:
            await self._off_loop(partial(self._held.release, _name_of(directory)))

    async def _end(
        self, attempt_id: AttemptId, directory: AttemptDirectory, *, grace_s: float
    ) -> None:
        marker = Marker(attempt_id, str(self.root), directory.turn)
        is_gone = self._ended.pop(marker, None)
        if is_gone:
            return
        is_known = is_gone is not None
        groups = await self._off_loop(partial(self._groups, directory))
        if is_known and not groups:
            return
        # Before its processes are looked for: a shim that starts now finds the claim and ends.
        await self._off_loop(directory.claim_as_stopped)
        await end_tree(
            marker,
            shim=directory.shim(),
            grace_s=grace_s,
            groups=groups,
            census=None if is_known else self._census_for(directory),
            clock=self._clock,
            off_loop=self._off_loop,
        )
        for group in groups:
            await self._off_loop(partial(cgroups.remove, group))

    def _census_for(self, directory: AttemptDirectory) -> Census | None:
        """What finds its processes where its cgroups alone do not; None = they do."""
        # Only while the worker lives: once it is gone a process may have left them, and its shim.
        worker = directory.worker()
        is_at_work = worker is not None and alive(worker) and _is_contained(directory)
        return None if is_at_work else self._census

    async def freeze(self, attempt_id: AttemptId, directory: AttemptDirectory) -> None:
        """Stop every process of the attempt where it is; see ``processes.signal_tree``."""
        with contextlib.suppress(OSError):  # a full disk must not keep it from being stopped
            (directory.path / FROZEN).touch()
        await self._signal(attempt_id, directory, SIGSTOP)

    async def thaw(self, attempt_id: AttemptId, directory: AttemptDirectory) -> None:
        """Let them continue; those that write faster than they are read, when they were read."""
        (directory.path / FROZEN).unlink(missing_ok=True)
        if not (directory.path / HELD).exists():
            await self._signal(attempt_id, directory, SIGCONT)

    async def _signal(
        self, attempt_id: AttemptId, directory: AttemptDirectory, number: Signals
    ) -> None:
        await signal_tree(
            Marker(attempt_id, str(self.root), directory.turn),
            number,
            shim=directory.shim(),
            groups=await self._off_loop(partial(self._groups, directory)),
            census=self._census_for(directory),
        )

    def _groups(
        self, directory: AttemptDirectory, *, tries: int = cgroups.REMOVE_TRIES
    ) -> list[str]:
        """The cgroups of this turn and those before it in which there still is a process."""
        known = dict.fromkeys(
            group
            for each in (directory, *directory.earlier())
            for group in (each.cgroup(), self._cgroup(each))
            if group is not None
        )
        return [group for group in known if not cgroups.remove(group, tries=tries)]

    def _cgroup(self, directory: AttemptDirectory) -> str | None:
        run_id, number = directory.attempt
        return cgroups.path_of(str(self.root), run_id, number, directory.turn)

    async def tidy(
        self, *directories: AttemptDirectory, kept: frozenset[str] = frozenset()
    ) -> None:
        """Delete what is not read once the run is over, but the files ``kept``. Idempotent.

        Raises:
            RuntimeUnavailable: Not all could be deleted; repeat it.
        """
        await self._delete([(each, partial(each.tidy, kept)) for each in directories])

    async def forget(self, *directories: AttemptDirectory) -> None:
        """Delete the attempt's directories. Idempotent.

        Raises:
            RuntimeUnavailable: Not all could be deleted; repeat it.
        """
        await self._delete([(each, each.delete) for each in directories])

    async def _delete(self, steps: Iterable[tuple[AttemptDirectory, Callable[[], None]]]) -> None:
        def done(directory: AttemptDirectory, step: Callable[[], None]) -> None:
            self._held.release(_name_of(directory))
            step()

        for directory, step in steps:
            try:
                await self._off_loop(partial(done, directory, step))
            except OSError as error:
                raise RuntimeUnavailable(f"cannot delete {directory.path}: {error}") from error

    async def orphans(
        self, known: Callable[[], Iterable[AttemptId]]
    ) -> list[tuple[AttemptId, int]]:
        """``(attempt id, pid)`` of processes of attempts of this root that are not in ``known``.

        Args:
            known: Called when all was looked at: what began after the look is not in it, and what
                began before is known by then.
        """
        root = str(self.root)
        found, names = await self._off_loop(lambda: (marked(root), cgroups.seen(root)))
        expected = frozenset(known())
        grouped = await self._off_loop(partial(cgroups.left_behind, names, expected))
        return sorted({*(each for each in found if each[0] not in expected), *grouped})

    def origin_of(self, pid: int) -> Origin | None:
        """The attempt of this root that the process belongs to, if any; see ``Origins``."""
        return self._origins.origin_of(pid)

    def _launch(
        self, directory: AttemptDirectory, command: Callable[[], ShimCommand]
    ) -> int | None:
        """Start a shim unless the attempt is claimed; returns its pid. Blocking."""
        # Spares a process only: of two that start it at once, the shim that gets the claim goes on.
        if directory.is_claimed:
            return None
        try:
            what = command()
            unkept = self.unkept_limits(what.limits) if what.limits else None
            if unkept is not None:
                raise UsageError(f"no limits can be kept here any more: {unkept}")
            directory.create(what.files, is_fed=what.is_fed)
            pid = self._start_shim(directory, what)
        except OSError as error:
            if error.errno == errno.E2BIG:
                raise UsageError(
                    "the command line and environment are longer than this system takes; "
                    'hand the task over with `stdin = "task"`'
                ) from error
            raise RuntimeUnavailable(f"cannot start a worker: {error}") from error
        for pause_s in LOOKS_AT_START_S:
            # Here, where a look costs a tenth of one on the loop.
            time.sleep(pause_s)
            if directory.worker() is not None:
                break
        return pid

    def _start_shim(self, directory: AttemptDirectory, what: ShimCommand) -> int:
        """Start it in its cgroup, where there are any; returns its pid."""
        argv = [SHELL.encode(), bytes(SHIM), bytes(directory.path), *what.argv]
        group, env = self._cgroup(directory), what.env
        pauses_s = iter(START_AGAIN_S)
        while True:
            try:
                if group is None:
                    return LAUNCHER.start(argv, env, what.cwd)
                with cgroups.starting(group):
                    # The shim, and what feeds a worker.
                    cgroups.make(group, what.limits, own_pids=2 if what.is_fed else 1)
                    variables = {**env, cgroups.CGROUP_VARIABLE.encode(): os.fsencode(group)}
                    return LAUNCHER.start(argv, variables, what.cwd, cgroup=os.fsencode(group))
            except OSError as error:
                pause_s = next(pauses_s, None)
                is_gone = group is not None and not os.path.exists(group)  # noqa: PTH110
                if pause_s is None or not (error.errno in TRANSIENT or is_gone):
                    raise
                time.sleep(pause_s)

    async def _until_started(self, directory: AttemptDirectory, shim_pid: int | None) -> None:
        """Wait, within bounds, until the worker runs or clearly never will."""
        loop = asyncio.get_running_loop()
        began_s, pause_s = loop.time(), 0.001
        while directory.worker() is None:
            shim = directory.shim()
            # A claim may be empty for a moment; a shim that lost the claim ends at once.
            is_there = shim_pid is not None and answers_signals(shim_pid)
            unclaimed = not is_there and not directory.is_claimed
            if unclaimed or directory.was_stopped or (shim is not None and not alive(shim)):
                return
            if loop.time() - began_s >= (START_BOUND_S if directory.is_claimed else CLAIM_BOUND_S):
                return
            await self._clock.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.05)

    async def _until_ended(
        self,
        worker: Identity,
        directory: AttemptDirectory,
        output: AttemptReader,
        *,
        pressure: Backpressure,
    ) -> AsyncGenerator[Seen, None]:
        """Yield what is seen while the worker lives; some output may be left to read after it."""
        news, ended = asyncio.Event(), asyncio.Event()

        def end() -> None:
            ended.set()
            news.set()

        # Followed before the first look: nothing can come between a look and the wait after it.
        with (
            self._poller.follow(directory.out, news, pressure.look),
            self._poller.follow(directory.err, news, pressure.look),
            on_end(worker, end),
            contextlib.ExitStack() as held,
        ):
            held.callback(pressure.let_go)
            while not ended.is_set():
                # Reading on only when all of it was taken: who keeps it sets the pace.
                found, more = await self._off_loop(output.read)
                pressure.look()
                for each in found:
                    yield each
                if not more:
                    await news.wait()
                    news.clear()

    async def _until_recorded(
        self, shim: Identity, directory: AttemptDirectory, output: AttemptReader
    ) -> AsyncGenerator[Seen, None]:
        """Yield what is seen until the exit is on record, or its shim is gone."""
        pause_s = 0.001
        while directory.exit() is None and alive(shim):
            await self._clock.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.05)
            if pause_s < READ_AGAIN_S:
                continue
            # A full disk holds up the record, and so may a worker that takes long to start.
            found, _ = await self._off_loop(output.read)
            for each in found:
                yield each


class PlainReader(Output):
    """The ``AttemptReader`` of a plain program, from there or behind what is not there any more."""

    def __init__(
        self,
        attempt_id: AttemptId,
        directory: AttemptDirectory,
        *,
        cursor: int,
        positions: Mapping[str, int],
    ) -> None:
        gone, known = directory.discarded(), dict(positions)
        for name, least in ((OUT, gone.out), (ERR, gone.err)):
            known[name] = max(known.get(name, 0), known.get(name + EMPTIED, 0), least)
        cursor = max(cursor, known.get(OUT + EMPTIED, 0), gone.out)
        super().__init__(directory.out, directory.err, attempt_id, cursor=cursor, positions=known)
        self._directory = directory

    def finish(self) -> list[Seen]:
        """See ``AttemptReader.finish``."""
        gone, at = self._directory.discarded(), self._out.gone
        # Before where this reader began: another one, before a crash, may have seen a result.
        seen = partial(has_result, start=gone.out - at, stop=self.begin - at)
        return self.rest(result_before=gone.has_result or seen(self._directory.out))


class _Rest:
    """What an ended worker wrote last, how it ended, and what is left of it.

    Blocking, for one thread at a time. Mostly one ``read`` is all: each is a turn on a thread.

    Args:
        attempt_id: Begins the keys of signals.
        directory: Of its turn.
        output: Was read until now.
        seen_alive: Its end was seen, whether or not it was recorded.
        left_in: The cgroups of the turn and those before it in which there still is a process.
    """

    def __init__(
        self,
        attempt_id: AttemptId,
        directory: AttemptDirectory,
        output: AttemptReader,
        *,
        seen_alive: bool,
        left_in: Callable[[AttemptDirectory], list[str]],
    ) -> None:
        self.signal: Signal | None = None
        """How it ended; None until all was read."""
        self.is_gone: bool | None = None
        """Whether nothing is left of it; False = maybe in its cgroups; None = who knows where."""
        self._attempt_id, self._directory, self._output = attempt_id, directory, output
        self._seen_alive, self._left_in = seen_alive, left_in
        self._written: Sizes | None = None

    def read(self) -> list[Seen]:
        """What comes next of its output; the last of it comes with ``signal``."""
        found: list[Seen] = []
        if not self._directory.discarded().is_all:
            # A child that it left behind may write for ever.
            self._written = self._written or self._directory.sizes()
            found, more = self._output.read(until=self._written)
            if more:
                return found
            found += self._output.finish()
        self._end()
        return found

    def _end(self) -> None:
        directory, exit_ = self._directory, self._directory.exit()
        if exit_ is None and not self._seen_alive:
            error = _why_vanished(directory)
            self.signal = Vanished(key=f"{self._attempt_id}:vanished", error=error)
            return
        stderr, _ = tail(directory.err, STDERR_BYTES_MAX + MARGIN_BYTES)
        group = directory.cgroup()
        limit = None if group is None else cgroups.reached_limit(group)
        self.signal = Exited(
            key=f"{self._attempt_id}:exit",
            exit=replace(exit_ or Exit(), limit=limit),
            drained=True,
            stderr_tail=clean(ending(stderr, STDERR_BYTES_MAX)) or None,
        )
        if all(each.ended_alone for each in (directory, *directory.earlier())):
            self.is_gone = not self._left_in(directory)
        elif _is_contained(directory):
            self.is_gone = False


def _name_of(directory: AttemptDirectory) -> str:
    """Of its attempt, whichever turn it is."""
    run_id, number = directory.attempt
    return f"{run_id}.{number}"


def _is_contained(directory: AttemptDirectory) -> bool:
    """Whether every worker of the attempt was started in a cgroup."""
    turns = (directory, *directory.earlier())
    return all(each.cgroup() is not None or each.worker() is None for each in turns)


def _why_vanished(directory: AttemptDirectory) -> str:
    if not directory.is_claimed:
        return "it has no attempt directory: its worker was never started, or in another home"
    if directory.was_stopped:
        return "the worker was stopped before it started"
    if directory.worker() is None:
        return "the worker was claimed but never ran"
    return "the worker is gone and its exit was not recorded (killed with its shim, or a reboot)"
