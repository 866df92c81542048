"""What runs have besides their rows, where the nodes of a cluster share it in their database."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from subagents.config.settings import Settings
from subagents.errors import ConfigError
from subagents.extensions.cluster.cluster_settings import ClusterSettings
from subagents.extensions.cluster.shared.allowed_call_rows import AllowedCallRows
from subagents.extensions.cluster.shared.artifact_rows import ArtifactRows
from subagents.extensions.cluster.shared.object_mover import ObjectMover
from subagents.extensions.cluster.shared.row_transcript import no_objects
from subagents.extensions.cluster.shared.run_rows import EnvironmentRows, ProgressRows, ResultRows
from subagents.extensions.cluster.shared.run_tables import RunTables
from subagents.extensions.cluster.shared.transcript_rows import TranscriptRows
from subagents.extensions.cluster.shared_store import SharedStore
from subagents.installation import extra_command
from subagents.ports import RunLogs

if TYPE_CHECKING:
    from subagents.extensions.cluster.shared.stored_objects import StoredObjects


def row_logs(
    settings: Settings,
    url: str,
    shared: SharedStore,
    encrypt: Callable[[bytes], bytes],
    decrypt: Callable[[bytes], bytes],
) -> RunLogs:
    """All of it.

    Args:
        settings: Of the daemon.
        url: Of the cluster's database.
        shared: The store there.
        encrypt: See ``EnvironmentRows``.
        decrypt: See ``EnvironmentRows``.

    Raises:
        ConfigError: There is an object store, but not what is needed to use it.
    """
    tables = RunTables(url, lambda: shared.identity)
    place = settings.table(ClusterSettings).objects
    objects = None if place is None else _objects(place)
    return RunLogs(
        allowed_calls=AllowedCallRows(tables, encrypt, decrypt),
        environments=EnvironmentRows(tables, encrypt, decrypt),
        progress=ProgressRows(tables),
        results=ResultRows(tables),
        transcripts=TranscriptRows(tables, no_objects if objects is None else objects.read),
        artifact_copies=ArtifactRows(tables, objects),
        tidy=(lambda: None) if objects is None else ObjectMover(tables, objects).tidy,
        close=tables.close,
    )


def _objects(url: str) -> "StoredObjects":
    try:
        from subagents.extensions.cluster.shared.stored_objects import StoredObjects  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError(
            f"cluster.objects is set, but {error.name} is not installed",
            hint=f"{extra_command('objects')}, or remove cluster.objects",
            details={"keys": ["cluster.objects"]},
        ) from error
    return StoredObjects(url)
