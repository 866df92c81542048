"""Stores that break a promise: each one must be caught."""

import itertools
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.simulation.mutation_table import ignored, mutation, says_in_sql, stores, wrap

from subagents.domain.run.values import RunId, replace
from subagents.domain.transcript.transcript_query import Checkpoint
from subagents.errors import StoreUnavailable
from subagents.extensions.track_record import track_record_files
from subagents.extensions.track_record.track_record_files import PerformanceFiles
from subagents.store import open_runs, result_files, row_store, rows
from subagents.store.open_runs import OpenRuns
from subagents.store.progress_files import ProgressFiles
from subagents.store.sqlite import sqlite_store
from subagents.store.sqlite.sqlite_store import SqliteStore
from subagents.store.transcripts import transcript_files
from subagents.store.transcripts.transcript_files import TranscriptFiles

# -- the database --------------------------------------------------------------------------------


@mutation
def does_not_sync_commits(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def connect(self: SqliteStore) -> sqlite3.Connection:
            connection: sqlite3.Connection = original(self)
            connection.execute("PRAGMA synchronous = NORMAL")
            return connection

        return connect

    wrap(patch, SqliteStore, "_connect", make)


@mutation
def commits_in_halves(patch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def piecemeal(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
        yield connection

    patch.setattr(sqlite_store, "transaction", piecemeal)


@mutation
def swallows_refused_writes(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def commit(self: Any, batch: object) -> None:
            try:
                original(self, batch)
            except StoreUnavailable:
                return

        return commit

    wrap(patch, SqliteStore, "commit", make)


@mutation
def lets_an_old_daemon_write(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SqliteStore, "_require_epoch", ignored)


@mutation
def stores_no_schedules(patch: pytest.MonkeyPatch) -> None:
    stores(patch, schedules=lambda _: {})


@mutation
def stores_no_idempotency_keys(patch: pytest.MonkeyPatch) -> None:
    stores(patch, idempotency=lambda _: [])


@mutation
def keeps_no_effects_in_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rows, "_pending_of", ignored)


@mutation
def folds_no_effects(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(open_runs, "asked_for", lambda _: ())


@mutation
def folds_effects_that_were_answered(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def folded(checkpoint: rows.Checkpoint, tail: Any) -> rows.Checkpoint:
            events = [*tail]
            run, left = original(checkpoint, events)
            silent = (replace(each, key=None) for each in events)
            return rows.Checkpoint(run, original(checkpoint, silent).pending if events else left)

        return folded

    wrap(patch, row_store, "folded", make)


@mutation
def forgets_that_an_effect_without_an_answer_is_done(patch: pytest.MonkeyPatch) -> None:
    stores(patch, performed=lambda _: [])


@mutation
def stores_some_runs_as_they_were(patch: pytest.MonkeyPatch) -> None:
    count = itertools.count(1)
    stores(patch, runs=lambda b: b.runs if b.created or next(count) % 10 else {})


@mutation
def takes_a_checkpoint_for_the_newest_state(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SqliteStore, "_folded", lambda _, checkpoint: checkpoint)


@mutation
def leaves_the_row_of_a_run_that_is_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OpenRuns, "is_due", lambda open_runs, run: run.id not in open_runs)


@mutation
def stores_no_keys_of_events(patch: pytest.MonkeyPatch) -> None:
    stores(patch, journal=lambda batch: [replace(each, key=None) for each in batch.journal])


@mutation
def stores_no_consumption(patch: pytest.MonkeyPatch) -> None:
    stores(patch, consumed=lambda _: [])


@mutation
def moves_no_messages(patch: pytest.MonkeyPatch) -> None:
    stores(patch, moved=lambda _: [])


@mutation
def reopens_no_messages(patch: pytest.MonkeyPatch) -> None:
    stores(patch, reopened=lambda _: {})


@mutation
def outdates_no_alerts(patch: pytest.MonkeyPatch) -> None:
    stores(patch, outdated=lambda _: [])


@mutation
def stores_no_messages_but_announcements(patch: pytest.MonkeyPatch) -> None:
    stores(patch, messages=lambda batch: [m for m in batch.messages if m.id.endswith(":announce")])


@mutation
def releases_no_leases(patch: pytest.MonkeyPatch) -> None:
    stores(patch, leases=lambda batch: {name: b for name, b in batch.leases.items() if b})


@mutation
def stores_no_cursors(patch: pytest.MonkeyPatch) -> None:
    def leases(batch: Any) -> Any:
        return {name: b and replace(b, cursor=0) for name, b in batch.leases.items()}

    stores(patch, leases=leases)


@mutation
def erases_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sqlite_store, "erased_rows", lambda *_: ())


@mutation
def prunes_what_nobody_read(patch: pytest.MonkeyPatch) -> None:
    says_in_sql(patch, "select_prunable", "consumed_at_ms IS NULL OR", "")


@mutation
def prunes_what_is_not_archived(patch: pytest.MonkeyPatch) -> None:
    says_in_sql(patch, "select_prunable", "archived_at_ms IS NOT NULL AND", "")


@mutation
def archives_what_nobody_read(patch: pytest.MonkeyPatch) -> None:
    unread = "consumed_at_ms IS NULL OR consumed_by IS NULL OR"
    says_in_sql(patch, "select_archivable", unread, "")


@mutation
def finds_no_unread_messages(patch: pytest.MonkeyPatch) -> None:
    says_in_sql(patch, "select_unread", "ORDER BY number LIMIT", "ORDER BY number DESC LIMIT 0 *")


# -- results -------------------------------------------------------------------------------------


def unsynced() -> object:
    """``os`` with a disk that is never waited for."""
    return SimpleNamespace(**{**vars(os), "fsync": ignored})


@mutation
def does_not_sync_results(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(result_files, "os", unsynced())
    patch.setattr(result_files, "sync", ignored)


@mutation
def does_not_sync_the_names_of_results(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(result_files, "sync", ignored)


# -- transcripts ---------------------------------------------------------------------------------


@mutation
def does_not_sync_transcripts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TranscriptFiles, "sync", ignored)


@mutation
def does_not_sync_the_names_of_transcripts(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def sync(path: Path) -> None:
            if not path.is_dir():
                original(path)

        return sync

    wrap(patch, transcript_files, "sync", make)


@mutation
def writes_on_behind_a_torn_batch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transcript_files, "os", SimpleNamespace(**{**vars(os), "truncate": ignored}))


@mutation
def believes_what_stands_behind_a_hole(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transcript_files, "_sound", lambda data: data)


@mutation
def begins_transcripts_anew(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TranscriptFiles, "resume", lambda *_: Checkpoint())


@mutation
def writes_lines_without_their_checkpoint(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def append(
            self: Any, run_id: RunId, lines: Any, checkpoint: Checkpoint, *, bytes_max: int
        ) -> None:
            stale = replace(checkpoint, positions={})
            original(self, run_id, lines, stale, bytes_max=bytes_max)

        return append

    wrap(patch, TranscriptFiles, "append", make)


@mutation
def forgets_no_transcripts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TranscriptFiles, "forget", ignored)


# -- records and progress ------------------------------------------------------------------------


@mutation
def writes_records_behind_torn_ones(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(track_record_files, "os", SimpleNamespace(**{**vars(os), "ftruncate": ignored}))


@mutation
def writes_records_again_after_a_crash(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PerformanceFiles, "_keys_of", lambda *_: set())


@mutation
def keeps_no_progress(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProgressFiles, "append", ignored)
