"""Transcripts for each test."""

from pathlib import Path

import pytest
from tests.store.transcripts.transcript_places import FilePlace

from subagents.store.transcripts.transcript_files import TranscriptFiles


@pytest.fixture
def log(tmp_path: Path) -> TranscriptFiles:
    return TranscriptFiles(tmp_path)


@pytest.fixture
def transcripts(tmp_path: Path) -> FilePlace:
    return FilePlace(tmp_path)
