"""What the engine needs from the outside, written from its needs; adapters promise it."""

from subagents.ports.clock import Clock as Clock
from subagents.ports.clock import Ids as Ids
from subagents.ports.clock import OffLoop as OffLoop
from subagents.ports.logs import Exporter as Exporter
from subagents.ports.logs import ExportState as ExportState
from subagents.ports.logs import PerformanceLog as PerformanceLog
from subagents.ports.logs import ProgressLog as ProgressLog
from subagents.ports.logs import TranscriptLog as TranscriptLog
from subagents.ports.store import Batch as Batch
from subagents.ports.store import FeedEntry as FeedEntry
from subagents.ports.store import InboxRow as InboxRow
from subagents.ports.store import JournalEntry as JournalEntry
from subagents.ports.store import Lease as Lease
from subagents.ports.store import OutboxEntry as OutboxEntry
from subagents.ports.store import RunFilter as RunFilter
from subagents.ports.store import Store as Store
from subagents.ports.workers import AttemptRef as AttemptRef
from subagents.ports.workers import Courier as Courier
from subagents.ports.workers import Launch as Launch
from subagents.ports.workers import Runtime as Runtime
from subagents.ports.workers import StartedInfo as StartedInfo
from subagents.ports.workers import Varied as Varied
from subagents.ports.workers import abilities_of as abilities_of
from subagents.ports.worktrees import Kept as Kept
from subagents.ports.worktrees import Planned as Planned
from subagents.ports.worktrees import Worktrees as Worktrees
