"""The files of a run that others may read: what its own contract or report names, and no other.

They are opened below the run's working directory, name by name, so that no link and no ``..`` leads
out of it (``engine/verification/work_root.py``).
"""

import os
import weakref
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from subagents.domain.rules.path_patterns import pattern_of
from subagents.domain.run.run import Run
from subagents.engine.verification.work_root import FileFault, WorkRoot
from subagents.errors import Forbidden, NotFound
from subagents.ports import OffLoop

CHUNK_BYTES: Final = 256 * 1024


class NamedFile(NamedTuple):
    """A file that is named, as it is now."""

    path: str
    size: int | None
    """In bytes; None = it cannot be read."""
    problem: str | None = None
    """Why not."""


class OpenedFile:
    """One of them, open for reading; whoever opened it closes it.

    Args:
        descriptor: Of a regular file.
        off_loop: Reads it.
    """

    def __init__(self, descriptor: int, off_loop: OffLoop) -> None:
        self._descriptor, self._off_loop = descriptor, off_loop
        # Also when nobody ever asks for a page.
        self.close = weakref.finalize(self, os.close, descriptor)
        """Repeating it is harmless."""
        self.size = os.fstat(descriptor).st_size

    async def pages(self, offset: int, length: int) -> AsyncIterator[bytes]:
        """So many bytes from there on, then it is closed; fewer when it was made shorter."""
        end = offset + length
        try:
            while offset < end:
                at, most = offset, min(CHUNK_BYTES, end - offset)
                page = await self._off_loop(lambda: os.pread(self._descriptor, most, at))  # noqa: B023 - awaited at once
                if not page:
                    return
                offset += len(page)
                yield page
        finally:
            self.close()


class ArtifactFiles:
    """See the module.

    Args:
        off_loop: Looks at files.
    """

    def __init__(self, off_loop: OffLoop) -> None:
        self._off_loop = off_loop

    async def named(self, run: Run) -> Sequence[NamedFile]:
        """What the contract and the report name, in this order, but for what patterns match."""
        root, paths = _root_of(run), list(dict.fromkeys(_paths(run)))
        return await self._off_loop(lambda: [_look(root, path) for path in paths])

    def patterns(self, run: Run) -> Sequence[str]:
        """What the contract names with wildcards."""
        contract = run.spec.verification
        return [each.path for each in (contract.artifacts if contract else ()) if each.is_glob]

    async def open(self, run: Run, path: str) -> OpenedFile:
        """Open one that is named, or that a pattern of the contract matches.

        Raises:
            NotFound: Nobody named it, or it is not there.
            Forbidden: It lies outside of the run's working directory, or is no regular file.
        """
        patterns = (pattern_of(each, field="path") for each in self.patterns(run))
        if path not in _paths(run) and not any(each.matches(path) for each in patterns):
            raise NotFound(
                f'neither the contract nor the report of run {run.id} names "{path[:200]}"',
                hint=f"see: GET /v1/runs/{run.id}/artifacts",
            )
        root = _root_of(run)
        try:
            found = await self._off_loop(lambda: root.open_regular(path))
        except FileFault as error:
            raise Forbidden(f"file {path[:200]} {error}", guardrail="workspace") from error
        except (OSError, ValueError) as error:
            raise NotFound(f"file {path[:200]} cannot be read: {_words(error)}") from error
        return OpenedFile(found, self._off_loop)


def _root_of(run: Run) -> WorkRoot:
    cwd = run.resolved.cwd
    return WorkRoot(cwd, run.resolved.contract_root or os.path.realpath(cwd))


def _paths(run: Run) -> list[str]:
    contract, report = run.spec.verification, run.report
    if report is None and run.attempts:
        report = run.attempts[-1].reported.report
    return [
        *(each.path for each in (contract.artifacts if contract else ()) if not each.is_glob),
        *(each.path for each in (report.artifacts if report else ())),
    ]


def _look(root: WorkRoot, path: str) -> NamedFile:
    try:
        found = root.open_regular(path)
    except (OSError, ValueError, FileFault) as error:
        return NamedFile(path, None, _words(error))
    try:
        return NamedFile(path, os.fstat(found).st_size)
    finally:
        os.close(found)


def _words(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
