"""Migrations 3, 6 and 11, as far as SQL cannot do them.

3: what a run stored as fields of its own becomes fields of small values. 6: what lists find a run
by becomes columns. 11: rows of the outbox become a column of their run. They work on JSON alone and
know the names of then, not today's classes: those may change again, and a step has to go on giving
what the next one expects.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from subagents.store.rows import verify

Moves: TypeAlias = Mapping[str, tuple[str, ...]]
"""Where each field of then is now."""

RUN_KEPT: Final = frozenset(
    {"id", "spec", "resolved", "requester", "phase", "seq", "attempts", "children", "alerts"}
    | {"refusals", "delivery"}
)
RUN_MOVES: Final[Moves] = {
    "depth": ("lineage", "depth"),
    "requesterRun": ("lineage", "requesterRun"),
    "retryFrom": ("lineage", "retryFrom"),
    "createdAtMs": ("times", "createdAtMs"),
    "phaseSinceMs": ("times", "phaseSinceMs"),
    "startedAtMs": ("times", "startedAtMs"),
    "archivedAtMs": ("times", "archivedAtMs"),
    "dependencies": ("waiting", "dependencies"),
    "waitDeadlineMs": ("waiting", "deadlineMs"),
    "retriesUsed": ("retry", "used"),
    "retryDueMs": ("retry", "dueMs"),
    "limited": ("retry", "limited"),
    "nextAttemptReason": ("retry", "cause", "reason"),
    "nextAttemptVerifies": ("retry", "cause", "verifies"),
    "verificationState": ("verification", "state"),
    "verification": ("verification", "result"),
    "vacuous": ("verification", "vacuous"),
    "retryAttemptedAtMs": ("verification", "retriedAtMs"),
    "progress": ("progress", "latest"),
    "progressLines": ("progress", "lines"),
    "progressPacedMs": ("progress", "pacedAtMs"),
    "firstSessionKey": ("session", "firstKey"),
    "continues": ("session", "continues"),
    "continuedBy": ("session", "continuedBy"),
    "requests": ("questions", "requests"),
    "notices": ("questions", "notices"),
    "cancel": ("control", "cancel"),
    "paused": ("control", "paused"),
    "steers": ("control", "steers"),
    "steersTotal": ("control", "steersTotal"),
    "lastSteerMs": ("control", "lastSteerMs"),
    "budgetMark": ("budget", "mark"),
    "reserve": ("budget", "reserve"),
    "budgetStop": ("budget", "stop"),
    "outcome": ("conclusion", "outcome"),
    "endedAtMs": ("conclusion", "endedAtMs"),
    "settledSeq": ("conclusion", "seq"),
    "result": ("conclusion", "result"),
    "resultBytes": ("conclusion", "resultBytes"),
    "report": ("conclusion", "report"),
    "announcementConsumedMs": ("delivery", "consumedAtMs"),
}
ATTEMPT_KEPT: Final = frozenset(
    {"number", "evidence", "outcome", "usage", "remains", "tokenHashes"}
)
ATTEMPT_MOVES: Final[Moves] = {
    "sessionKey": ("session", "key"),
    "nativeSession": ("session", "native"),
    "resumes": ("session", "resumes"),
    "opening": ("session", "opening"),
    "requestedAtMs": ("times", "requestedAtMs"),
    "startedAtMs": ("times", "startedAtMs"),
    "endedAtMs": ("times", "endedAtMs"),
    "deadlineMs": ("times", "deadlineMs"),
    "warned": ("times", "warned"),
    "retryReason": ("retry", "reason"),
    "verificationRetry": ("retry", "verifies"),
    "turns": ("turn", "number"),
    "pid": ("turn", "pid"),
    "report": ("reported", "report"),
    "reportIsText": ("reported", "isText"),
    "reportProblem": ("reported", "problem"),
    "lastTool": ("last", "tool"),
    "reportIsLast": ("last", "isReport"),
    "resultIsLast": ("last", "isResult"),
}

NONE: Final = msgspec.Raw(b"[]")
NO: Final = msgspec.Raw(b"false")
_encode: Final = msgspec.json.Encoder().encode
_fields_of: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_list_of: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
_flag_of: Final = msgspec.json.Decoder(bool).decode


def in_values(state: bytes) -> bytes:
    """The state of a run as schema 2 has it, as schema 3 has it.

    Raises:
        ValueError: It is no such state; what is wrong, for people.
    """
    fields = _fields_of(state)
    attempts = [_attempt(each) for each in _list_of(fields.pop("attempts", NONE))]
    if _flag_of(fields.pop("followedUp", NO)) and attempts:
        _put(attempts[-1], ("turn", "nextAsked"), value=True)
    old: dict[str, object] = {**fields, "attempts": attempts}
    if "delivery" in fields:
        old["delivery"] = {**_fields_of(fields["delivery"])}
    elif "announcementConsumedMs" in fields:
        raise ValueError("its announcement was read, but has no delivery")
    return _encode(_moved(old, RUN_MOVES, RUN_KEPT))


def _attempt(old: Mapping[str, object]) -> dict[str, object]:
    # Its number says which attempt it repeats.
    return _moved({k: v for k, v in old.items() if k != "retryOf"}, ATTEMPT_MOVES, ATTEMPT_KEPT)


def _moved(old: Mapping[str, object], moves: Moves, kept: frozenset[str]) -> dict[str, object]:
    new = {name: value for name, value in old.items() if name in kept}
    for name, value in old.items():
        if name in moves:
            _put(new, moves[name], value=value)
        elif name not in kept:
            raise ValueError(f"unknown field {name!r}")
    return new


def _put(into: dict[str, object], path: tuple[str, ...], *, value: object) -> None:
    *way, last = path
    for name in way:
        below = into.setdefault(name, {})
        if not isinstance(below, dict):
            raise TypeError(f"{name!r} is no object")
        into = below
    into[last] = value


def project_of(origin: object) -> str | None:
    """Migration 6: the directory of a run's project; None for what cannot be read."""
    worktree = _text_at(origin, "resolved", "worktree", "origin")
    return _text_at(origin, "resolved", "cwd") if worktree is None else worktree


def tags_of(origin: object) -> str | None:
    """Migration 6: a JSON list of its tags; None = it has none."""
    tags = _at(origin, "spec", "tags")
    return _encode(tags).decode() if tags else None


def outcome_of(state: object) -> str | None:
    """Migration 6: the status of its outcome; None = it has none yet."""
    return _text_at(state, "conclusion", "outcome", "status")


class PendingOf:
    """Migration 11: a run's rows of the outbox as one value, unreadable when one is damaged."""

    def __init__(self) -> None:
        self._found: list[tuple[int, int, msgspec.Raw]] = []
        self._is_sound = True

    def step(self, run_id: str, seq: int, index: int, effect: bytes, written: int | None) -> None:
        try:
            verify(written, run_id, seq, index, effect)
            self._found.append((seq, index, msgspec.Raw(effect)))
        except (ValueError, TypeError):
            self._is_sound = False

    def finalize(self) -> bytes:
        found = sorted(self._found, key=lambda each: each[:2])
        # Not NULL, which would say that the run has nothing to do.
        return _encode(found) if self._is_sound else b""


def _text_at(document: object, *path: str) -> str | None:
    found = _at(document, *path)
    return found if isinstance(found, str) else None


def _at(document: object, *path: str) -> object:
    try:
        found = msgspec.json.decode(document) if isinstance(document, bytes) else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None  # damaged: found when it is read
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found
