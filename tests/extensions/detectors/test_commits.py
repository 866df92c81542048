"""Commits that a worker made."""

import pytest
from tests.domain.alerts.detectors.detector_inputs import (
    RULES,
    after,
    committed,
    see,
    shell,
)

from subagents.domain.alerts import detectors


@pytest.mark.requirement("detectors:commits")
def test_a_commit_is_told_by_its_message_after_the_batch() -> None:
    watch, alerts = see(committed("feat: add event ring buffer"), at_ms=1_000)

    assert alerts == []
    assert detectors.next_due_ms(watch, RULES) == 31_000
    watch, told = after(watch, 31_000)
    assert [each.text for each in told] == ['📝 Committed: "feat: add event ring buffer"']
    assert told[0].fields == {"message": "feat: add event ring buffer", "count": 1}
    assert told[0].key == "git_commit:1.1"
    assert watch.commits is None


@pytest.mark.requirement("detectors:commits")
def test_commits_within_the_batch_are_one_line_and_a_later_one_its_own() -> None:
    watch, _ = see(committed("a"), committed("b"))
    watch, _ = see(committed("c"), watch=watch, at_ms=29_000)
    watch, told = see(committed("d"), watch=watch, at_ms=60_000)

    assert [each.text for each in told] == ['📝 3 commits: "a", "b", "c"']
    assert told[0].fields["count"] == 3
    assert [each.text for each in detectors.ended(watch)[1]] == ['📝 Committed: "d"']


@pytest.mark.requirement("detectors:commits")
def test_many_long_messages_fit_on_one_line() -> None:
    watch, _ = see(*(committed(f"{n}: " + "very long message " * 20) for n in range(9)))
    (alert,) = detectors.ended(watch)[1]

    assert len(alert.text) <= 160
    assert alert.text.startswith('📝 9 commits: "0: very long')
    assert alert.fields["count"] == 9


@pytest.mark.requirement("detectors:commits")
@pytest.mark.parametrize(
    ("command", "output", "messages"),
    [
        ("git commit -m x", "[main (root-commit) abc1234] x", ["x"]),
        ("git commit -m x", "[detached HEAD abc1234] x", ["x"]),
        ("git commit -m x", "[HEAD détachée abc1234] x", ["x"]),
        ("git commit -m x", "[feature/a-b_c.d abc1234] x", ["x"]),
        ("git commit -qm 'quiet one'", "", ["quiet one"]),
        ("git commit -qam'glued'", "", ["glued"]),
        ("git -C sub -c user.name=x commit --quiet --message='a: b'", "", ["a: b"]),
        ("git commit --quiet --message 'a' -m 'body'", "", ["a"]),
        ("git commit -q --amend --no-edit", "", [""]),
        ("git commit -q -m \"$(cat <<'EOF'\n\nfirst\n\nsecond\nEOF\n)\"", "", ["first"]),
        (
            "cd x && git add -A && git commit -m a && git push",
            "[main abc1234] a\nEverything",
            ["a"],
        ),
        ("bash -c 'git commit -qm inner'", "", ["inner"]),
        ("git commit -m a; git commit -m b", "[main abc1234] a\n[main def5678] b", ["a", "b"]),
        ("git commit --dry-run -m x", "", []),
        ("git commit -m x || true", "nothing to commit, working tree clean", []),
        ("git status", "[main abc1234] x", []),
        ("echo git commit -m x", "git commit -m x", []),
        ("cat log.txt", "[main abc1234] x", []),
        ("git commit --help", "", []),
    ],
)
def test_commits_are_known_by_what_git_prints_or_by_how_it_ended(
    command: str, output: str, messages: list[str]
) -> None:
    watch, _ = see(shell(command, output))

    assert list(watch.commits.words if watch.commits else ()) == messages


@pytest.mark.requirement("detectors:commits")
def test_a_commit_that_failed_is_none_and_one_before_a_failure_is_one() -> None:
    hook, _ = see(shell("git commit -m x", "lint failed", code=1))
    push, _ = see(shell("git commit -m x && git push", "[main abc1234] x\nrejected", code=1))

    assert hook.commits is None
    assert push.commits is not None


HOOK = """[lint abc1234] checked 3 files
[STARTED] Preparing lint-staged...
[main deadbee] looks like one
[2026 1234] 11:29:09"""
CHANGED = " 1 file changed, 1 insertion(+)"
DATED = " Date: Sat Nov 28 11:29:09 2026 +0000"
MERGED = "Merge made by the 'ort' strategy."


