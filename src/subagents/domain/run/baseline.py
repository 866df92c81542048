"""What the files of a contract were before the work, so that old ones do not count as done."""

from subagents.domain.run.values import Value


class Fingerprint(Value, frozen=True):
    """One file's content at one moment; the same content later is no change."""

    path: str
    """As the contract names it."""
    size: int
    """Bytes."""
    sha256: str
    """In hexadecimal: of the whole content, or of its samples."""
    modified_ns: int
    """Tells a file that was written again from one that was left alone; decides nothing."""
    sampled: bool = False
    """Too large to be read whole: the digest is of pieces of it."""


class Baseline(Value, frozen=True):
    """The files of a contract that were there before the work; the others were not."""

    files: tuple[Fingerprint, ...] = ()
    unknown: tuple[str, ...] = ()
    """Paths of those that could not be read in time: whether they change cannot be told."""
