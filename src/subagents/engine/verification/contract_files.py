"""Reads the files that contracts name, without trusting whoever made them.

Nothing but a regular file is ever read, and every read looks between chunks whether the time is
over. What lies where is asked of ``work_root`` alone.
"""

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, Final

from subagents.domain.run.baseline import Baseline, Fingerprint
from subagents.engine.verification.work_root import FileFault, WorkRoot

WHOLE_BYTES_MAX: Final = 1024 * 1024 * 1024
"""So much of a contract's files is read before the work, under a second where the disk keeps up;
of what is larger, pieces."""
ACCEPTED: Final = "to accept it unchanged: --verify-existing (fresh: false)"
SAMPLES: Final = 64
CHUNK_BYTES: Final = 1024 * 1024

NOT_THE_CHECKERS_FAULT: Final = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.EACCES,
        errno.EPERM,
        errno.EISDIR,
        errno.ENXIO,
    }
)
"""What a worker can do to a path; any other error (EIO, EMFILE, …) says nothing about the work."""


class Abandoned(Exception):
    """The time for all checks is over: the rest of this one would be thrown away."""


def never() -> bool:
    return False


def open_regular(path: str, root: WorkRoot) -> BinaryIO:
    """``WorkRoot.open_regular`` as an unbuffered file; raises the same."""
    descriptor = root.open_regular(path)
    return open(descriptor, "rb", buffering=0, closefd=True)  # noqa: PTH123


def read_bounded(
    file: BinaryIO, size: int, bytes_max: int, what: str, abandoned: Callable[[], bool]
) -> bytearray:
    """The whole file; raises what ``read_pieces`` does."""
    data = bytearray()
    for piece in read_pieces(file, size, bytes_max, what, abandoned):
        data += piece
    return data


def read_pieces(
    file: BinaryIO, size: int, bytes_max: int, what: str, abandoned: Callable[[], bool]
) -> Iterator[bytes]:
    """The file from its beginning, a megabyte at a time.

    Raises:
        FileFault: It is larger than ``bytes_max``, beyond which no file is checked as ``what``.
        Abandoned: ``abandoned`` said so.
    """
    done = 0
    file.seek(0)
    # What is read counts as well: a size can lie (procfs) and grow while we read.
    while max(size, done) <= bytes_max and (chunk := file.read(CHUNK_BYTES)):
        yield chunk
        done += len(chunk)
        if abandoned():
            raise Abandoned
    if max(size, done) > bytes_max:
        raise FileFault(f"is larger than the {bytes_max} bytes that are checked as {what}")


def sha256(file: BinaryIO, abandoned: Callable[[], bool] = never) -> str:
    """Of the whole content, in hexadecimal."""
    digest = hashlib.sha256()
    file.seek(0)
    while chunk := file.read(CHUNK_BYTES):
        digest.update(chunk)
        if abandoned():
            raise Abandoned
    return digest.hexdigest()


def sampled_sha256(file: BinaryIO, size: int, abandoned: Callable[[], bool] = never) -> str:
    """Of ``SAMPLES`` pieces of 1 MiB spread over the file, its beginning and end among them."""
    digest = hashlib.sha256()
    last = max(size - CHUNK_BYTES, 0)
    for number in range(SAMPLES):
        file.seek(last * number // (SAMPLES - 1))
        digest.update(file.read(CHUNK_BYTES))
        if abandoned():
            raise Abandoned
    return digest.hexdigest()


def take_baseline(
    paths: Iterable[str],
    root: WorkRoot,
    *,
    unknown: Iterable[str] = (),
    abandoned: Callable[[], bool] = never,
    whole_bytes_max: int = WHOLE_BYTES_MAX,
) -> Baseline:
    """Fingerprint those of these files that are there; blocking.

    What is no file that can be read inside, such as a link that leads nowhere, counts by its mark.

    Args:
        paths: As the contract names them, or as its patterns match them.
        unknown: Patterns that match too much to be known.
        root: Where they are.
        abandoned: Asked between reads; from True on the rest is unknown.
        whole_bytes_max: So much is read in all; what goes beyond that is sampled.
    """
    files: list[Fingerprint] = []
    left_out = [*unknown]
    left = whole_bytes_max
    for path in dict.fromkeys(paths):
        if abandoned():
            left_out.append(path)
            continue
        try:
            found = _fingerprint(path, root, left, abandoned)
        except (Abandoned, OSError):
            left_out.append(path)
            continue
        if found is not None:  # else: a file there later was made by the work
            left -= 0 if found.sampled else found.size
            files.append(found)
    return Baseline(files=tuple(files), unknown=tuple(left_out))


def _fingerprint(
    path: str, root: WorkRoot, whole_bytes_max: int, abandoned: Callable[[], bool]
) -> Fingerprint | None:
    try:
        with open_regular(path, root) as file:
            found = os.fstat(file.fileno())
            is_sampled = found.st_size > whole_bytes_max
            digest = (
                sampled_sha256(file, found.st_size, abandoned)
                if is_sampled
                else sha256(file, abandoned)
            )
    except (FileFault, OSError) as error:
        return _marked(path, root, error)
    return Fingerprint(
        path=path,
        size=found.st_size,
        sha256=digest,
        modified_ns=found.st_mtime_ns,
        sampled=is_sampled,
    )


def _marked(path: str, root: WorkRoot, error: Exception) -> Fingerprint | None:
    """Of what cannot be read; None = nothing is there. Raises what says nothing about the work."""
    if isinstance(error, OSError) and error.errno not in NOT_THE_CHECKERS_FAULT:
        raise error
    if (mark := root.mark(path)) is None:
        return None
    # Behind a NUL byte, so that no text file with the same words is taken for it.
    digest = hashlib.sha256(b"\0" + mark).hexdigest()
    return Fingerprint(path=path, size=len(mark), sha256=digest, modified_ns=0)


def has_changed(
    path: str, before: Fingerprint, root: WorkRoot, abandoned: Callable[[], bool]
) -> bool:
    """Whether what is there is another thing than before the work, or gone."""
    try:
        with open_regular(path, root) as file:
            return unchanged(file, before, abandoned) is None
    except (FileFault, OSError) as error:
        now = _marked(path, root, error)
    return now is None or not now.is_as(before)


def unchanged(file: BinaryIO, before: Fingerprint, abandoned: Callable[[], bool]) -> str | None:
    """Why the file is still what it was before the work; None = it changed."""
    now = os.fstat(file.fileno())
    if now.st_size != before.size:
        return None
    digest = (
        sampled_sha256(file, now.st_size, abandoned) if before.sampled else sha256(file, abandoned)
    )
    if digest != before.sha256:
        return None
    text = "was there before the run and did not change"
    if before.sampled:
        text += f" in its size or in {SAMPLES} samples of 1 MiB"
    if now.st_mtime_ns != before.modified_ns:
        text += " (written again or touched, its content is the same)"
    return f"{text}; {ACCEPTED}"
