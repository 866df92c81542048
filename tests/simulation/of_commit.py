"""Which seeds are tried: others with every commit, the same for all who have it."""

import subprocess
from functools import cache
from pathlib import Path

WITHOUT_GIT = "5" * 40
SEEDS = 10**9


@cache
def commit() -> str:
    """The hash of what is checked out; where there is no git, one that never changes."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        done = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return WITHOUT_GIT
    return done.stdout.strip()


def seeds_of_commit(count: int, of: str | None = None) -> range:
    """So many seeds in a row, which those that are tried every time are hardly among."""
    start = int(of or commit(), 16) % SEEDS
    return range(start, start + count)
