"""What a line's exit code says of each command in it, and which programs the line really runs.

A line has one exit code, that of what ran last: ``pytest | tail`` ends with the code of ``tail``,
``make || true`` with that of ``true``. Where it says nothing of a command, its output decides.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from subagents.domain.alerts.detectors.shell_lines import Joined, Step
from subagents.domain.run.worker_output import ToolUse

HARMLESS: Final = frozenset(
    {
        *("cd", "pushd", "popd", "export", "set", "source", ".", "unset", "mkdir", "echo", "true"),
        *("printf", "pwd", "date", "ls", "clear", "sleep", "touch", "ulimit", "shopt", "umask"),
        *("tail", "head", "tee", "cat", "sed", "awk", "sort", "wc", "cut", "tr", "uniq", "less"),
        *(":", "trap", "rm"),
    }
)
"""They do not fail when the line fails; what is wrong is told by the others."""
_TELLS_CODE: Final = re.compile(r"\$\?|\$\{PIPESTATUS\[0\]\}|\$PIPESTATUS")
_CODE: Final = re.compile(r"\s{0,4}(\d{1,3})(?!\d)", re.ASCII)
_LOOKED_AT_CHARS: Final = 4_000

_IN_OUTPUT: Final = re.compile(
    # Claude Code; Gemini CLI; Codex; what wrappers of others have in common.
    r"^(?:<error>|error: )?(?:exit code:?|exit status:?|process exited with code"
    r"|command failed with exit code:?|exited with code:?|command exited with code:?)"
    r"[ \t](-?\d{1,10})\b",
    re.ASCII | re.IGNORECASE | re.MULTILINE,
)
_REFUSED: Final = re.compile(
    r"requires approval|permission to use|permission denied by|user doesn't want to proceed"
    r"|has been denied|was blocked|^blocked:|command rejected|rejected by user|hook error"
    r"|approval policy|interrupted by user|was aborted|tool use was rejected"
    r"|auto-rejected|not allowed by",
    re.IGNORECASE | re.MULTILINE,
)
FAILED: Final = 1
"""Stands for a code that is not known but not 0."""


class Ends(NamedTuple):
    """How the commands of a line ended, as far as its exit code tells."""

    of: tuple[bool | None, ...]
    """True = with 0. By command; None = unknown."""
    suspects: frozenset[int] = frozenset()
    """One of these failed, it is not known which."""


def code_of(tool: ToolUse) -> int | None:
    """The exit code of a shell tool, as told beside its output or in it; None = unknown."""
    if tool.exit_code is not None:
        return tool.exit_code
    ends = (tool.output[:_LOOKED_AT_CHARS], tool.output[-_LOOKED_AT_CHARS:])
    if tool.is_error:
        found = _IN_OUTPUT.search(ends[0]) or _IN_OUTPUT.search(ends[1])
        code = int(found[1]) if found is not None else FAILED
        return code or FAILED
    # Without the word of the tool only its own wrapping counts: a first line, or Gemini's block.
    found = _IN_OUTPUT.match(ends[0])
    if found is None and tool.output.startswith(("Command:", "Chunk ID:", "Output:")):
        found = _IN_OUTPUT.search(ends[1]) or _IN_OUTPUT.search(ends[0])
    return int(found[1]) if found is not None else None


def was_refused(tool: ToolUse) -> bool:
    """Whether the command was not run at all: no permission, or somebody stopped it."""
    if not tool.is_error or tool.exit_code is not None:
        return False
    return _REFUSED.search(tool.output[:_LOOKED_AT_CHARS]) is not None


def ends_of(steps: Sequence[Step], code: int | None, output: str) -> Ends:
    """Read an exit code back onto the commands of its line."""
    found: dict[int, bool] = {}
    suspects: frozenset[int] = frozenset()
    lists = _lists(steps)
    strict = _has_option(steps, "e", "errexit")
    pipefail = "pipefail" in _set_words(steps)
    for number, members in enumerate(lists[:-1]):
        guarded = strict or _leaves(steps, members)
        known, is_first = _echoed(steps, lists[number + 1], output)
        if known is not None and is_first:
            found[_first_of_pipeline(steps, members)] = known == 0
        elif known is not None or (guarded and code == 0):
            mine = _read_back(steps, members, known or 0, found, pipefail=pipefail)
            found.update(dict.fromkeys(mine if len(mine) == 1 else (), False))
        elif guarded and code is not None:
            # It may be what ended the line.
            suspects |= frozenset(each for each in members if _may_fail(steps[each]))
    if lists and code is not None and not steps[lists[-1][-1]].is_beside:
        suspects |= _read_back(steps, lists[-1], code, found, pipefail=pipefail)
    if len(suspects) == 1:
        (only,) = suspects
        found[only] = False
    elif suspects:
        found = {number: ok for number, ok in found.items() if ok or number not in suspects}
    return Ends(tuple(found.get(n) for n in range(len(steps))), suspects)


def _leaves(steps: Sequence[Step], members: Sequence[int]) -> bool:
    """``… || exit 1``: nothing behind it runs when it fails."""
    last = steps[members[-1]]
    return last.joined is Joined.OR and _is_exit(last)


def _lists(steps: Sequence[Step]) -> list[list[int]]:
    """The line cut at ``;``, newlines and ``&``."""
    lists: list[list[int]] = []
    for number, step in enumerate(steps):
        if step.joined in {Joined.FIRST, Joined.THEN, Joined.BESIDE} or not lists:
            lists.append([])
        lists[-1].append(number)
    return lists


def _read_back(
    steps: Sequence[Step],
    members: Sequence[int],
    code: int,
    found: dict[int, bool],
    *,
    pipefail: bool,
) -> frozenset[int]:
    """One list of pipelines joined by ``&&`` and ``||``; returns the suspects."""
    pipelines, joins = _pipelines(steps, members)
    if code == 0:
        # What stands right behind a ``||`` may not have run; what is joined behind that has.
        sure = max((at + 2 for at, join in enumerate(joins) if join is Joined.OR), default=0)
        for pipeline in pipelines[sure:]:
            for number in _visible(steps, pipeline, pipefail=pipefail):
                found[number] = not steps[number].is_negated
        return frozenset()
    if joins and joins[-1] is Joined.OR:
        failed = _visible(steps, pipelines[-1], pipefail=False)
        found.update(dict.fromkeys(failed, False))
        if len(joins) == 1:
            pipelines = pipelines[:1]
    return frozenset(
        number
        for pipeline in pipelines
        for number in _visible(steps, pipeline, pipefail=pipefail)
        if _may_fail(steps[number])
    )


def _pipelines(
    steps: Sequence[Step], members: Sequence[int]
) -> tuple[list[list[int]], list[Joined]]:
    """A list's pipelines and how they are joined, without ``|| exit 1`` at its end.

    ``make || exit 1`` ends as ``make`` does; so do both when the whole failed.
    """
    pipelines: list[list[int]] = []
    for number in members:
        if steps[number].joined is not Joined.PIPE or not pipelines:
            pipelines.append([])
        pipelines[-1].append(number)
    joins = [steps[pipeline[0]].joined for pipeline in pipelines[1:]]
    while joins and joins[-1] is Joined.OR and _is_exit(steps[pipelines[-1][0]]):
        pipelines.pop()
        joins.pop()
    return pipelines, joins


def _visible(steps: Sequence[Step], pipeline: Sequence[int], *, pipefail: bool) -> list[int]:
    """Those whose exit code is the pipeline's."""
    mine = pipeline if pipefail else pipeline[-1:]
    return [
        number
        for number in mine
        if not steps[number].is_maybe and (pipefail or not steps[number].is_piped)
    ]