@pytest.mark.requirement("detectors:hooks")
@pytest.mark.parametrize(
    ("command", "output", "messages"),
    [
        ("git commit -m 'feat: x' 2>&1 | tail -9", HOOK, []),
        ("git commit -F message || true", HOOK, []),
        ("git commit --no-edit | cat", HOOK, []),
        ("git commit --amend | head -4", "[hook abc1234]", []),
        ("git commit -am 'feat: x'; git status", f"{HOOK}\nlint failed", []),
        ("git commit -F m | cat", "[lint abc1234] checked\n 3 files ok\n Error: in a.py", []),
        ("git commit -F m | cat", "[2026 1234] done\n Time: 3 s", []),
        ("git commit -m lint; true", HOOK, []),
        (
            "git commit -m 'feat: x' | cat",
            f"{HOOK}\n[main 5180f10] feat: x\n{CHANGED}",
            ["feat: x"],
        ),
        ("git commit -m 'feat:  x' | tail -5", f"{HOOK}\n[main 5180f10] feat: x", ["feat: x"]),
        (
            "git commit -m x; true",
            f"{HOOK}\n[main 5180f10] JIRA-1 x\n{CHANGED}",
            ["JIRA-1 x"],
        ),
        (
            "git commit --amend --no-edit | cat",
            f"{HOOK}\n[main 1d62602] empty one\n{DATED}",
            ["empty one"],
        ),
        (
            "git commit -F m | cat",
            f"{HOOK}\n[main 1d62602] neu\n Autor: A <a@b.c>\n 1 Datei geändert, 1 Einfügung(+)",
            ["neu"],
        ),
        ("git commit --no-edit | cat", f"{HOOK}\n[main a9e701e] Merge branch 't3'", [
            "Merge branch 't3'"]),
        ("git commit -m x", f"[deploy abc1234] x\n[main 5180f10] x\n{CHANGED}", ["x"]),
        ("git revert --no-edit HEAD | cat", f'{HOOK}\n[main 5180f10] Revert "x"\n{CHANGED}', [
            'Revert "x"']),
    ],
)  # fmt: skip
def test_a_line_of_a_hook_is_no_commit(command: str, output: str, messages: list[str]) -> None:
    watch, _ = see(shell(command, output))

    assert list(watch.commits.words if watch.commits else ()) == messages


@pytest.mark.requirement("detectors:hooks")
@pytest.mark.parametrize(
    "command",
    ["git commit -m x", "git ci -m x", "git commit -F m", "git commit", "git save x"],
)
def test_a_commit_that_its_hook_refused_is_none_whatever_the_hook_prints(command: str) -> None:
    watch, _ = see(shell(command, f"{HOOK}\n[main 1234567] x\n{CHANGED}", code=1))

    assert watch.commits is None


@pytest.mark.requirement("detectors:commits")
@pytest.mark.parametrize(
    ("command", "output", "messages"),
    [
        # Aliases.
        ("git ci -m 'fix: alias'", f"{HOOK}\n[main 5180f10] fix: alias\n{CHANGED}", ["fix: alias"]),
        ("git ci -qam 'quiet'", "", ["quiet"]),
        ("git save 'wip: saved'", f"{HOOK}\n[main bcaf28e] wip: saved\n{CHANGED}", ["wip: saved"]),
        ("git save 'wip: saved' | tail -1", "[main bcaf28e] wip: saved", ["wip: saved"]),
        ("git wip", f"[main bcaf28e] WIP\n{CHANGED}\n create mode 100644 a", ["WIP"]),
        ("git amend", f"[main 1d62602] old\n{DATED}", ["old"]),
        ("git -C sub cm 'in a folder'", "[main bcaf28e] in a folder", ["in a folder"]),
        ("git wip", "", []),
        ("git lg", "[main abc1234] feat: x\n[main abc1235] feat: y", []),
        ("git log --format='[%an %h] %s' --shortstat", f"[ada abc1234] x\n{CHANGED}", []),
        # Merges.
        ("git merge topic --no-edit", f"{MERGED}\n t | 1 +", ["Merge branch 'topic'"]),
        (
            "git merge origin/main",
            "Merge made by the 'recursive' strategy.",
            ["Merge remote-tracking branch 'origin/main'"],
        ),
        ("git merge --no-ff -m 'own words' topic", MERGED, ["own words"]),
        ("git pull --no-rebase", f"{MERGED}\n a | 5 +----", [""]),
        ("git merge a b", "Merge made by the 'octopus' strategy.", [""]),
        (
            "git merge a && git merge b",
            f"{MERGED}\n x | 1 +\n{MERGED}",
            ["Merge branch 'a'", "Merge branch 'b'"],
        ),
        ("git merge --continue", "[main 95f2c4e] Merge branch 't5'", ["Merge branch 't5'"]),
        ("git up", MERGED, [""]),
        (
            "git commit -m a && git merge b",
            f"[main 5180f10] a\n{CHANGED}\n{MERGED}",
            ["a", "Merge branch 'b'"],
        ),
        ("git merge topic", "Updating f49028e..43fa668\nFast-forward\n x | 1 +", []),
        ("git merge topic", "Already up to date.", []),
        ("git merge --no-commit b", "Automatic merge went well; stopped before committing as", []),
        ("git merge --squash b", "Squash commit -- not updating HEAD", []),
        ("git merge --abort", "", []),
        ("git merge b || true", "CONFLICT (content): Merge conflict in a", []),
        ("git pull", "Updating f49028e..43fa668\nFast-forward", []),
        ("git cherry-pick t3", f"[main 5180f10] t3 work\n{DATED}", ["t3 work"]),
        (
            "git cherry-pick a..c",
            f"[main 5180f10] b\n{DATED}\n[main 5180f11] c\n{DATED}",
            ["b", "c"],
        ),
    ],
)
def test_aliases_and_merges_make_commits_by_what_git_prints(
    command: str, output: str, messages: list[str]
) -> None:
    watch, _ = see(shell(command, output))

    assert list(watch.commits.words if watch.commits else ()) == messages
