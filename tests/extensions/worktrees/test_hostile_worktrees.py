"""A worker's worktree in which git would run what the worker wrote; nothing of it runs."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.extensions.worktrees.worktree_harness import Harness
from tests.repository import AS_SOMEBODY, branches, commit, git

from subagents.errors import RuntimeUnavailable, SubagentsError

FILTERED = "* filter=x diff=x merge=x\n"


def own_repository(root: Path, command: str) -> None:
    """As somebody who shares the objects and has the same commit."""
    common = git(root, "rev-parse", "--path-format=absolute", "--git-common-dir")
    head = git(root, "rev-parse", "HEAD")
    (root / ".git").unlink()
    git(root, "init", "--quiet")
    (root / ".git" / "objects" / "info" / "alternates").write_text(f"{common}/objects\n")
    git(root, "update-ref", "HEAD", head)
    git(root, "read-tree", head)
    for key in ("filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.x.textconv"):
        git(root, "config", key, command)
    git(root, "config", "core.fsmonitor", command)
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "attributes").write_text(FILTERED)


def another_link(root: Path, command: str) -> None:
    """To a repository in the worktree."""
    own_repository(root, command)
    (root / ".git").rename(root / "evil")
    (root / ".git").write_text("gitdir: evil\n")


def symbolic_link(root: Path, command: str) -> None:
    own_repository(root, command)
    (root / ".git").rename(root / "evil")
    (root / ".git").symlink_to("evil")


def no_link(root: Path, command: str) -> None:
    del command
    (root / ".git").unlink()
    (root / ".git").write_bytes(b"\xff" * 100_000)


def submodule(root: Path, command: str) -> None:
    """What ``git status`` and ``git diff`` enter."""
    below = root / "below"
    below.mkdir()
    git(below, "init", "--quiet")
    (below / "a.txt").write_text("a\n")
    commit(below, "below")
    for key in ("core.fsmonitor", "filter.x.clean"):
        git(below, "config", key, command)
    (below / ".gitattributes").write_text(FILTERED)
    info = f"160000,{git(below, 'rev-parse', 'HEAD')},below"
    git(root, "update-index", "--add", "--cacheinfo", info)
    (root / ".gitmodules").write_text(
        '[submodule "below"]\n\tpath = below\n\turl = ./below\n\tignore = none\n'
    )


def filters_of_the_repository(root: Path, command: str) -> None:
    """Of which the user knows nothing: the worker is kept to nothing there."""
    for name in ("x", "a=b", "with.dot", "Ünïcode"):
        for key in ("clean", "smudge", "process"):
            git(root, "config", f"filter.{name}.{key}", command)
        git(root, "config", f"filter.{name}.required", "true")
    git(root, "config", "diff.x.textconv", command)
    git(root, "config", "diff.x.command", command)
    git(root, "config", "diff.external", command)
    git(root, "config", "extensions.worktreeConfig", "true")
    git(root, "config", "--worktree", "filter.w.clean", command)
    lines = ("*.txt filter=a=b diff=x", "*.py filter=with.dot diff=x", "new* filter=w")
    (root / ".gitattributes").write_text("\n".join(lines))


WAYS: dict[str, Callable[[Path, str], None]] = {
    each.__name__: each
    for each in (
        own_repository, another_link, symbolic_link, no_link, submodule, filters_of_the_repository,
    )
}  # fmt: skip
REFUSED = {"own_repository", "another_link", "symbolic_link", "no_link"}


def changed(harness: Harness, repository: Path, way: str) -> tuple[Path, Path]:
    """The worktree, with work in it, and what would be made by what the worker wrote."""
    harness.prepare(harness.plan(repository).tree)
    root = Path(harness.plan(repository).tree.path)
    escaped = harness.root / "escaped"
    WAYS[way](root, f"touch {escaped}; cat")
    (root / "sub" / "a.txt").write_text("changed\n")
    (root / "new.txt").write_text("new\n")
    escaped.unlink(missing_ok=True)
    return root, escaped


@pytest.mark.requirement("git:no-commands")
@pytest.mark.parametrize("way", WAYS)
def test_looking_at_keeping_and_removing_a_worktree_runs_nothing_of_its_worker(
    harness: Harness, repository: Path, way: str
) -> None:
    tree = harness.plan(repository).tree
    _, escaped = changed(harness, repository, way)

    found = harness.changes(tree)
    diff = None
    if way in REFUSED:
        assert "is not the file that was made" in (found.error or "")
        with pytest.raises(RuntimeUnavailable, match="is not the file that was made"):
            harness.do(lambda trees: trees.diff(tree, None, bytes_max=1000))
        with pytest.raises(SubagentsError, match="is not the file that was made"):
            harness.prepare(tree, attempt=2, afresh=True)
    else:
        assert {"sub/a.txt", "new.txt"} <= {each.path for each in found.changed}
        diff = harness.do(lambda trees: trees.diff(tree, None, bytes_max=10_000))
        assert "+changed" in diff.text
        harness.prepare(tree, attempt=2, afresh=True)
        assert harness.changes(tree).kept_branches == (f"{tree.branch}-attempt-1",)
        assert git(repository, "show", f"{tree.branch}-attempt-1:sub/a.txt") == "changed"
    harness.remove(tree)
    assert not escaped.exists()


@pytest.mark.requirement("git:no-commands")
@pytest.mark.parametrize("way", sorted(set(WAYS) - {"no_link"}))
def test_the_same_by_plain_git_runs_it(harness: Harness, repository: Path, way: str) -> None:
    root, escaped = changed(harness, repository, way)
    argv = ["git", *AS_SOMEBODY, "diff"]
    subprocess.run(argv, cwd=root, check=False, capture_output=True, timeout=60)
    assert escaped.exists()


@pytest.mark.requirement("git:no-commands")
def test_a_worktree_of_a_repository_with_commands_runs_none_and_says_so(
    harness: Harness, repository: Path
) -> None:
    escaped = harness.root / "escaped"
    filters_of_the_repository(repository, f"touch {escaped}; cat")
    (repository / ".gitattributes").rename(repository / ".git" / "info" / "attributes")
    (repository / "sub" / "a.txt").write_text("changed\n")
    escaped.unlink(missing_ok=True)

    planned = harness.plan(repository)
    harness.prepare(planned.tree)
    assert not escaped.exists()
    warning = planned.warnings[-1]
    assert "filter.a=b, filter.w, filter.with.dot, filter.x, filter.Ünïcode" in warning
    assert "git config --global" in warning
    assert (Path(planned.tree.path) / "sub" / "a.txt").read_text() == "one\ntwo\n"
    assert branches(repository) == ["main", planned.tree.branch]


@pytest.mark.requirement("git:no-commands")
def test_what_the_users_own_configuration_names_is_run_as_ever(
    harness: Harness, repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text('[filter "up"]\n\tsmudge = tr a-z A-Z\n\tclean = tr A-Z a-z\n')
    monkeypatch.setenv("HOME", str(home))
    (repository / ".gitattributes").write_text("*.txt filter=up\n")
    commit(repository, "attributes")
    planned = harness.plan(repository)
    harness.prepare(planned.tree)
    assert planned.warnings == ()
    assert (Path(planned.tree.path) / "sub" / "a.txt").read_text() == "ONE\nTWO\n"
    assert harness.changes(planned.tree).is_clean


@pytest.mark.requirement("git:no-hooks", "git:own-environment")
def test_a_repositorys_hooks_and_our_environment_do_not_reach_git(
    harness: Harness, repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    harness.prepare(harness.plan(repository).tree)
    assert not (tmp_path / "hooked").exists()
