"""Where what runs have beside their rows is kept: only ``wiring`` asks here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from subagents.config.paths import Paths
from subagents.config.settings import Settings
from subagents.errors import ConfigError
from subagents.ports import (
    ArtifactLog,
    EnvironmentLog,
    ProgressLog,
    ResultLog,
    SharedStore,
    TranscriptLog,
)
from subagents.store.environment_files import EnvironmentFiles
from subagents.store.progress_files import ProgressFiles
from subagents.store.result_files import ResultFiles
from subagents.store.transcripts.transcript_files import TranscriptFiles

if TYPE_CHECKING:
    from subagents.store.shared.stored_objects import StoredObjects


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


def run_logs_of(paths: Paths, settings: Settings, shared: SharedStore | None) -> RunLogs:
    """Files of this home, or what all nodes of its cluster have in their database.

    Args:
        paths: The home.
        settings: Of its daemon.
        shared: The store of a cluster, made by ``stores.store_of``; None = the daemon is alone.

    Raises:
        ConfigError: There is an object store, but not what is needed to use it.
    """
    if shared is None or settings.daemon.store is None:
        return RunLogs(
            environments=EnvironmentFiles(paths.environments_dir),
            progress=ProgressFiles(paths.progress_dir),
            results=ResultFiles(paths.results_dir),
            transcripts=TranscriptFiles(paths.transcripts_dir),
        )
    from subagents.cluster.sealing import Seal  # noqa: PLC0415 - an extra, as all of these
    from subagents.cluster.trust_files import TrustFiles  # noqa: PLC0415
    from subagents.store.shared.artifact_rows import ArtifactRows  # noqa: PLC0415
    from subagents.store.shared.environment_rows import EnvironmentRows  # noqa: PLC0415
    from subagents.store.shared.object_mover import ObjectMover  # noqa: PLC0415
    from subagents.store.shared.progress_rows import ProgressRows  # noqa: PLC0415
    from subagents.store.shared.result_rows import ResultRows  # noqa: PLC0415
    from subagents.store.shared.row_transcript import no_objects  # noqa: PLC0415
    from subagents.store.shared.run_tables import RunTables  # noqa: PLC0415
    from subagents.store.shared.transcript_rows import TranscriptRows  # noqa: PLC0415

    tables = RunTables(settings.daemon.store, lambda: shared.identity)
    seal = Seal(TrustFiles(paths.cluster_dir).secret, "environments of runs")
    objects = None if settings.cluster.objects is None else _objects(settings.cluster.objects)
    return RunLogs(
        environments=EnvironmentRows(tables, seal.encrypt, seal.decrypt),
        progress=ProgressRows(tables),
        results=ResultRows(tables),
        transcripts=TranscriptRows(tables, no_objects if objects is None else objects.read),
        artifact_copies=ArtifactRows(tables, objects),
        tidy=(lambda: None) if objects is None else ObjectMover(tables, objects).tidy,
        close=tables.close,
    )


def _objects(url: str) -> "StoredObjects":
    try:
        from subagents.store.shared.stored_objects import StoredObjects  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError(
            f"cluster.objects is set, but {error.name} is not installed",
            hint="install subagents[objects], or remove cluster.objects",
            details={"keys": ["cluster.objects"]},
        ) from error
    return StoredObjects(url)
