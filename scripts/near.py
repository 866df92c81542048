"""Print the tests beside what changed since the last commit, or in it when nothing has.

    python -m scripts.near

For ``src/subagents/x/y.py`` these are ``tests/x/test_y.py`` or, where that is not there, the folder
``tests/x``; a test that changed is its own. Nothing is printed, and the exit code is 1, where no
test is near.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

SOURCES: Final = PurePosixPath("src/subagents")
TESTS: Final = PurePosixPath("tests")


def main() -> int:
    """Print them on one line."""
    found = near(changed(), Path.cwd())
    sys.stdout.write(" ".join(found) + "\n")
    return 0 if found else 1


def changed() -> list[str]:
    """Files that differ from the last commit, new ones too; without any, those of that commit."""
    uncommitted = _git("diff", "--name-only", "HEAD")
    uncommitted += _git("ls-files", "--others", "--exclude-standard")
    return uncommitted or _git("diff", "--name-only", "HEAD~1", "HEAD")


def near(files: Iterable[str], root: Path) -> list[str]:
    """The places of ``files``' tests that are there, each once."""
    found = {place for file in files if (place := _place(PurePosixPath(file), root)) is not None}
    return sorted(str(each) for each in found if not found & {*each.parents})


def _place(file: PurePosixPath, root: Path) -> PurePosixPath | None:
    if file.is_relative_to(SOURCES):
        folder = TESTS / file.relative_to(SOURCES).parent
        candidates = [folder / f"test_{file.stem}.py", *([folder] if folder != TESTS else [])]
    elif file.is_relative_to(TESTS) and file.suffix == ".py":
        is_test = file.name.startswith("test_")
        candidates = [file if is_test else file.parent] if file.parent != TESTS or is_test else []
    elif file.suffix == ".py":
        candidates = [TESTS / f"test_{file.stem}.py"]
    else:
        candidates = []
    return next((each for each in candidates if (root / each).exists()), None)


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
