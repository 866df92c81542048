"""What the files of a contract were before the work, so that old ones do not count as done."""

from subagents.domain.run.values import Value


class Fingerprint(Value, frozen=True):
    """One file's content at one moment; the same content later is no change."""

    path: str
    """The path as the contract names it."""
    size: int
    """Bytes."""
    sha256: str
    """The digest of the whole content, or of its samples, in hexadecimal."""
    modified_ns: int
    """Tells a file that was written again from one that was left alone; decides nothing."""
    sampled: bool = False
    """Too large to be read whole: the digest is of pieces of it."""

    def is_as(self, other: "Fingerprint") -> bool:
        """Whether both are of the same content."""
        return (self.size, self.sha256, self.sampled) == (other.size, other.sha256, other.sampled)


class Baseline(Value, frozen=True):
    """The files of a contract that were there before the work; the others were not."""

    files: tuple[Fingerprint, ...] = ()
    unknown: tuple[str, ...] = ()
    """Paths of those that could not be read in time: whether they change is not known."""


def rebased(baseline: Baseline, left: Baseline, now: Baseline) -> Baseline:
    """What the files must differ from when a run goes on with its work.

    What others changed while it was not at work is not its work: such a file must differ from
    what they left. What was left alone keeps counting as it did.

    Args:
        baseline: What they had to differ from until now.
        left: What they were when it stopped working.
        now: What they are.
    """
    # What is unknown in any of the three looks stays unknown: it could be anybody's work.
    known, stopped, found = ({each.path: each for each in at.files} for at in (baseline, left, now))
    unknown = {*baseline.unknown, *left.unknown, *now.unknown}

    def after(path: str) -> Fingerprint | None:
        before, current = stopped.get(path), found.get(path)
        is_alone = before is current or (
            before is not None and current is not None and before.is_as(current)
        )
        return known.get(path) if is_alone else current

    files = (after(path) for path in sorted({*known, *stopped, *found} - unknown))
    return Baseline(
        files=tuple(each for each in files if each is not None), unknown=tuple(sorted(unknown))
    )
