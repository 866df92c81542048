"""Results that are too long for a row: all of it in a file, the end of it in the run.

The file is durable before the event that names it is applied, so whatever a crash leaves, a run
that names a file has it. It holds what the run would: text without secrets.
"""

import hashlib
import logging
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from typing import Final

from subagents.domain.redaction.redact import MARGIN_BYTES, Redactor, ending
from subagents.domain.run.run import ResultFile, Run
from subagents.domain.run.signals import ResultSeen
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import RESULT_BYTES_MAX
from subagents.engine.kernel.kernel import Kernel
from subagents.errors import NotFound
from subagents.ports import LongResult, ResultLog

log = logging.getLogger(__name__)

PIECE_CHARS: Final = 64 * 1024
"""How much is redacted in one go: some 0.1 ms in which no other thread of this process runs."""
PAGE_BYTES: Final = 256 * 1024
"""How much is read in one go."""
_END_OF_WORD: Final = re.compile(r"[\s,;\"'](?=[^\s,;\"']*\Z)")
"""The last place where a long line can be parted without parting what may be a secret."""


class Results:
    """Keeps long results, and reads results of any length.

    Args:
        kernel: Its ledger knows which files are still named.
        files: Where they are.
        bytes_max: Kept of one result; of a longer one the end.
    """

    def __init__(self, kernel: Kernel, files: ResultLog, *, bytes_max: int) -> None:
        self._ledger, _, self._off_loop, _ = kernel
        self._files = files
        self._bytes_max = bytes_max

    async def kept(self, run: Run, seen: ResultSeen | LongResult) -> ResultSeen:
        """The same result as it fits into its run; what does not fit is durable on return."""
        if isinstance(seen, LongResult):
            short, pieces, size = seen.seen, seen.pieces(self._bytes_max), seen.seen.bytes_total
        else:
            if len(seen.text) * 4 <= RESULT_BYTES_MAX:
                return seen  # no character takes more than four bytes: it need not be encoded
            data = seen.text.encode("utf-8", "replace")
            if len(data) <= RESULT_BYTES_MAX:
                return seen
            size = len(data)
            text = ending(data, self._bytes_max) if size > self._bytes_max else seen.text
            short = replace(
                seen,
                text=ending(data[-(RESULT_BYTES_MAX + MARGIN_BYTES) :], RESULT_BYTES_MAX),
                bytes_total=size,
            )
            pieces = iter((text,))
        try:
            return await self._off_loop(partial(self._keep, run, short, pieces, size))
        except OSError as error:
            # The end of it is in the run, which says that it was cut.
            log.warning("the result of %s cannot be kept whole: %s", run.id, error)
            return short

    def _keep(self, run: Run, seen: ResultSeen, pieces: Iterator[str], size: int) -> ResultSeen:
        # The same name when the same result is seen again: after a crash it replaces itself.
        turn = f"{seen.key}/{run.attempt.turn.number}".encode()
        name = f"{run.attempt.number}-{hashlib.sha256(turn).hexdigest()[:16]}"
        clean = _redacted(pieces, self._ledger.secrets_of(run))
        kept = self._files.keep(run.id, name, clean, beside=self._named(run))
        end = self._files.read(run.id, name, max(kept - RESULT_BYTES_MAX - MARGIN_BYTES, 0), kept)
        if kept <= RESULT_BYTES_MAX and size <= self._bytes_max:
            # Without its events, or its secrets, it fits after all.
            return replace(seen, text=end.decode(), bytes_total=0)
        # Redacted, it has another size; what was not kept counts as it was.
        total = kept if size <= self._bytes_max else max(size, kept + 1)
        return replace(
            seen,
            text=ending(end, RESULT_BYTES_MAX),
            bytes_total=total,
            file=ResultFile(name=name, size=kept),
        )

    def _named(self, run: Run) -> frozenset[str]:
        """Files that the run names, in memory or on the disk."""
        known = (self._ledger.live.get(run.id), self._ledger.published.get(run.id))
        newest = (each.attempts[-1] for each in known if each is not None and each.attempts)
        files = (attempt.evidence.result_file for attempt in newest)
        return frozenset(file.name for file in files if file is not None)

    def size(self, run: Run) -> int:
        """How many bytes of the run's result can be read."""
        return 0 if run.conclusion is None else run.conclusion.bytes_kept

    async def read(self, run: Run, offset: int, bytes_max: int) -> bytes:
        """At most so many bytes of the run's result as UTF-8, from there on.

        Raises:
            NotFound: The file is gone; what is in the run itself is all that is left.
        """
        ended = run.conclusion
        if ended is None:
            return b""
        file = ended.result_file
        if file is None:
            return (ended.result or "").encode()[offset : offset + bytes_max]
        found = b""
        if offset < file.size:
            try:
                found = await self._off_loop(
                    lambda: self._files.read(
                        run.id, file.name, offset, min(bytes_max, file.size - offset)
                    )
                )
            except OSError as error:
                raise self._gone(run, error) from error
            if not found:
                raise self._gone(run, OSError("it is too short"))
        behind = offset + len(found) - file.size
        if behind >= 0:
            found += file.more.encode()[behind:][: bytes_max - len(found)]
        return found

    @staticmethod
    def _gone(run: Run, error: OSError) -> NotFound:
        return NotFound(
            f"the file with the whole result of {run.id} cannot be read: {error.strerror or error}",
            hint=f"its end is kept in the run: subagents show {run.id}",
        )

    async def pages(
        self, run: Run, *, offset: int = 0, limit: int | None = None
    ) -> AsyncIterator[bytes]:
        """The result from ``offset`` on, at most ``limit`` bytes, in pages; see ``read``."""
        end = self.size(run) if limit is None else min(offset + limit, self.size(run))
        while offset < end and (
            page := await self.read(run, offset, min(PAGE_BYTES, end - offset))
        ):
            offset += len(page)
            yield page

    async def forget(self, run: Run) -> None:
        """Delete what is kept of the run; it goes with its run."""
        await self._off_loop(partial(self._files.forget, run.id))


def _redacted(pieces: Iterable[str], own: tuple[str, ...]) -> Iterator[bytes]:
    """The text without secrets, with what a private key needs remembered from line to line."""
    redactor = Redactor()
    for block in _blocks(pieces):
        lines = block.split("\n")
        clean, redactor = redactor.fold(lines, own)
        yield "\n".join(clean).encode("utf-8", "replace")


def _blocks(pieces: Iterable[str]) -> Iterator[str]:
    """The text in blocks that end where no secret can be in two of them."""
    held = ""
    for piece in pieces:
        held += piece
        at = 0
        while len(held) - at > PIECE_CHARS:
            part = held[at : at + PIECE_CHARS]
            end = part.rfind("\n") + 1
            if not end:
                word = _END_OF_WORD.search(part, PIECE_CHARS - MARGIN_BYTES)
                end = word.end() if word else len(part)
            yield part[:end]
            at += end
        held = held[at:]
    yield held
