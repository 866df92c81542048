"""The database of every released version is opened by this one, with all that is in it."""

import gzip
import re
from contextlib import closing
from pathlib import Path

import pytest
from tests import old_state

from subagents.api.answers.explain import fold
from subagents.ports import RunFilter
from subagents.store.sqlite.migrate import migrations
from subagents.store.sqlite.sqlite_store import SqliteStore

CHANGELOG = Path(__file__).parents[3] / "CHANGELOG.md"
VERSIONS = sorted(each.name.removeprefix("state-") for each in old_state.folders())
RELEASED = re.compile(r"^## \[(\d+\.\d+\.\d+)\]", re.MULTILINE)
UNRELEASED = re.compile(r"^## \[Unreleased\]\n+(?!## )\S", re.MULTILINE)


@pytest.mark.requirement("store:migrations", "store:released")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_database_of_a_released_version_is_opened_listed_and_folded(
    tmp_path: Path, version: str
) -> None:
    path = tmp_path / "subagents.db"
    old_state.restore(path, version)
    known = old_state.expected(version)["runs"]

    with closing(SqliteStore(path, synchronous="OFF")) as store:
        store.open("test")
        runs = {run.id: run for run in store.runs(RunFilter(limit=10_000, archived=True))}
        for run in runs.values():
            *_, last = fold(store.journal(run.id, limit=10_000))
            assert last.run == run
        assert store.check() == []

    assert {run.id: run.phase for run in runs.values()} == {
        run_id: each["phase"] for run_id, each in known.items()
    }


@pytest.mark.requirement("store:released")
def test_every_released_version_left_a_database_here() -> None:
    changelog = CHANGELOG.read_text("utf-8")

    assert sorted(RELEASED.findall(changelog)) == VERSIONS


@pytest.mark.requirement("store:released")
def test_a_schema_that_no_database_here_has_is_not_released() -> None:
    dumps = [gzip.decompress((each / "state.sql.gz").read_bytes()) for each in old_state.folders()]
    newest = max(int(re.findall(rb"PRAGMA user_version\s*=\s*(\d+)", each)[-1]) for each in dumps)
    changelog = CHANGELOG.read_text("utf-8")

    assert newest == migrations()[-1][0] or UNRELEASED.search(changelog)
