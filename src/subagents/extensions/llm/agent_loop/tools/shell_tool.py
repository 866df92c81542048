"""The tool ``shell``: a command line in the working directory. It is no sandbox.

A command that runs too long, or is interrupted, is killed with all it started: its process group,
and every process that carries its mark, since children may have made a group of their own. What a
command leaves running in the background lives until the turn is over (``end_leftovers``).
"""

import asyncio
import contextlib
import os
import shutil
import signal
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from subagents.process_group import kill_group

MARK: Final = "SUBAGENTS_SHELL"
"""The variable of all that a command starts: worker mark, colon, number of the command."""
HEAD_BYTES: Final = 12_000
TAIL_BYTES: Final = 18_000
CHUNK_BYTES: Final = 64 * 1024
DRAIN_S: Final = 0.3
"""A command is over, but something in the background holds its output open."""
KILL_ROUNDS: Final = 50
KILL_PAUSE_S: Final = 0.02


class Ran(NamedTuple):
    """How a command went."""

    output: str
    """What came from both streams; its beginning and its end, when there is more."""
    exit_code: int
    note: str | None = None
    """What the model must know besides."""


class Shell:
    """Runs commands.

    Args:
        cwd: Where.
        hidden: Variables that commands do not get: the provider's key.
    """

    def __init__(self, cwd: str, hidden: Iterable[str]) -> None:
        self._cwd = cwd
        kept = {name: value for name, value in os.environ.items() if name not in set(hidden)}
        self._environ = kept
        self._mark = uuid.uuid4().hex
        self._program = shutil.which("bash") or "/bin/sh"
        self._count = 0

    async def run(self, command: str, *, timeout_s: float) -> Ran:
        """Run one command line; cancelling this kills it with all it started.

        Args:
            command: For ``bash -c``, or ``sh -c`` where there is no bash.
            timeout_s: It is killed after so long.
        """
        self._count += 1
        mark = f"{self._mark}:{self._count}"
        # Of our own: asyncio's process is not over before its pipe is closed, by whomever.
        reading, writing = os.pipe()
        output = _Output(reading)
        try:
            process = await asyncio.create_subprocess_exec(
                *(self._program, "-c", command),
                cwd=self._cwd,
                env={**self._environ, MARK: mark},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                start_new_session=True,
            )
        except BaseException:
            output.close()
            await _kill_marked(mark)  # cancelled half way, asyncio ends the shell alone
            raise
        finally:
            os.close(writing)
        note = None
        try:
            async with asyncio.timeout(timeout_s):
                await process.wait()
        except TimeoutError:
            note = f"killed: it ran longer than {timeout_s:g} s"
            await _kill(process, mark)
        except BaseException:
            await _kill(process, mark)
            raise
        finally:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(output.ended.wait(), DRAIN_S)
            output.close()
        if note is None and _carrying(mark):
            note = "it left processes running in the background; they end with your turn"
        code = process.returncode
        return Ran(output.text(), -signal.SIGKILL if code is None else code, note)

    async def end_leftovers(self) -> None:
        """Kill all that commands left behind."""
        await _kill_marked(f"{self._mark}:")


class _Output:
    """The beginning and the end of what comes out of a pipe, read from within the running loop."""

    def __init__(self, descriptor: int) -> None:
        self.ended = asyncio.Event()
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0
        self._is_open = True
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    def close(self) -> None:
        """Read no more. Idempotent."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return
        if data:
            self._add(data)
        else:
            self.ended.set()
            self.close()

    def _add(self, data: bytes) -> None:
        self._size += len(data)
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        del self._tail[:-TAIL_BYTES]

    def text(self) -> str:
        left_out = self._size - len(self._head) - len(self._tail)
        note = f"\n[… {left_out:,} bytes left out …]\n".encode() if left_out else b""
        return (bytes(self._head) + note + bytes(self._tail)).decode("utf-8", "replace")


async def _kill(process: asyncio.subprocess.Process, mark: str) -> None:
    kill_group(process.pid)
    await _kill_marked(mark)
    await process.wait()


async def _kill_marked(mark: str) -> None:
    """Again and again, since a process may fork while the others are looked at."""
    for _ in range(KILL_ROUNDS):
        found = _carrying(mark)
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(KILL_PAUSE_S)


def _carrying(mark: str) -> list[int]:
    """Live processes whose mark begins so; empty where there is no ``/proc``."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            variables = (entry / "environ").read_bytes().split(b"\0")
            if any(_is_of(each, wanted) for each in variables) and not _is_zombie(entry):
                found.append(int(entry.name))
    return found


def _is_of(variable: bytes, wanted: bytes) -> bool:
    return variable.startswith(wanted) if wanted.endswith(b":") else variable == wanted


def _is_zombie(entry: Path) -> bool:
    return (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
