"""A directory of transcripts for each test."""

from pathlib import Path

import pytest

from subagents.store.transcripts.transcript_files import TranscriptFiles


@pytest.fixture
def log(tmp_path: Path) -> TranscriptFiles:
    return TranscriptFiles(tmp_path)
