"""`make` and CI say what is missing on a machine that lacks it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEEDED = ("sh", "bash", "cat", "sed", "dirname", "pwd", "rm")


def machine(root: Path, *programs: str) -> dict[str, str]:
    """A PATH whose only Python is 3.9, and with these programs."""
    binaries = root / "bin"
    binaries.mkdir()
    for name in (*NEEDED, *programs):
        found = shutil.which(name)
        if found:
            (binaries / name).symlink_to(found)
    (binaries / "python3").write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.2" && exit 0\nexit 1\n'
    )
    (binaries / "python3").chmod(0o755)
    return {"PATH": str(binaries)}


def run(*command: str, cwd: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.requirement("project:make")
@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_on_a_machine_with_an_older_python_says_which_is_needed(tmp_path: Path) -> None:
    environ = machine(tmp_path, "make")
    checkout = tmp_path / "a checkout"
    checkout.mkdir()
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, checkout)

    done = run("make", "setup", cwd=checkout, environ=environ)

    assert done.returncode != 0
    assert "subagents needs Python 3.11 or later; found: Python 3.9.2." in done.stderr
    assert "make setup PYTHON=/path/to/python3.11" in done.stderr
    assert not (checkout / ".venv").exists()


@pytest.mark.requirement("project:ci")
def test_ci_names_everything_that_is_missing(tmp_path: Path) -> None:
    environ = machine(tmp_path)

    done = run(str(ROOT / ".ci" / "run"), cwd=tmp_path, environ=environ)

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "missing: git",
        "missing: make",
        "missing: python3 (3.11 or later)",
    ]


@pytest.mark.requirement("project:ci")
def test_ci_runs_what_the_laptop_runs(tmp_path: Path) -> None:
    """`make` is replaced by a program that prints its arguments; nothing else is installed here."""
    environ = machine(tmp_path, "git")
    recorder = tmp_path / "bin" / "make"
    recorder.write_text('#!/bin/sh\necho "$@"\n')
    recorder.chmod(0o755)

    done = run(
        str(ROOT / ".ci" / "run"), cwd=tmp_path, environ={**environ, "PYTHON": "/some/python"}
    )

    assert done.stdout.splitlines() == ["--no-print-directory ci PYTHON=/some/python"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
