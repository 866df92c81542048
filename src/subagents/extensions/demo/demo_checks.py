"""Did the demo's fleet really do it? Looked up in the files and the journal, not taken on trust."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from subagents.api.wire.event_answers import TimelineEvent
from subagents.api.wire.message_answers import Message
from subagents.api.wire.run_answers import RunResult
from subagents.extensions.demo.demo_fleet import (
    ANSWER,
    ASKS,
    LABELS,
    LAST,
    RETRIED,
    DemoDirectory,
)


class Finding(NamedTuple):
    """One thing the demo promises, and whether it is so."""

    text: str
    is_true: bool


class Demonstrated(NamedTuple):
    """What is left when the fleet is done."""

    directory: DemoDirectory
    items: Mapping[str, RunResult]
    """Label → how its run ended, as ``wait`` handed it over."""
    events: Mapping[str, Sequence[TimelineEvent]]
    """Label → its run's journal."""
    inbox: Sequence[Message]
    """Everything that was ever in the requester's inbox."""
    repeats: int
    """Announcements that a second look into the inbox offered again."""


def findings(done: Demonstrated) -> list[Finding]:
    """Every promise of the demo, in the order of the story; a check that breaks is a failed one."""
    return [Finding(text, _holds(check, done)) for text, check in _CHECKS.items()]


def _holds(check: Callable[[Demonstrated], bool], done: Demonstrated) -> bool:
    try:
        return check(done)
    except (OSError, ValueError, LookupError, TypeError):
        # A file or an event that should be there is not, or is not what it should be.
        return False


def _all_verified(done: Demonstrated) -> bool:
    for label in LABELS:
        verdict = _of(done, label, "VerificationFinished")[-1]
        announced = [each.seq for each in done.events[label] if each.phase == "announcing"]
        is_in_order = _verdict(verdict) == "passed" and min(announced) == verdict.seq
        if not is_in_order or done.items[label].outcome.status != "ok":
            return False
    return True


def _retried_once(done: Demonstrated) -> bool:
    verdicts = [_verdict(each) for each in _of(done, RETRIED, "VerificationFinished")]
    has_reason = "I was told: File counts.json" in (done.items[RETRIED].result or "")
    return verdicts == ["failed", "passed"] and has_reason


def _verdict(event: TimelineEvent) -> object:
    found = event.data.get("verification")
    return found.get("verdict") if isinstance(found, dict) else None


def _asked_and_sorted(done: Demonstrated) -> bool:
    asked, answered = (_of(done, ASKS, kind) for kind in ("RequestAsked", "RequestAnswered"))
    text = (done.directory.work / "report.txt").read_text(encoding="utf-8")
    sizes = [int(line.split()[0]) for line in text.splitlines()]
    is_sorted = sizes == sorted(sizes, reverse=True) and len(sizes) == len(done.directory.modules())
    is_answer_used = f"sorted by {ANSWER}." in (done.items[ASKS].result or "")
    return len(asked) == len(answered) == 1 and is_sorted and is_answer_used


def _fanned_in(done: Demonstrated) -> bool:
    started = min(each.occurred_at or "" for each in _of(done, LAST, "AttemptStarted"))
    before = [label for label in LABELS if label != LAST]
    ended = [
        each.occurred_at or ""
        for label in before
        for each in done.events[label]
        if each.phase in {"ending", "announcing"}
    ]
    text = (done.directory.work / "summary.md").read_text(encoding="utf-8")
    has_results = all((done.items[label].result or "?").strip() in text for label in before)
    return started >= max(ended) and has_results


def _counted_right(done: Demonstrated) -> bool:
    counts = json.loads((done.directory.work / "counts.json").read_text(encoding="utf-8"))
    expected = {
        str(module.relative_to(done.directory.work)): len(
            module.read_text(encoding="utf-8").splitlines()
        )
        for module in done.directory.modules()
    }
    return {each["module"]: each["lines"] for each in counts} == expected


def _indexed_right(done: Demonstrated) -> bool:
    index = json.loads((done.directory.work / "index.json").read_text(encoding="utf-8"))
    return all(
        hashlib.sha256((done.directory.work / each["path"]).read_bytes()).hexdigest()
        == each["sha256"]
        for each in index
    )


def _told_once(done: Demonstrated) -> bool:
    announced = [each for each in done.inbox if each.kind == "announcement"]
    consumed = all(each.consumed_at is not None for each in announced)
    return len(announced) == len(LABELS) and consumed and done.repeats == 0


def _started_once(done: Demonstrated) -> bool:
    log = (done.directory.work / "starts.log").read_text(encoding="utf-8")
    started = sorted(line.rsplit(" ", 1)[0] for line in log.splitlines())
    attempts = [f"{label} 1" for label in LABELS]
    return started == sorted([*attempts, f"{RETRIED} 2"])


def _of(done: Demonstrated, label: str, kind: str) -> list[TimelineEvent]:
    return [each for each in done.events[label] if each.type == kind and not each.stale]


_CHECKS: Final[Mapping[str, Callable[[Demonstrated], bool]]] = {
    "all four runs ended ok, and only after their contracts passed": _all_verified,
    f"{RETRIED} delivered a bad file, was told why, and did it again once": _retried_once,
    f'{ASKS} asked one question, got "{ANSWER}", and sorted by it': _asked_and_sorted,
    f"{LAST} began when the other three were done, with their results": _fanned_in,
    "the lines in counts.json are those of the files, counted here again": _counted_right,
    "the checksums in index.json are those of the files": _indexed_right,
    "each of the four announcements was handed over exactly once": _told_once,
    "no worker was started twice for the same attempt (starts.log)": _started_once,
}
