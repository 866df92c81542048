"""The version of this package, and what tells its code from other code of that version.

In its own module, so that reading it does not import the root.
"""

# Every command begins here, and pathlib takes longer than all of this.
# ruff: noqa: PTH100, PTH113, PTH116, PTH118, PTH120, PTH123
import os

__version__ = "0.2.0"

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def code_stamp() -> str:
    """Where the code here is from and which it is, in two words; "" = nothing says so.

    Of an installed package ``wheel`` and a digest of what its installer recorded of its files,
    wherever they are; of a checkout a digest of its path, and its commit.
    """
    above, name = os.path.split(_PACKAGE)
    try:
        with open(f"{above}/{name}-{__version__}.dist-info/RECORD", "rb") as record:
            own = [line.strip() for line in record if line.startswith(b"subagents/")]
        # Which files an installer compiled says nothing about what they are compiled from.
        return f"wheel {_digest(*sorted(each for each in own if b'__pycache__' not in each))}"
    except OSError:
        git = f"{os.path.dirname(above)}/.git"
    try:
        if os.path.isfile(git):  # a worktree has it elsewhere
            with open(git, encoding="utf-8") as link:
                git = os.path.join(os.path.dirname(git), link.read()[len("gitdir: ") :].strip())
        with open(f"{git}/logs/HEAD", "rb") as log:
            commit = log.read().splitlines()[-1].split()[1].decode()
        return f"{_digest(os.fsencode(_PACKAGE))} {commit}"
    except (OSError, IndexError, UnicodeDecodeError):
        return ""


def _digest(*parts: bytes) -> int:
    """The rest of a division by a prime: what has better digests is a module more at each start."""
    return int.from_bytes(b"\n".join(parts), "big") % (2**61 - 1)


_KNOWN: dict[str, bool] = {}


def is_other_code(theirs: str) -> bool:
    """Whether a daemon of this version runs other code than is here now.

    Args:
        theirs: Its ``code_stamp`` when it started, and that time in milliseconds since the epoch.
            What is from elsewhere cannot be told apart, and is not.
    """
    if theirs not in _KNOWN:  # functools is a module more at each start, too
        _KNOWN[theirs] = _is_other(theirs)
    return _KNOWN[theirs]


def _is_other(theirs: str) -> bool:
    place, code, started_ms, *_ = (*theirs.split(), "", "", "0")
    here, _, ours = code_stamp().partition(" ")
    if here != place or ours == code:
        return False
    # A commit alone changes no code, nor does one of what the daemon was started with.
    return here == "wheel" or any(
        os.stat(os.path.join(folder, name)).st_mtime * 1000 > int(started_ms)
        for folder, _, names in os.walk(_PACKAGE)
        for name in names
        if name.endswith(".py")
    )
