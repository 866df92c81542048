"""What a line's exit code says of the commands in it.

A line has one exit code, that of what ran last: ``pytest | tail`` ends with the code of ``tail``,
``make || true`` with that of ``true``. So a line is run in thought, each command ending either way,
and what all the ways have in common that end with the line's code is known.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from subagents.domain.alerts.detectors.shell import Step
from subagents.domain.run.worker_output import ToolUse

HARMLESS: Final = frozenset(
    {
        *("cd", "pushd", "popd", "export", "set", "source", ".", "unset", "mkdir", "echo", "true"),
        *("printf", "pwd", "date", "ls", "clear", "sleep", "touch", "ulimit", "shopt", "umask"),
        *("tail", "head", "tee", "cat", "sed", "awk", "sort", "wc", "cut", "tr", "uniq", "less"),
        *(":", "trap", "rm"),
    }
)
"""They do not fail when the line fails; what is wrong is reported by the others."""
FAILED: Final = 1
"""Stands for a code that is not known but not 0."""
_LOOKED_AT_CHARS: Final = 4_000
_TELLS_CODE: Final = re.compile(r"\$\?|\$\{PIPESTATUS\[0\]\}|\$PIPESTATUS")
_CODE: Final = re.compile(r"\s{0,4}(\d{1,3})(?!\d)", re.ASCII)
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


class _Way(NamedTuple):
    """One way in which a line may have gone so far."""

    ok: bool = True
    """The exit code is 0."""
    is_first_ok: bool = True
    """Whether the first program of the last pipeline ended well."""
    is_skipped: bool = False
    """The last pipeline did not run."""
    is_over: bool = False
    """The shell has ended."""
    passed: bool | None = True
    """The commands in question: all passed, one failed (False), or one did not run (None)."""


def code_of(tool: ToolUse) -> int | None:
    """The exit code of a shell tool, as stated next to its output or in it; None = unknown."""
    if tool.exit_code is not None:
        return tool.exit_code
    ends = (tool.output[:_LOOKED_AT_CHARS], tool.output[-_LOOKED_AT_CHARS:])
    if tool.is_error:
        found = _IN_OUTPUT.search(ends[0]) or _IN_OUTPUT.search(ends[1])
        return (int(found[1]) if found is not None else FAILED) or FAILED
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


def all_passed(
    steps: Sequence[Step], numbers: Collection[int], code: int | None, output: str
) -> bool | None:
    """How some commands of a line ended: all with 0, one not (False), or nobody can know (None).

    Args:
        steps: Of the line.
        numbers: Of the commands in question, among the steps.
        code: The line's; None = unknown.
        output: Where the line may have printed a code itself: ``; echo "exit $?"``.
    """
    set_words = [word for step in steps if step.words[0] == "set" for word in step.words[1:]]
    is_strict = "errexit" in set_words or any(re.match(r"-\w*e", word) for word in set_words)
    is_pipefail = "pipefail" in set_words
    ways = {_Way()}
    for number, step in enumerate(steps):
        following = steps[number + 1].joined if number + 1 < len(steps) else ";"
        printed = _printed_code(step, output)
        ways = {
            after
            for way in ways
            if printed is None
            or way.is_over
            or (way.is_first_ok if printed[1] else way.ok) == printed[0]
            for after in _run(step, way, is_asked=number in numbers, is_pipefail=is_pipefail)
        }
        if is_strict and following in {";", "&"} and not step.is_negated:
            ways = {w if w.ok or w.is_skipped else w._replace(is_over=True) for w in ways}
    found = {way.passed for way in ways if code is None or way.ok is (code == 0)}
    return found.pop() if len(found) == 1 else None


def _printed_code(step: Step, output: str) -> tuple[bool, bool] | None:
    """Of ``echo "exit $?"``: whether the code it printed is 0, and whether of ``PIPESTATUS``."""
    text = " ".join(step.words[1:])
    mark = _TELLS_CODE.search(text) if step.words[0] in {"echo", "printf"} else None
    if mark is None:
        return None
    before = re.split(r"\\n|\n", text[: mark.start()])[-1]
    end = output[-_LOOKED_AT_CHARS:]
    if before.strip():
        at = end.rfind(before)
        found = _CODE.match(end, at + len(before)) if at >= 0 else None
    else:
        found = _CODE.fullmatch(end.rstrip().rpartition("\n")[2].strip())
    return None if found is None else (int(found[1]) == 0, "PIPE" in mark[0])


def _run(step: Step, way: _Way, *, is_asked: bool, is_pipefail: bool) -> Iterator[_Way]:
    """The ways in which it may continue with a command."""
    is_piped = step.joined == "|"
    is_skipped = way.is_skipped if is_piped else step.joined == ("||" if way.ok else "&&")
    not_run = None if is_asked and way.passed else way.passed
    if way.is_over or is_skipped:
        yield way._replace(is_skipped=True, passed=not_run)
        return
    name = step.words[0]
    if name in {"exit", "return"}:
        ok = way.ok if step.words[1:2] in {(), ("$?",)} else step.words[1] == "0"
        yield way._replace(ok=ok, is_over=True)
        return
    for ended in {name != "false"} if name in {*HARMLESS, "false"} else {True, False}:
        ok = ended is not step.is_negated
        is_seen = is_pipefail or not step.is_piped
        after = _Way(
            ok=(ok and (way.ok or not (is_piped and is_pipefail))) or not is_seen or step.is_beside,
            is_first_ok=way.is_first_ok if is_piped else ended,
            passed=way.passed if ended or not is_asked else False,
        )
        yield after
        if step.is_maybe:
            yield after._replace(ok=not after.ok, passed=not_run)
            yield after._replace(ok=not after.ok)
