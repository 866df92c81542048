"""Real git repositories in a temporary directory."""

import os
import subprocess
from pathlib import Path

AS_SOMEBODY = (
    *("-c", "user.name=Somebody", "-c", "user.email=somebody@localhost"),
    *("-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main"),
)


def git(directory: Path, *arguments: str) -> str:
    """The answer of git; it must not fail."""
    env = {"PATH": os.environ["PATH"], "HOME": str(directory), "LC_ALL": "C"}
    done = subprocess.run(
        ["git", *AS_SOMEBODY, *arguments],
        cwd=directory,
        env=env,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


def a_repository(directory: Path) -> Path:
    """Two directories, a test, an ignored directory, one commit."""
    (directory / "sub").mkdir(parents=True)
    (directory / "tests").mkdir()
    (directory / "sub" / "a.txt").write_text("one\ntwo\n")
    (directory / "tests" / "test_a.py").write_text("def test_a(): ...\n")
    (directory / ".gitignore").write_text("out/\n__pycache__/\n")
    git(directory, "init", "--quiet")
    commit(directory, "first")
    return directory


def commit(directory: Path, message: str) -> str:
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "-m", message)
    return git(directory, "rev-parse", "HEAD")


def branches(directory: Path) -> list[str]:
    return git(directory, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()
