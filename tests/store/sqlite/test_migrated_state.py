"""A database of 0.1.0 holds the same runs after its migration."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests import old_state
from tests.store.sqlite.sqlite_place import a_store

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run import spending
from subagents.domain.run.outcome import Outcome
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId
from subagents.errors import CorruptState
from subagents.store.sqlite.migrated_state import in_values
from subagents.text import shortened

KNOWN: dict[str, dict[str, Any]] = old_state.expected()["runs"]


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("old") / "subagents.db"
    old_state.restore(path)
    with closing(a_store(path)) as store:
        store.open("new")
    return path


def shown_outcome(outcome: Outcome | None) -> dict[str, object] | None:
    if outcome is None:
        return None
    return {"status": outcome.status, "reason": outcome.reason, "error": outcome.error}


def facts(run: Run) -> dict[str, object]:
    """What the documents of 0.1.0 said of a run, under their names."""
    usage, report, latest = spending.total_usage(run), run.report, run.progress.latest
    last = run.attempts[-1] if run.attempts else None
    is_live = not run.is_settled
    continues = run.session.continues
    return {
        "label": run.resolved.label,
        "agentId": run.resolved.agent_id,
        "runtime": run.resolved.runtime,
        "requester": run.requester,
        "depth": run.lineage.depth,
        "phase": run.phase,
        "outcome": shown_outcome(run.outcome),
        "attempts": len(run.attempts),
        "attemptOutcomes": [shown_outcome(each.outcome) for each in run.attempts],
        "vacuous": run.verification.vacuous,
        "paused": run.control.paused,
        "requests": [
            [each.id, each.question, each.answer is None] for each in run.questions.requests
        ],
        "dependencies": [
            [each.run_id, each.label, each.outcome and each.outcome.status]
            for each in run.waiting.dependencies
        ],
        "children": [
            [each.run_id, each.label, each.outcome and each.outcome.status] for each in run.children
        ],
        "usage": msgspec.to_builtins(usage) or None,
        "result": shortened(run.result, 4_000),
        "report": report and [report.summary, report.status, report.confidence],
        "progress": latest and [latest.phase, latest.percent_complete, latest.updated_at_ms],
        "continues": continues and continues.run_id,
        "continuedBy": run.session.continued_by,
        "deadline": last.times.deadline_ms if last is not None and is_live else None,
        "seq": run.seq,
        "isArchived": run.times.archived_at_ms is not None,
        "retriesUsed": run.retry.used,
        "retryDueMs": run.retry.due_ms,
        "pids": [each.turn.pid for each in run.attempts],
    }


def known_facts(known: dict[str, Any]) -> dict[str, object]:
    """The same of the documents, where they say more."""
    report, latest, usage = known["report"], known["progress"], known["usage"]
    return {
        **known,
        "requests": [[name, text, word == "pending"] for name, text, word, _ in known["requests"]],
        "usage": usage and {key: value for key, value in usage.items() if value is not None},
        "report": report and [report["summary"], report["status"], report["confidence"]],
        "progress": latest
        and [latest["phase"], latest.get("percentComplete"), latest["updatedAt"]],
    }


@pytest.mark.requirement("store:migrations")
@pytest.mark.parametrize("run_id", sorted(KNOWN), ids=[KNOWN[r]["label"] for r in sorted(KNOWN)])
def test_every_run_of_an_old_database_is_what_it_was(migrated: Path, run_id: str) -> None:
    with closing(a_store(migrated)) as store:
        store.open_readonly()
        run = store.run(RunId(run_id))

    assert run is not None
    assert facts(run) == known_facts(KNOWN[run_id])


@pytest.mark.requirement("store:migrations")
@pytest.mark.parametrize("run_id", sorted(KNOWN), ids=[KNOWN[r]["label"] for r in sorted(KNOWN)])
def test_the_journal_of_an_old_run_still_tells_the_run(migrated: Path, run_id: str) -> None:
    with closing(a_store(migrated)) as store:
        store.open_readonly()
        stored, folded = store.run(RunId(run_id)), None
        for each in store.journal(RunId(run_id)):
            folded = reduce(folded, each.event).run

    assert folded == stored


@pytest.mark.requirement("store:migrations")
def test_a_copy_of_the_old_database_lies_beside_it(migrated: Path) -> None:
    copy = migrated.with_name("subagents.db.schema-2.bak")

    with closing(sqlite3.connect(copy)) as connection:
        states = connection.execute("SELECT state FROM run").fetchall()

    assert len(states) == len(KNOWN)
    assert all(b'"firstSessionKey"' in state for (state,) in states)


@pytest.mark.requirement("store:migrations")
@pytest.mark.parametrize(
    ("state", "problem"),
    [
        (b'{"id": "r-x", "depth": 1, "mood": "odd"}', "unknown field 'mood'"),
        (b'{"attempts": [{"number": 1, "mood": "odd"}]}', "unknown field 'mood'"),
        (b'{"announcementConsumedMs": 5}', "announcement was read, but has no delivery"),
        (b"[]", "Expected `object`"),
        (b'{"attempts": {}}', "Expected `array`"),
        (b"not JSON", "JSON is malformed"),
    ],
)
def test_a_run_that_no_version_wrote_stops_the_migration_and_changes_nothing(
    tmp_path: Path, state: bytes, problem: str
) -> None:
    path = tmp_path / "subagents.db"
    old_state.restore(path)
    odd = max(KNOWN)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE run SET state = ? WHERE run_id = ?", (state, odd))
        connection.commit()
        before = list(connection.iterdump())

    with pytest.raises(CorruptState) as refused:
        a_store(path).open("new")

    assert f"cannot be brought to schema 3: run {odd}: " in refused.value.message
    assert problem in refused.value.message
    assert refused.value.hint is not None
    assert "subagents.db.schema-2.bak" in refused.value.hint
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        assert list(connection.iterdump()) == before


@pytest.mark.requirement("store:migrations")
def test_a_follow_up_turn_that_was_asked_for_becomes_the_newest_attempts() -> None:
    old = {"attempts": [{"number": 1, "retryOf": None}, {"number": 2}], "followedUp": True}

    new = msgspec.json.decode(in_values(msgspec.json.encode(old)))

    assert new == {"attempts": [{"number": 1}, {"number": 2, "turn": {"nextAsked": True}}]}
