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
