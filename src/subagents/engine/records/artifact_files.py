"""The files of a run that others may read: what its own contract or report names, and no other.

They are opened below the run's working directory, name by name, so that no link and no ``..`` leads
out of it (``engine/verification/work_root.py``). In a cluster that directory may be on another
machine: there, what passed the contract is copied when it passes, and the copy is what is read.
"""

import logging
import os
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from subagents.domain.rules.path_patterns import pattern_of
from subagents.domain.run.run import Run
from subagents.domain.run.spec import Contract
from subagents.domain.run.values import RunId
from subagents.engine.verification.file_trees import TooManyFiles, matching_files
from subagents.engine.verification.work_root import FileFault, WorkRoot, real
from subagents.errors import Forbidden, NotFound, StoreUnavailable
from subagents.ports import ArtifactLog, OffLoop

log = logging.getLogger(__name__)

CHUNK_BYTES: Final = 256 * 1024


class NamedFile(NamedTuple):
    """A file that is named, as it is now."""

    path: str
    size: int | None
    """Its size in bytes; None = it cannot be read."""
    problem: str | None = None
    """Why it cannot be read."""


class OpenedFile:
    """One of them, or its copy, open for reading; whoever opened it closes it.

    Args:
        read: Reads ``(offset, bytes_max)`` of it; blocks.
        size: Its size in bytes.
        off_loop: Runs ``read``.
        close: Called once.
    """

    def __init__(
        self,
        read: Callable[[int, int], bytes],
        size: int,
        off_loop: OffLoop,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._read, self._off_loop = read, off_loop
        self.size = size
        # Also when no page is ever asked for.
        self.close = weakref.finalize(self, close)
        """Repeating it is harmless."""

    async def pages(self, offset: int, length: int) -> AsyncIterator[bytes]:
        """So many bytes from there on, then it is closed; fewer when it was made shorter."""
        end = offset + length
        try:
            while offset < end:
                most = min(CHUNK_BYTES, end - offset)
                page = await self._off_loop(partial(self._read, offset, most))
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
        copies: Keeps what passed; None = the files themselves are all there is.
    """

    def __init__(self, off_loop: OffLoop, copies: ArtifactLog | None = None) -> None:
        self._off_loop = off_loop
        self._copies = copies

    async def named(self, run: Run) -> Sequence[NamedFile]:
        """What the contract and the report name, in this order, but for what patterns match."""
        root, paths = _root_of(run), list(dict.fromkeys(_paths(run)))

        def look() -> list[NamedFile]:
            sizes = {} if self._copies is None else self._copies.sizes(run.id)
            return [
                NamedFile(path, sizes[path]) if path in sizes else _look(root, path)
                for path in paths
            ]

        return await self._off_loop(look)

    async def keep(self, run: Run) -> None:
        """Copy what passed its contract, where that is done; called where the files are.

        A file of which there can be no copy is no fault of the run: it stays where it is.

        Raises:
            Fenced: The run is another node's.
        """
        contract = run.spec.verification
        if self._copies is not None and contract is not None and contract.artifacts:
            await self._off_loop(partial(_keep_all, self._copies, run, contract))

    async def forget(self, run_id: RunId) -> None:
        """Drop the copies; they go with their run."""
        if self._copies is not None:
            await self._off_loop(partial(self._copies.forget, run_id))

    def patterns(self, run: Run) -> Sequence[str]:
        """What the contract names with wildcards."""
        contract = run.spec.verification
        return [each.path for each in (contract.artifacts if contract else ()) if each.is_glob]

    async def open(self, run: Run, path: str) -> OpenedFile:
        """Open one that is named, or that a pattern of the contract matches.

        Raises:
            NotFound: Neither names it, or it is not there.
            Forbidden: It lies outside of the run's working directory, or is no regular file.
        """
        patterns = (pattern_of(each, field="path") for each in self.patterns(run))
        if path not in _paths(run) and not any(each.matches(path) for each in patterns):
            raise NotFound(
                f'neither the contract nor the report of run {run.id} names "{path[:200]}"',
                hint=f"see: GET /v1/runs/{run.id}/artifacts",
            )
        copies = self._copies
        if copies is not None:
            size = (await self._off_loop(partial(copies.sizes, run.id))).get(path)
            if size is not None:
                return OpenedFile(partial(copies.read, run.id, path), size, self._off_loop)
        root = _root_of(run)
        try:
            found = await self._off_loop(lambda: root.open_regular(path))
        except FileFault as error:
            raise Forbidden(f"file {path[:200]} {error}", guardrail="workspace") from error
        except (OSError, ValueError) as error:
            raise NotFound(f"file {path[:200]} cannot be read: {_words(error)}") from error
        size, close = os.fstat(found).st_size, partial(os.close, found)
        return OpenedFile(lambda at, most: os.pread(found, most, at), size, self._off_loop, close)


def _keep_all(copies: ArtifactLog, run: Run, contract: Contract) -> None:
    root = _root_of(run)
    for artifact in contract.artifacts:
        try:
            pattern = pattern_of(artifact.path, field="path") if artifact.is_glob else None
            paths = [artifact.path] if pattern is None else matching_files(pattern, root)
        except (OSError, FileFault, TooManyFiles) as error:
            log.warning("no copy of %s of %s is kept: %s", artifact.path, run.id, error)
            continue
        for path in paths:
            try:
                with os.fdopen(root.open_regular(path), "rb") as file:
                    is_kept = copies.keep(run.id, path, file)
            except (OSError, ValueError, FileFault, StoreUnavailable) as error:
                log.warning("no copy of %s of %s is kept: %s", path, run.id, error)
            else:
                if not is_kept:
                    log.info("%s of %s is too large to be copied", path, run.id)


def _root_of(run: Run) -> WorkRoot:
    cwd = run.resolved.cwd
    return WorkRoot(cwd, run.resolved.contract_root or real(cwd))


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
