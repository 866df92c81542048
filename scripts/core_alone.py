"""Run the core's tests in a copy that has no extension.

    python -m scripts.core_alone [arguments of pytest]

The copy has what git knows of the work tree, without ``src/subagents/extensions`` but for the
suites of ``testing``, and without the tests of extensions. What imports an extension, or needs one
to be there, is red. With ``--tier`` the tests of a later tier are run, too.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

EXTENSIONS: Final = Path("src/subagents/extensions")
KEPT: Final = frozenset({"__init__.py", "testing"})
"""The suites of the core's ports have no feature."""
TRIED: Final = ("config", "api", "cli", "client")
"""Folders of ``tests``."""
IMPORTED: Final = ("engine", "store", "runtimes", "couriers", "ports")
"""Those of the engine and of adapters, which ask for no extension: to be quick, none of their tests
is run, but all are imported. That ``domain`` imports nothing above it is a rule of the linter."""


def copied(to: Path) -> None:
    """Copy what git knows of the directory that we are in, without the extensions."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        file = Path(name)
        is_kept = not file.is_relative_to(EXTENSIONS) or (
            file.relative_to(EXTENSIONS).parts[0] in KEPT
        )
        if is_kept and file.is_file() and not file.is_relative_to("tests/extensions"):
            place = to / file
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, place, follow_symlinks=False)


def main(arguments: Sequence[str]) -> int:
    """Return the exit code of pytest."""
    with tempfile.TemporaryDirectory(prefix="core-alone-") as directory:
        copied(Path(directory))
        folders = [f"tests/{each}" for each in (*TRIED, *IMPORTED)]
        left_out = [f"--deselect=tests/{each}/" for each in IMPORTED]
        command = [sys.executable, "-m", "pytest", "-q", *folders, *left_out, *arguments]
        environ = {**os.environ, "PYTHONPATH": f"{directory}/src"}
        return subprocess.run(command, cwd=directory, env=environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
