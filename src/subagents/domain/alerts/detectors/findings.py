"""What the output of a tool tells, and the alerts that come of it.

What a line of git or of a test runner means is known to extensions (``Extension.detectors``); what
is worth an alert, and when, is decided here.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from subagents.domain.alerts.detectors.alert_wording import FIELD_CHARS_MAX, TEXT_CHARS_MAX, shown
from subagents.domain.alerts.detectors.detector_state import Pending, Watch, checksum
from subagents.domain.run.alert import Alert, AlertKind
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import ToolUse
from subagents.text import cut

FAMILIES_MAX: Final = 16
"""Whose last result is kept in mind."""
MESSAGES_MAX: Final = 5
"""The most messages that one batch quotes; the others are counted."""
_MESSAGE_CHARS: Final = 80


class BuildResult(NamedTuple):
    """How a build, tests or checks ended."""

    work: str
    """``Build``, ``Tests``: a sentence about it begins so."""
    family: str
    """Known again by it when it runs once more: ``npm test``."""
    command: str
    passed: bool
    errors: int | None
    tests: int | None
    summary: str
    """``12 errors in bridge.ts``."""


class Commits(NamedTuple):
    """Commits that were made."""

    messages: Sequence[str]
    """Their first lines, oldest first; one that is not known is empty."""


Finding: TypeAlias = BuildResult | Commits
FindingsOf: TypeAlias = Callable[[ToolUse], Sequence[Finding]]
"""Pure; asked of each tool that ended."""


def tell_build(watch: Watch, result: BuildResult, *, key: str) -> tuple[Watch, tuple[Alert, ...]]:
    """Tell the result of a build; not that it passed again right after passing."""
    family = checksum(result.family)
    again = result.passed and family in watch.passing
    others = tuple(each for each in watch.passing if each != family)
    passing = (*others, family)[-FAMILIES_MAX:] if result.passed else others
    watch = replace(watch, passing=passing)
    return watch, () if again else (_alert_of_build(result, key),)


def _alert_of_build(result: BuildResult, key: str) -> Alert:
    if result.passed:
        counts = "0 errors" if result.tests is None else f"{result.tests} passed"
        text = f"🔨 {result.work} passed ✅ ({counts})"
        summary = f"{result.work} passed"
    else:
        text = f"🔨 {result.work} failed" + (f": {result.summary}" if result.summary else "")
        summary = result.summary or f"{result.work} failed"
    return Alert(
        kind=AlertKind.BUILD_RESULT,
        text=cut(text, TEXT_CHARS_MAX),
        key=key,
        fields={
            "command": result.command,
            "passed": result.passed,
            "errors": result.errors,
            "summary": cut(summary, FIELD_CHARS_MAX),
        },
    )


def gathered(
    pending: Pending | None, messages: Sequence[str], *, key: str, at_ms: int, number: int
) -> Pending:
    """Add commits to those that are not reported yet."""
    words = tuple(shown(each, FIELD_CHARS_MAX) for each in messages)
    if pending is None:
        return Pending(
            key=key, since_ms=at_ms, last=number, count=len(words), words=words[:MESSAGES_MAX]
        )
    return replace(
        pending,
        last=number,
        count=pending.count + len(words),
        words=(*pending.words, *words)[:MESSAGES_MAX],
    )


def alert_of_commits(pending: Pending) -> Alert:
    """One line for one commit or for several."""
    words = [each or "(no message)" for each in pending.words]
    if pending.count == 1:
        text = f'📝 Committed: "{cut(words[0], _MESSAGE_CHARS)}"'
    else:
        text = f"📝 {pending.count} commits: {_listed(words, pending.count)}"
    return Alert(
        kind=AlertKind.GIT_COMMIT,
        text=text,
        key=pending.key,
        fields={"message": cut("; ".join(words), FIELD_CHARS_MAX), "count": pending.count},
    )


def _listed(words: Sequence[str], count: int) -> str:
    """As many as fit, each of the same length at most."""
    room = TEXT_CHARS_MAX - len(f"📝 {count} commits: , …")
    each = max(room // len(words) - len('"", '), 12)
    listed = ", ".join(f'"{cut(word, min(each, _MESSAGE_CHARS))}"' for word in words)
    return listed if count == len(words) else f"{listed}, …"
