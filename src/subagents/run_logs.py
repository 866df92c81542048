"""Where what runs have beside their rows is kept."""

from collections.abc import Callable
from dataclasses import dataclass

from subagents.config.paths import Paths
from subagents.ports import (
    ArtifactLog,
    EnvironmentLog,
    ProgressLog,
    ResultLog,
    TranscriptLog,
)
from subagents.store.environment_files import EnvironmentFiles
from subagents.store.progress_files import ProgressFiles
from subagents.store.result_files import ResultFiles
from subagents.store.transcripts.transcript_files import TranscriptFiles


@dataclass(frozen=True, slots=True)
class RunLogs:
    """All of it."""

    environments: EnvironmentLog
    progress: ProgressLog
    results: ResultLog
    transcripts: TranscriptLog
    artifact_copies: ArtifactLog | None = None
    tidy: Callable[[], None] = lambda: None
    """Move what is over to where it is cheap to keep. Blocks; may raise ``StoreUnavailable``."""
    close: Callable[[], None] = lambda: None
    """Nobody uses them any more. Idempotent."""


def file_logs(paths: Paths) -> RunLogs:
    """Files of that home."""
    return RunLogs(
        environments=EnvironmentFiles(paths.environments_dir),
        progress=ProgressFiles(paths.progress_dir),
        results=ResultFiles(paths.results_dir),
        transcripts=TranscriptFiles(paths.transcripts_dir),
    )
