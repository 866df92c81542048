"""Commits that a worker made, by what git printed or by how it ended.

Hooks print into the same output, and like brackets as well. A line is git's own if what git writes
below it follows, or if it says what the command line told git to say.
"""

import re
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from subagents.domain.alerts.detectors.shell import Step, here_document
from subagents.domain.run.worker_output import ToolUse
from subagents.extensions.detectors.exit_codes import all_passed, code_of
from subagents.extensions.detectors.shell_programs import expanded, program_of


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


COMMITS_MAX: Final = 50
"""The most commits that are read from one tool's output; more are a script's doing."""
_LINE_CHARS: Final = 1_000
_PRINTED: Final = re.compile(
    # The first hash: a branch's name holds no space, and a message may look like anything.
    r"^\[[^\n]{1,260}? [0-9a-f]{4,64}\] ?(?P<message>[^\n]*)$"
    # The author, the date and how much was changed, in any language.
    r"(?P<below>(?:\n (?:\w{1,20}: [^\n]{1,200}(?:[+-]\d{4}|>)"
    r"|\d{1,7} [^\n]{1,80}\([+-]\)[^\n]*)$){0,4})",
    re.MULTILINE,
)
_MERGED: Final = re.compile(
    r"^Merge made by (?:the '[^'\n]{1,80}' strategy|[^\n]{1,80})\.$", re.MULTILINE
)
_MAY_COMMIT: Final = _set("commit cherry-pick revert merge pull")
_COMMITTING: Final = frozenset({"commit", "ci"})
"""``ci`` is what most people's alias of it is called."""
_OTHERS: Final = _set(
    """
    add am annotate apply archive bisect blame branch bundle cat-file check-ignore checkout cherry
    clean clone config count-objects describe diff diff-tree difftool fetch for-each-ref
    format-patch fsck gc grep gui help init lfs log ls-files ls-remote ls-tree maintenance
    merge-base mergetool mv notes prune push range-diff rebase reflog remote repack reset restore
    rev-list rev-parse rm shortlog show show-branch show-ref sparse-checkout stash status submodule
    switch symbolic-ref tag update-index update-ref version whatchanged worktree
    """
)
"""Git's own commands that make no commit; any other word is an alias, of what only it knows."""
_GIT_VALUED: Final = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"}
)
_NOT_MADE: Final = frozenset({"--dry-run", "--help", "-h", "--abort", "--quit", "--short"})
_VALUED: Final = "mFCctSu"
"""Letters of ``git commit`` that take a value."""


def commits_of(tool: ToolUse) -> list[str]:
    """The first lines of the messages of the commits that a tool made; oldest first.

    A message that is not known is empty.
    """
    if tool.command is None or "git" not in tool.command:
        return []
    steps = expanded(tool.command)
    making = {n: made for n, step in enumerate(steps) if (made := _committing(step)) is not None}
    code = code_of(tool)
    ended = {number: all_passed(steps, {number}, code, tool.output) for number in making}
    if all(passed is False for passed in ended.values()):
        return []
    if printed := _told(tool.output, making.values()):
        if all(made.is_commit and not steps[number].is_maybe for number, made in making.items()):
            printed = printed[-len(making) :]
        return printed[:COMMITS_MAX]
    silent = not tool.is_error and code is None and not tool.output.strip()
    loose = [found["message"].strip() for found in _PRINTED.finditer(tool.output)][-1:]
    return [
        _message(made.arguments) or "".join(loose)
        for number, made in making.items()
        if made.is_commit and ((silent and _is_quiet(made.arguments)) or ended[number])
    ][:COMMITS_MAX]


class _Made(NamedTuple):
    """A command of git that makes commits, or may."""

    name: str
    arguments: tuple[str, ...]

    @property
    def is_commit(self) -> bool:
        return self.name in _COMMITTING

    @property
    def message(self) -> str:
        """The first line of the commit's message, as far as the command line tells."""
        if (told := _message(self.arguments)) or self.name != "merge":
            return told
        names = [word for word in self.arguments if not word.startswith("-")]
        if len(names) != 1:
            return ""
        kind = (
            "remote-tracking branch" if names[0].startswith(("origin/", "upstream/")) else "branch"
        )
        return f"Merge {kind} '{names[0]}'"


def _told(output: str, making: Collection[_Made]) -> list[str]:
    """The messages of the commits that git itself says it made."""
    said = [made.message for made in making]
    # Which of its words an alias makes the message of is not known.
    said += [word for made in making if made.name not in _MAY_COMMIT for word in made.arguments]
    expected = {" ".join(text.split()) for text in said} - {""}
    found = [
        (line.start(), line["message"].strip())
        for line in _PRINTED.finditer(output)
        if len(line[0]) <= _LINE_CHARS
        and (
            line["below"]
            or line["message"].startswith("Merge ")
            or " ".join(line["message"].split()) in expected
        )
    ]
    merging = [made.message for made in making if made.name in {"merge", "pull"}]
    merged = [line.start() for line in _MERGED.finditer(output)]
    # Of a merge that an alias made git says nothing but that.
    found += zip(merged, [*merging, *[""] * len(merged)], strict=False)
    return [message for _, message in sorted(found)]


def _committing(step: Step) -> _Made | None:
    """``git``'s command and its words, when it is one that may commit."""
    words = program_of(step.words)
    if not words or words[0] != "git":
        return None
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GIT_VALUED else 1
    if at >= len(words) or words[at] in _OTHERS:
        return None
    made = _Made(words[at], words[at + 1 :])
    return None if _NOT_MADE.intersection(made.arguments) else made


def _is_quiet(arguments: Sequence[str]) -> bool:
    return any(
        each == "--quiet" or (each[:1] == "-" and each[1:2] != "-" and "q" in _flags(each))
        for each in arguments
    )


def _flags(word: str) -> str:
    """The letters of ``-qam`` before one that takes a value."""
    for number, letter in enumerate(word[1:]):
        if letter in _VALUED:
            return word[1 : number + 2]
    return word[1:]


def _message(arguments: Sequence[str]) -> str:
    """The first line of the message on the command line."""
    at = 0
    while at < len(arguments):
        word = arguments[at]
        following = arguments[at + 1] if at + 1 < len(arguments) else ""
        if word in {"--message", "-m"}:
            return _first_line(following)
        if word.startswith("--message="):
            return _first_line(word.partition("=")[2])
        if word[:1] == "-" and word[1:2] != "-":
            letters = _flags(word)
            if letters.endswith("m"):
                return _first_line(word[len(letters) + 1 :] or following)
            if letters and letters[-1] in _VALUED and len(letters) + 1 == len(word):
                at += 1
        at += 1
    return ""


def _first_line(text: str) -> str:
    written = here_document(text)
    for line in (text if written is None else written).split("\n"):
        if line.strip():
            return line.strip()
    return ""
