"""Transcripts for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.postgres_server import PostgresPlace, PostgresServer
from tests.store.transcripts.transcript_places import FilePlace, RowPlace, TranscriptPlace

from subagents.store.transcripts.transcript_files import TranscriptFiles


@pytest.fixture
def log(tmp_path: Path) -> TranscriptFiles:
    return TranscriptFiles(tmp_path)


@pytest.fixture
def row_place(postgres: PostgresServer, tmp_path: Path) -> Iterator[RowPlace]:
    place = RowPlace(PostgresPlace(postgres, tmp_path))
    yield place
    place.close()


@pytest.fixture(params=["files", pytest.param("rows", marks=pytest.mark.tier("check"))])
def transcripts(request: pytest.FixtureRequest, tmp_path: Path) -> TranscriptPlace:
    if request.param == "files":
        return FilePlace(tmp_path)
    found: RowPlace = request.getfixturevalue("row_place")
    return found
