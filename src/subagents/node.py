"""What a daemon has where it is alone, and what an extension puts in its place."""

import os
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from subagents import extension
from subagents.config.paths import Paths
from subagents.config.settings import Settings
from subagents.engine.engine import Sharing
from subagents.engine.kernel.threads import DaemonThreads
from subagents.ports import EngineClock, OffLoop, RunLogs, Runtime, Store, Workplace
from subagents.store.allowed_call_file import AllowedCallFile
from subagents.store.environment_files import EnvironmentFiles
from subagents.store.progress_files import ProgressFiles
from subagents.store.result_files import ResultFiles
from subagents.store.transcripts.transcript_files import TranscriptFiles
from subagents.stores import store_of

Take: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Takes attempts of other nodes until cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHost:
    """What a node is made of; the engine is there only once it is asked for."""

    paths: Paths
    settings: Settings
    """The daemon's settings."""
    runtimes: Mapping[str, Runtime]
    """The runtimes of this node, by name."""
    processes: DaemonThreads
    """The threads for what looks at processes."""
    clock: EngineClock
    off_loop: OffLoop
    """The threads for the store."""
    promise: Callable[[], bool]
    """See ``Ownership.promise``."""
    workplace: Callable[[], Workplace]
    """Gives the workplace of this node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeParts:
    """What a node is made of; each part by default as it is where a daemon is alone."""

    store: Store
    logs: RunLogs
    sharing: Sharing | None = None
    """What the engine has besides where others write the store, too."""
    taking: Take | None = None
    extend_work: Callable[[int], None] = lambda _until_ms: None
    """Lets the workers of this home live until a time at which the node may be over."""
    threads: tuple[DaemonThreads, ...] = ()
    tidy: Callable[[], None] = lambda: None
    """Drop what nobody comes for. Blocks; may raise ``StoreUnavailable``."""
    close: Callable[[], None] = lambda: None
    """Release the parts, which are no longer used. Idempotent."""
    parts: Mapping[str, object] = field(default_factory=dict)
    """What the extension adds to ``Services.parts``."""


def node_name(settings: Settings) -> str:
    """What this daemon is called in attempts, and among others."""
    return settings.daemon.node or os.uname().nodename


def node_of(host: NodeHost) -> NodeParts:
    """What the settings ask for.

    Raises:
        ConfigError: What is needed for it is not installed, or some of it is not configured.
    """
    for _, found in extension.made("node", host):
        # None = this extension has nothing to do where these settings hold.
        if isinstance(found, NodeParts):
            return found
    return NodeParts(store=store_of(host.paths, host.settings.daemon), logs=file_logs(host.paths))


def file_logs(paths: Paths) -> RunLogs:
    """The logs as files of that home."""
    return RunLogs(
        allowed_calls=AllowedCallFile(paths),
        environments=EnvironmentFiles(paths.environments_dir),
        progress=ProgressFiles(paths.progress_dir),
        results=ResultFiles(paths.results_dir),
        transcripts=TranscriptFiles(paths.transcripts_dir),
    )
