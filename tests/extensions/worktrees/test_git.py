"""How git is run: without a repository's commands, and not for ever."""

import os
from pathlib import Path

import pytest

from subagents.extensions.worktrees.git import COMMANDS, Git, GitFailed


@pytest.mark.requirement("git:bounded")
def test_git_that_hangs_is_ended_and_named(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nsleep 1000\n")
    program.chmod(0o755)
    slow = Git(tmp_path, {"PATH": f"{program.parent}:{os.environ['PATH']}"})
    with pytest.raises(GitFailed, match=r"git status did not end within 0 s"):
        slow("status", timeout_s=0.2)


@pytest.mark.requirement("git:no-commands")
@pytest.mark.parametrize(
    ("key", "is_command"),
    [
        ("filter.lfs.clean", True),
        ("filter.a.b.process", True),
        ("diff.pdf.textconv", True),
        ("diff.external", True),
        ("merge.ours.driver", True),
        ("core.sshcommand", True),
        ("core.gitproxy", True),
        ("credential.helper", True),
        ("credential.https://example.com.helper", True),
        ("remote.origin.uploadpack", True),
        ("remote.origin.vcs", True),
        ("gpg.ssh.program", True),
        ("submodule.a.update", True),
        ("filter.lfs.required", False),
        ("remote.origin.url", False),
        ("core.autocrlf", False),
        ("credential.username", False),
        ("user.email", False),
        ("diff.renames", False),
    ],
)
def test_keys_that_name_commands_are_told_from_those_that_do_not(
    key: str, *, is_command: bool
) -> None:
    assert (COMMANDS.fullmatch(key) is not None) == is_command
