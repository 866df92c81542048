"""Transcripts of archived runs in an object store: a directory, and S3 as far as moto plays it."""

import http.client
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.extensions.cluster.postgres.postgres_server import PostgresPlace
from tests.extensions.cluster.shared.conftest import NewTables
from tests.store.row_place import opened
from tests.store.transcripts.transcript_lines import MB, RUN, checkpoint, everything, fill, lines

from subagents.domain.run.values import RunId
from subagents.domain.transcript.transcript_query import LogQuery
from subagents.errors import StoreUnavailable
from subagents.extensions.cluster.shared.object_mover import ObjectMover, Objects
from subagents.extensions.cluster.shared.row_transcript import no_objects
from subagents.extensions.cluster.shared.stored_objects import StoredObjects
from subagents.extensions.cluster.shared.transcript_rows import TranscriptRows
from subagents.extensions.testing.stored_values import NOW_MS, a_run, archived, over, spawned

KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of a server that answers as S3 does."""
    argv = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    server = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        told = next(found for line in server.stderr if (found := re.search(r"http://\S+", line)))
        yield told[0]
    finally:
        server.terminate()
        server.wait()
        server.stderr.close()


@pytest.fixture(params=["directory", "s3"])
def objects(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> StoredObjects:
    if request.param == "directory":
        return StoredObjects(f"file://{tmp_path}/objects")
    address = request.getfixturevalue("s3")
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(name, value)
    bucket = f"bucket-{os.urandom(4).hex()}"
    made = http.client.HTTPConnection(urlsplit(address).netloc)
    made.request("PUT", f"/{bucket}")
    assert made.getresponse().status == http.HTTPStatus.OK
    made.close()
    return StoredObjects(f"s3://{bucket}/path/to")


@pytest.fixture
def archive(postgres_place: PostgresPlace) -> Callable[[], None]:
    """Stores the run of the transcripts as one that was archived."""

    def store() -> None:
        run = archived(over(a_run(1)), NOW_MS)
        assert run.id == RUN
        with opened(postgres_place) as found:
            found.commit(spawned(run))

    return store


def rows(place: PostgresPlace) -> int:
    return int(str(place.asked("SELECT count(*) FROM transcript_part")[0][0]))


@pytest.mark.requirement("objects:store")
def test_an_object_is_read_from_any_byte_until_it_is_deleted(objects: StoredObjects) -> None:
    objects.put("some/key", b"0123456789")
    objects.put("some/other", b"")

    assert objects.read("some/key", 3, 4) == b"3456"
    objects.delete(["some/key", "never/there"])
    with pytest.raises(FileNotFoundError):
        objects.read("some/key", 0, 1)


@pytest.mark.requirement("objects:store")
def test_a_store_that_cannot_be_reached_is_told_and_nothing_is_missing(
    tmp_path: Path,
    new_tables: NewTables,
    postgres_place: PostgresPlace,
    archive: Callable[[], None],
) -> None:
    archive()
    tables = new_tables()
    fill(TranscriptRows(tables, no_objects), 30)
    place = tmp_path / "objects"
    objects = StoredObjects(f"file://{place}")
    (place / "transcripts").write_text("in the way of a directory")

    with pytest.raises(StoreUnavailable, match="transcripts/r-"):
        ObjectMover(tables, objects).tidy()

    assert everything(TranscriptRows(tables, no_objects)).lines == tuple(lines(1, 30))
    assert rows(postgres_place) > 0


@pytest.mark.requirement("objects:moved")
def test_the_transcript_of_an_archived_run_moves_and_every_node_reads_it_as_before(
    objects: StoredObjects,
    new_tables: NewTables,
    postgres_place: PostgresPlace,
    archive: Callable[[], None],
) -> None:
    tables = new_tables()
    log = TranscriptRows(tables, objects.read)
    fill(log, 3_000, batch=50, bytes_max=MB)
    other = RunId("r-other")
    log.append(other, lines(1, 5), checkpoint(5), bytes_max=MB)
    ObjectMover(tables, objects).tidy()
    before = rows(postgres_place)
    archive()
    queries = [
        LogQuery(),
        LogQuery(offset=100, limit=7),
        LogQuery(grep="line 29", limit=1000),
        LogQuery(since_ms=1500, limit=20),
        LogQuery(after_seq=2_990),
    ]
    said = [log.read(RUN, query) for query in queries]
    log.close(RUN)

    ObjectMover(tables, objects).tidy()

    assert before > rows(postgres_place) == 1, "that of the other run"
    reader = TranscriptRows(new_tables("another node"), objects.read)
    assert [reader.read(RUN, query) for query in queries] == said
    assert reader.resume(RUN) == checkpoint(3_000)
    with pytest.raises(FileNotFoundError, match=r"cluster\.objects is unset"):
        TranscriptRows(tables, no_objects).read(RUN, LogQuery())


@pytest.mark.requirement("objects:moved")
def test_what_is_said_of_a_run_after_it_moved_follows_it_and_forgetting_deletes_the_objects(
    objects: StoredObjects,
    new_tables: NewTables,
    postgres_place: PostgresPlace,
    archive: Callable[[], None],
) -> None:
    archive()
    tables = new_tables()
    log, mover = TranscriptRows(tables, objects.read), ObjectMover(tables, objects)
    fill(log, 40)
    log.close(RUN)
    keys = []
    for last in (40, 45, 50):
        fill(log, last)
        log.close(RUN)
        assert everything(log).lines == tuple(lines(1, last))
        mover.tidy()
        assert rows(postgres_place) == 0
        assert everything(log).lines == tuple(lines(1, last))
        keys.append(str(postgres_place.asked("SELECT object FROM transcript")[0][0]))

    log.forget(RUN)
    postgres_place.execute("UPDATE gone_object SET due = now() - interval '1 second'")
    mover.tidy()

    assert len(set(keys)) == 3
    for key in keys:
        with pytest.raises(FileNotFoundError):
            objects.read(key, 0, 1)
    assert postgres_place.asked("SELECT * FROM gone_object") == []


class Crash(Exception):
    """The process is gone."""


class Dying:
    """Objects of a process that dies around a ``put``."""

    def __init__(self, objects: Objects, *, is_put: bool) -> None:
        self._objects = objects
        self._is_put = is_put
        self.key = ""

    def put(self, key: str, data: bytes | Iterator[bytes]) -> None:
        self.key = key
        if self._is_put:
            self._objects.put(key, data)
        raise Crash

    def read(self, key: str, offset: int, length: int) -> bytes:
        return self._objects.read(key, offset, length)

    def delete(self, keys: Sequence[str]) -> None:
        self._objects.delete(keys)


@pytest.mark.requirement("objects:crash")
@pytest.mark.parametrize("is_put", [False, True])
def test_a_node_that_dies_while_it_moves_leaves_the_lines_and_no_object(
    tmp_path: Path,
    new_tables: NewTables,
    postgres_place: PostgresPlace,
    archive: Callable[[], None],
    *,
    is_put: bool,
) -> None:
    archive()
    tables, objects = new_tables(), StoredObjects(f"file://{tmp_path}/objects")
    log = TranscriptRows(tables, objects.read)
    fill(log, 40)
    dying = Dying(objects, is_put=is_put)
    with pytest.raises(Crash):
        ObjectMover(tables, dying).tidy()
    assert everything(log).lines == tuple(lines(1, 40))

    mover = ObjectMover(tables, objects)
    mover.tidy()
    assert rows(postgres_place) > 0, "whoever claimed it may be at it still"
    postgres_place.execute("UPDATE transcript SET mover_due = now() - interval '1 second'")
    postgres_place.execute("UPDATE gone_object SET due = now() - interval '1 second'")
    mover.tidy()

    assert rows(postgres_place) == 0
    assert everything(log).lines == tuple(lines(1, 40))
    with pytest.raises(FileNotFoundError):
        objects.read(dying.key, 0, 1)
    assert len([each for each in (tmp_path / "objects").rglob("*") if each.is_file()]) == 1


@pytest.mark.requirement("objects:crash")
def test_an_object_that_is_being_deleted_as_one_of_nobody_is_not_referred_to(
    tmp_path: Path,
    new_tables: NewTables,
    postgres_place: PostgresPlace,
    archive: Callable[[], None],
) -> None:
    archive()
    tables, objects = new_tables(), StoredObjects(f"file://{tmp_path}/objects")
    log = TranscriptRows(tables, objects.read)
    fill(log, 40)

    class Slow(Dying):
        """Another node thinks that it died."""

        def put(self, key: str, data: bytes | Iterator[bytes]) -> None:
            objects.put(key, data)
            postgres_place.execute("UPDATE gone_object SET due = now() - interval '1 second'")
            ObjectMover(tables, objects).tidy()

    ObjectMover(tables, Slow(objects, is_put=True)).tidy()

    assert rows(postgres_place) > 0
    assert everything(log).lines == tuple(lines(1, 40))