def _may_fail(step: Step) -> bool:
    return step.words[0] not in HARMLESS and not step.is_maybe and not step.is_negated


def _is_exit(step: Step) -> bool:
    words = step.words
    return words[0] == "false" or (words[0] in {"exit", "return"} and words[1:2] != ("0",))


def _set_words(steps: Sequence[Step]) -> frozenset[str]:
    return frozenset(word for step in steps if step.words[0] == "set" for word in step.words[1:])


def _has_option(steps: Sequence[Step], letter: str, name: str) -> bool:
    words = _set_words(steps)
    return name in words or any(
        word.startswith("-") and not word.startswith("--") and letter in word for word in words
    )


def _first_of_pipeline(steps: Sequence[Step], members: Sequence[int]) -> int:
    """Of the last pipeline."""
    at = len(members) - 1
    while at and steps[members[at]].joined is Joined.PIPE:
        at -= 1
    return members[at]


def _echoed(
    steps: Sequence[Step], following: Sequence[int], output: str
) -> tuple[int | None, bool]:
    """The code that ``; echo "exit $?"`` told of the list before.

    Returns:
        The code, and whether it is that of the first program of a pipeline (``PIPESTATUS``).
    """
    step = steps[following[0]]
    said = " ".join(step.words[1:])
    mark = _TELLS_CODE.search(said) if step.words[0] in {"echo", "printf"} else None
    if mark is None:
        return None, False
    before = said[: mark.start()].rpartition("\\n")[2].rpartition("\n")[2]
    end = output[-_LOOKED_AT_CHARS:]
    if before.strip():
        at = end.rfind(before)
        found = _CODE.match(end, at + len(before)) if at >= 0 else None
    else:
        found = _CODE.fullmatch(end.rstrip().rpartition("\n")[2].strip())
    return (None if found is None else int(found[1])), mark[0].startswith(("$P", "${P"))
