"""Transcripts in rows do what every transcript does, and are searched alike."""

from collections.abc import Iterator

import pytest
from tests.extensions.cluster.postgres.postgres_server import PostgresPlace, PostgresServer
from tests.extensions.cluster.shared.row_place import RowPlace
from tests.store.transcripts.test_transcript_search import (
    filled,
    test_a_page_is_what_the_filters_and_then_the_window_leave,
)
from tests.store.transcripts.test_transcript_suite import *  # noqa: F403 - its tests are these

from subagents.domain.transcript.transcript_query import Line
from subagents.ports import TranscriptLog

__all__ = ["test_a_page_is_what_the_filters_and_then_the_window_leave"]


@pytest.fixture(scope="module")
def stored(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[TranscriptLog, list[Line]]]:
    place = RowPlace(PostgresPlace(postgres, tmp_path_factory.mktemp("log")))
    yield filled(place, 12_000)
    place.close()
