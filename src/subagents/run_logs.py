"""Where what runs have beside their rows is kept: only ``wiring`` asks here."""

from collections.abc import Callable
from dataclasses import dataclass

from subagents.config.paths import Paths
from subagents.config.settings import DaemonSettings
from subagents.ports import EnvironmentLog, ProgressLog, ResultLog, SharedStore, TranscriptLog
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
    close: Callable[[], None] = lambda: None
    """Nobody uses them any more. Idempotent."""


def run_logs_of(paths: Paths, settings: DaemonSettings, shared: SharedStore | None) -> RunLogs:
    """Files of this home, or what all nodes of its cluster have in their database.

    Args:
        paths: The home.
        settings: Of its daemon.
        shared: The store of a cluster, made by ``stores.store_of``; None = the daemon is alone.
    """
    if shared is None or settings.store is None:
        return RunLogs(
            environments=EnvironmentFiles(paths.environments_dir),
            progress=ProgressFiles(paths.progress_dir),
            results=ResultFiles(paths.results_dir),
            transcripts=TranscriptFiles(paths.transcripts_dir),
        )
    from subagents.cluster.sealing import Seal  # noqa: PLC0415 - an extra, as all of these
    from subagents.cluster.trust_files import TrustFiles  # noqa: PLC0415
    from subagents.store.shared.environment_rows import EnvironmentRows  # noqa: PLC0415
    from subagents.store.shared.progress_rows import ProgressRows  # noqa: PLC0415
    from subagents.store.shared.result_rows import ResultRows  # noqa: PLC0415
    from subagents.store.shared.run_tables import RunTables  # noqa: PLC0415

    tables = RunTables(settings.store, lambda: shared.identity)
    seal = Seal(TrustFiles(paths.cluster_dir).secret, "environments of runs")
    return RunLogs(
        environments=EnvironmentRows(tables, seal.encrypt, seal.decrypt),
        progress=ProgressRows(tables),
        results=ResultRows(tables),
        transcripts=TranscriptFiles(paths.transcripts_dir),
        close=tables.close,
    )
