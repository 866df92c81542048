"""What is kept outside the store, and what leaves it: nothing is decided by any of it."""

# How a run stands can be told without any of it. So a disk that is full or damaged here is an
# OSError of one call, and not the end of commits that `StoreUnavailable` is.

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO, Protocol

from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.run import Progress
from subagents.domain.run.values import RunId, Value
from subagents.domain.transcript.transcript_query import Checkpoint, Line, LogPage, LogQuery
from subagents.ports.store import Batch


class _OfRuns(Protocol):
    """What is kept of each run."""

    def forget(self, run_id: RunId) -> None:
        """Drop all that is kept of the run. Idempotent."""


class ProgressLog(_OfRuns, Protocol):
    """The progress updates of each run. Blocking; the engine calls it off the loop."""

    def append(self, run_id: RunId, progress: Progress) -> None:
        """Keep one more; repeating it with the same number replaces it.

        Raises:
            OSError: It was not kept, or only a part that ``read`` skips.
        """

    def read(self, run_id: RunId) -> Sequence[Progress]:
        """All that were kept, by number; what cannot be read is left out."""


class ResultLog(_OfRuns, Protocol):
    """Results that are too long for their runs. Blocking; the engine calls it off the loop."""

    def keep(
        self, run_id: RunId, name: str, pieces: Iterable[bytes], *, beside: Collection[str]
    ) -> int:
        """Store a result durably, or not at all; the same name again replaces it.

        Args:
            run_id: Whose.
            name: Of the result.
            pieces: Its bytes.
            beside: Names of other results of the run that stay; all others go.

        Returns:
            Its size in bytes.

        Raises:
            OSError: It was not kept.
        """

    def read(self, run_id: RunId, name: str, offset: int, bytes_max: int) -> bytes:
        """At most so many bytes from there on; none behind the end.

        Raises:
            OSError: It is not there, or cannot be read.
        """


class ArtifactLog(_OfRuns, Protocol):
    """Copies of files that passed a contract, for whoever is not where they were made. Blocking;
    the engine calls it off the loop. All of it also raises ``StoreUnavailable``.
    """

    def keep(self, run_id: RunId, path: str, file: BinaryIO) -> bool:
        """Store all of a file durably; the same path again replaces it.

        Returns:
            False = it is larger than what is kept.

        Raises:
            OSError: It cannot be read, or was changed meanwhile.
        """

    def sizes(self, run_id: RunId) -> Mapping[str, int]:
        """By the path of each that is kept of a run, in bytes."""

    def read(self, run_id: RunId, path: str, offset: int, bytes_max: int) -> bytes:
        """At most so many bytes from there on; none behind the end.

        Raises:
            OSError: It is not there, or cannot be read.
        """


class EnvironmentLog(_OfRuns, Protocol):
    """The variables that callers brought for their runs. Blocking, but for ``read`` of what was
    kept or read before.
    """

    def keep(self, run_ids: Sequence[RunId], environment: CallerEnvironment) -> None:
        """Store it durably for runs that have none, readable for its owner only.

        Raises:
            OSError: It was not kept for all of them.
        """

    def read(self, run_id: RunId) -> CallerEnvironment:
        """What was kept for the run.

        Raises:
            OSError: It is not there, or cannot be read.
        """

    def forget_strays(self, is_known: Callable[[RunId], bool]) -> None:
        """Drop what was kept for runs that were never stored, as after a crash. Idempotent."""


class TranscriptLog(_OfRuns, Protocol):
    """The lines of each run. Blocking; the engine calls it off the loop, one call per run at a time
    (``read`` at any time).
    """

    def resume(self, run_id: RunId) -> Checkpoint:
        """Where recording continues; the default for a run that has no transcript.

        Raises:
            OSError: It cannot be read.
        """

    def append(
        self, run_id: RunId, lines: Sequence[Line], checkpoint: Checkpoint, *, bytes_max: int
    ) -> None:
        """Keep lines and checkpoint together: after a crash both are there or neither.

        The oldest lines go while there are more than ``bytes_max`` bytes; the newest stay.

        Raises:
            OSError: Nothing was kept.
        """

    def sync(self, run_id: RunId) -> None:
        """Return when all that was appended outlives a power cut.

        Raises:
            OSError: It may not.
        """

    def close(self, run_id: RunId) -> None:
        """Nothing more is written for now; what memory holds of it may go. Quick, idempotent."""

    def read(self, run_id: RunId, query: LogQuery) -> LogPage:
        """The lines that are wanted; a run without a transcript has none.

        Raises:
            UsageError: ``grep`` is no regular expression (says where), or one that takes too long.
            OSError: They cannot be read.
        """


class AllowedCallLog(Protocol):
    """What the user allows agents without being asked (``PermissionAsked.call``).

    All of it blocks, and raises ``ConfigError`` or ``StoreUnavailable``.
    """

    def read(self) -> Mapping[str, Sequence[str]]:
        """The calls of each agent, by its id."""

    def change(self, agent_id: str, call: str, *, allow: bool) -> None:
        """Allow it, or no longer; durable when this returns."""


@dataclass(frozen=True, slots=True)
class RunLogs:
    """Where what runs have besides their rows is kept."""

    allowed_calls: AllowedCallLog

    environments: EnvironmentLog
    progress: ProgressLog
    results: ResultLog
    transcripts: TranscriptLog
    artifact_copies: ArtifactLog | None = None
    """Copies of files that passed their contract; None = only the files themselves are read."""
    tidy: Callable[[], None] = lambda: None
    """Move what is over to where it is cheap to keep. Blocks; may raise ``StoreUnavailable``."""
    close: Callable[[], None] = lambda: None
    """Release the logs, which are no longer used. Blocks. Idempotent."""


class ExportState(Value, frozen=True):
    """How an export is going, since this process started."""

    endpoint: str
    sent: int = 0
    refused: int = 0
    """How many things the receiver will never take."""
    last_sent_ms: int | None = None
    last_error: str | None = None
    """Why things wait now; None while all is well."""


class Audience(StrEnum):
    """Whom an exporter informs of what runs did."""

    PEOPLE = "people"
    PROGRAMS = "programs"
    TRACES = "traces"
    """A receiver of OpenTelemetry data."""


class Exporter(Protocol):
    """Tells somebody outside what runs did, without holding up the work. Calls return when it is
    done, so they are made off the loop; ``state`` and ``on_commit`` may be called anywhere.
    """

    @property
    def audience(self) -> Audience: ...

    @property
    def state(self) -> ExportState | None:
        """How it is going; None = nothing is exported."""

    def start(self) -> None:
        """Go on where the last one ended; the store is open.

        Raises:
            StoreUnavailable: It cannot be read.
            OSError: How far it has come cannot be kept.
        """

    def on_commit(self, batch: Batch) -> None:
        """Notice a durable batch; returns at once."""

    def stop(self) -> None:
        """End within seconds; what was not exported is exported by the next one. Idempotent."""
