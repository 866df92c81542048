"""Copies of files that passed a contract: once for equal ones, and whole or not at all."""

import io
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.extensions.cluster.postgres.postgres_server import PostgresPlace
from tests.extensions.cluster.shared.conftest import NewTables

from subagents.domain.run.values import RunId
from subagents.errors import Fenced, StoreUnavailable
from subagents.extensions.cluster.shared import artifact_rows
from subagents.extensions.cluster.shared.artifact_rows import PIECE_BYTES, ArtifactRows
from subagents.extensions.cluster.shared.object_mover import ObjectMover
from subagents.extensions.cluster.shared.stored_objects import StoredObjects

ONE, TWO = RunId("r-0000000001"), RunId("r-0000000002")
SMALL = b"few bytes"
LARGE = b"".join(b"%07d\n" % number for number in range(PIECE_BYTES // 4))

NewCopies = Callable[[], ArtifactRows]


@pytest.fixture(params=["rows", "objects"])
def new_copies(request: pytest.FixtureRequest, new_tables: NewTables, tmp_path: Path) -> NewCopies:
    def new() -> ArtifactRows:
        is_with = request.param == "objects"
        return ArtifactRows(new_tables(), stored(tmp_path) if is_with else None)

    return new


def stored(directory: Path) -> StoredObjects:
    return StoredObjects(f"file://{directory}/objects")


def files_in(directory: Path) -> int:
    return sum(each.is_file() for each in (directory / "objects").rglob("*"))


def keep(copies: ArtifactRows, run_id: RunId, path: str, content: bytes, at: Path) -> bool:
    file = at / "made"
    file.write_bytes(content)
    with file.open("rb") as opened:
        return copies.keep(run_id, path, opened)


@pytest.mark.requirement("artifacts:copies")
@pytest.mark.parametrize("content", [b"", SMALL, LARGE], ids=["empty", "small", "large"])
def test_a_copy_is_read_from_any_byte_by_any_node(
    new_copies: NewCopies, tmp_path: Path, content: bytes
) -> None:
    assert keep(new_copies(), ONE, "out/a b.txt", content, tmp_path)

    other = new_copies()
    size = len(content)
    assert other.sizes(ONE) == {"out/a b.txt": size}
    assert other.sizes(TWO) == {}
    for offset in {0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, max(size - 3, 0), size}:
        for length in (1, 10, PIECE_BYTES, size + 1):
            assert other.read(ONE, "out/a b.txt", offset, length) == content[offset:][:length]
    with pytest.raises(FileNotFoundError):
        other.read(ONE, "another", 0, 1)


@pytest.mark.requirement("artifacts:copies")
def test_equal_files_are_stored_once_and_go_with_the_last_run_that_has_them(
    new_copies: NewCopies, new_tables: NewTables, postgres_place: PostgresPlace, tmp_path: Path
) -> None:
    copies = new_copies()
    for run_id, path in ((ONE, "a"), (ONE, "b"), (TWO, "c")):
        assert keep(copies, run_id, path, LARGE, tmp_path)
    assert keep(copies, ONE, "b", SMALL, tmp_path)
    assert postgres_place.asked("SELECT count(*) FROM artifact") == [(2,)]

    copies.forget(ONE)
    copies.forget(ONE)
    assert copies.sizes(ONE) == {}
    assert copies.read(TWO, "c", 0, 8) == LARGE[:8]
    copies.forget(TWO)

    tables = ("artifact", "artifact_piece", "run_artifact")
    assert [postgres_place.asked(f"SELECT count(*) FROM {each}") for each in tables] == [  # noqa: S608
        [(0,)]
    ] * 3
    postgres_place.execute("UPDATE gone_object SET due = now() - interval '1 second'")
    ObjectMover(new_tables(), stored(tmp_path)).tidy()
    assert files_in(tmp_path) == 0


@pytest.mark.requirement("artifacts:copies")
def test_two_runs_that_keep_and_forget_the_same_at_once_leave_no_copy_behind(
    new_copies: NewCopies, postgres_place: PostgresPlace, tmp_path: Path
) -> None:
    begin = threading.Barrier(2)
    failed: list[BaseException] = []

    def play(run_id: RunId) -> None:
        copies, own = new_copies(), tmp_path / run_id
        own.mkdir()
        for _ in range(20):
            begin.wait(90)
            try:
                keep(copies, run_id, "a", LARGE, own)
                assert copies.read(run_id, "a", 0, len(LARGE)) == LARGE
                begin.wait(90)
                copies.forget(run_id)
            except BaseException as error:  # noqa: BLE001 - told below
                failed.append(error)
                begin.abort()
                return

    threads = [threading.Thread(target=play, args=(each,)) for each in (ONE, TWO)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert failed == []
    assert postgres_place.asked("SELECT count(*) FROM artifact") == [(0,)]


class Changing(io.BufferedReader):
    """A file that somebody writes to while it is read for the second time."""

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path))
        self._path = path
        self._times = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._times += 1
        if self._times == 2:
            self._path.write_bytes(LARGE[::-1])
        return super().seek(offset, whence)


@pytest.mark.requirement("artifacts:copies")
def test_a_file_that_is_changed_while_it_is_stored_is_not_kept(
    new_copies: NewCopies, new_tables: NewTables, postgres_place: PostgresPlace, tmp_path: Path
) -> None:
    file = tmp_path / "made"
    file.write_bytes(LARGE)

    with Changing(file) as opened, pytest.raises(OSError, match="changed while"):
        new_copies().keep(ONE, "a", opened)

    assert postgres_place.asked("SELECT count(*) FROM artifact") == [(0,)]
    postgres_place.execute("UPDATE gone_object SET due = now() - interval '1 second'")
    ObjectMover(new_tables(), stored(tmp_path)).tidy()
    assert files_in(tmp_path) == 0


@pytest.mark.requirement("artifacts:copies")
def test_what_is_too_large_is_not_kept_and_what_a_dead_node_has_neither(
    new_copies: NewCopies,
    new_tables: NewTables,
    postgres_place: PostgresPlace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("ROW_BYTES_MAX", "OBJECT_BYTES_MAX"):
        monkeypatch.setattr(artifact_rows, name, len(LARGE) - 1)
    assert not keep(new_copies(), ONE, "a", LARGE, tmp_path)
    assert new_copies().sizes(ONE) == {}

    postgres_place.execute("UPDATE node SET identity = 'a node', is_over = true")
    with pytest.raises(Fenced):
        keep(new_copies(), ONE, "a", SMALL, tmp_path)


@pytest.mark.requirement("artifacts:copies")
def test_an_object_that_was_given_up_while_it_was_stored_is_not_referred_to(
    new_tables: NewTables, postgres_place: PostgresPlace, tmp_path: Path
) -> None:
    objects, tables = stored(tmp_path), new_tables()

    class Slow(StoredObjects):
        def put(self, key: str, data: bytes | Iterator[bytes]) -> None:
            objects.put(key, data)
            postgres_place.execute("UPDATE gone_object SET due = now() - interval '1 second'")
            ObjectMover(tables, objects).tidy()

    with pytest.raises(StoreUnavailable, match="took longer"):
        keep(ArtifactRows(tables, Slow(f"file://{tmp_path}/objects")), ONE, "a", LARGE, tmp_path)

    assert postgres_place.asked("SELECT count(*) FROM artifact") == [(0,)]
