"""Who was turned away, and why: one line in a file, and an event on the run concerned.

A refusal must cost the refused more than us: lines are written off the loop, in order, at most
``PENDING_MAX`` wait; the file has a bounded size, and so has what a run's journal keeps of them.
"""

import asyncio
import logging
import os
from collections import deque
from pathlib import Path
from typing import Final

import msgspec

from subagents.domain.run.values import RunId
from subagents.engine.engine import Engine
from subagents.errors import Forbidden, NotFound, SubagentsError, Unauthorized
from subagents.ports import OffLoop

log = logging.getLogger(__name__)

FILE_NAME: Final = "refusals.jsonl"
FILE_BYTES_MAX: Final = 5 * 1024 * 1024
"""Then it becomes ``refusals.jsonl.1``, over the one before."""
PENDING_MAX: Final = 1000
"""Refusals not written yet; more at once are dropped."""
FULL_RUNS_MAX: Final = 10_000
TAIL_BYTES: Final = 64 * 1024
IDENTITY_GUARDRAILS: Final = frozenset({"ownership", "role"})
"""Who may touch what. Other guardrails bound how much somebody may do: no refusal of a person."""


class Refusal(msgspec.Struct, frozen=True, rename="camel"):
    """One line of the file."""

    at_ms: int
    call: str
    """``POST /v1/runs`` or a tool's name."""
    reason: str
    by: str
    """The session in whose name it was made; ``unknown`` when that was not proved."""
    peer: str
    """``pid 4711`` on the Unix socket, ``127.0.0.1:40112`` on TCP; empty = not known."""
    run_id: str | None = None


def is_refusal(error: SubagentsError) -> bool:
    """Whether an error turned somebody away for who it is; those are remembered."""
    if isinstance(error, Forbidden):
        return error.guardrail in IDENTITY_GUARDRAILS
    return isinstance(error, Unauthorized)


class Refusals:
    """Writes refusals to a file, mode 0600, and into the journals of the runs concerned.

    In the background and one after the other: the caller that was refused does not wait for it.
    """

    def __init__(self, file: Path, off_loop: OffLoop, engine: Engine) -> None:
        self.file = file
        self._off_loop = off_loop
        self._engine = engine
        self.total = 0
        """Added since this process started, dropped ones too."""
        self._pending: deque[Refusal] = deque()
        self._writing: asyncio.Task[None] | None = None
        # Runs whose journal has enough of them, or that do not exist: not asked again.
        self._full: set[RunId] = set()

    def add(self, refusal: Refusal) -> None:
        """Have it written; dropped when too many wait already."""
        self.total += 1
        if len(self._pending) >= PENDING_MAX:
            return
        self._pending.append(refusal)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write(), name="refusals")

    async def flush(self) -> None:
        """Return when all that was added is written."""
        while self._writing is not None and not self._writing.done():
            await asyncio.wait({self._writing})

    async def recent(self) -> list[Refusal]:
        """The newest ones that the file holds, oldest first; at most ``TAIL_BYTES`` of them."""
        await self.flush()
        return await self._off_loop(lambda: _tail(self.file))

    async def _write(self) -> None:
        while self._pending:
            # Everything that came meanwhile goes into one write.
            batch = list(self._pending)
            self._pending.clear()
            try:
                await self._off_loop(lambda batch=batch: _append(self.file, batch))  # type: ignore[misc]  # the default binds this batch
            except OSError as error:
                log.warning("%s refusals could not be written: %s", len(batch), error)
            for refusal in batch:
                await self._journal(refusal)

    async def _journal(self, refusal: Refusal) -> None:
        if refusal.run_id is None or RunId(refusal.run_id) in self._full:
            return
        run_id = RunId(refusal.run_id)
        try:
            if await self._engine.control.note_refusal(
                run_id,
                at_ms=refusal.at_ms,
                call=refusal.call,
                reason=refusal.reason,
                by=f"{refusal.by} ({refusal.peer})" if refusal.peer else refusal.by,
            ):
                return
        except NotFound:
            # A forged token can name any run.
            log.debug("a refused token names run %s, which is not known", run_id)
        except SubagentsError as error:
            log.warning("a refusal of run %s could not be journaled: %s", run_id, error)
            return
        if len(self._full) >= FULL_RUNS_MAX:
            self._full.clear()
        self._full.add(run_id)


def _append(file: Path, refusals: list[Refusal]) -> None:
    try:
        if file.stat().st_size > FILE_BYTES_MAX:
            file.replace(file.with_name(f"{file.name}.1"))
    except FileNotFoundError:
        log.debug("%s is begun", file)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    with os.fdopen(os.open(file, flags, 0o600), "ab") as opened:
        opened.write(b"".join(msgspec.json.encode(each) + b"\n" for each in refusals))


def _tail(file: Path) -> list[Refusal]:
    try:
        with file.open("rb") as opened:
            start = max(opened.seek(0, os.SEEK_END) - TAIL_BYTES, 0)
            opened.seek(start)
            lines = opened.read().split(b"\n")
    except FileNotFoundError:
        return []
    found: list[Refusal] = []
    # The first line is cut where reading did not begin at the start of the file.
    for line in lines[1:] if start else lines:
        try:
            found.append(msgspec.json.decode(line, type=Refusal))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # Empty after the last newline, or torn by a full disk.
            continue
    return found
