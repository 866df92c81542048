"""Says once when two runs at work change the same file of one repository.

In worktrees git is asked what was changed. Of runs that share a directory it cannot say which one
changed a file, so there only tools count that name what they write: a shell command does not.

Bounded: nothing is looked at unless two runs are at work, and then a few worktrees at a time.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from subagents.domain.alerts.detectors.alert_wording import shown
from subagents.domain.run.alert import Alert, AlertKind
from subagents.domain.run.events import Alerted
from subagents.domain.run.run import Phase, Run
from subagents.domain.run.values import RunId
from subagents.domain.run.worker_output import LineType
from subagents.domain.transcript.digest import tool_line
from subagents.domain.transcript.transcript_query import LogQuery
from subagents.engine.engine import Engine, HasSession, Part
from subagents.engine.kernel.tasks import wait_at_most
from subagents.errors import SubagentsError
from subagents.extensions.worktrees.git_worktrees import GitWorktrees
from subagents.ports import Batch
from subagents.text import counted

PAUSE_S: Final = 30.0
SHARE: Final = 20
"""One in so many seconds is spent looking, at most."""
LOOKED_AT_MAX: Final = 20
"""Runs looked at at once, those first that were not looked at for longest."""
CALLS_MAX: Final = 500
"""The newest uses of tools that are looked at."""
PATH_CHARS_MAX: Final = 70
WHO_CHARS_MAX: Final = 30
OTHERS_MAX: Final = 10
"""So many others one run's requester hears of: of a file that all change, not of each pair."""


class SamePaths(Part):
    """Compares what runs at work changed."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._clock = engine, engine.adapters.clock
        self._paths: dict[RunId, frozenset[str]] = {}
        """What each has changed, when it was looked at; the longest ago first."""
        self._tools: dict[RunId, tuple[int, int]] = {}
        """The attempt and how many tools it had used when the run's transcript was looked at."""
        self._told: defaultdict[RunId, set[RunId]] = defaultdict(set)
        self._working: asyncio.Task[None] | None = None

    async def read(self, has: HasSession) -> Callable[[], None]:  # noqa: ARG002 - of all sessions
        """See ``Part``: runs may be at work already."""
        return self._begin

    def on_commit(self, batch: Batch) -> None:
        """See ``Part``."""
        for run in batch.runs.values():
            if run.phase is Phase.RUNNING:
                self._begin()
                return

    def _begin(self) -> None:
        if self._working is None or self._working.done():
            self._working = self._engine.keep(self._work, "same paths")

    async def _work(self) -> None:
        """Look again and again while runs share a place."""
        pause_s = PAUSE_S
        while True:
            await wait_at_most(self._clock, pause_s, asyncio.Event())
            groups = tuple(self._groups())
            kept = {run.id for group in groups for run in group}
            self._paths = {key: found for key, found in self._paths.items() if key in kept}
            self._tools = {key: count for key, count in self._tools.items() if key in kept}
            self._told = defaultdict(set, {k: v for k, v in self._told.items() if k in kept})
            if not groups:
                return
            began_ms = self._clock.steady_ms()
            for group in groups:
                await self._compare(group)
            pause_s = max(PAUSE_S, SHARE * (self._clock.steady_ms() - began_ms) / 1000)

    def _groups(self) -> Iterator[Sequence[Run]]:
        """Runs at work in worktrees of one checkout, or in one directory."""
        found: defaultdict[tuple[bool, str, str | None], list[Run]] = defaultdict(list)
        for run in self._engine.queries.open_runs:
            if run.phase is Phase.RUNNING:
                tree = run.resolved.worktree
                place = run.resolved.cwd if tree is None else tree.repository
                # The same path is another directory on another node.
                found[tree is None, place, run.attempt.node].append(run)
        return (group for group in found.values() if len(group) > 1)

    async def _compare(self, group: Sequence[Run]) -> None:
        order = {run_id: number for number, run_id in enumerate(self._paths)}
        due = sorted(group, key=lambda run: order.get(run.id, -1))
        for run in due[:LOOKED_AT_MAX]:
            found = await self._changed(run)
            self._paths.pop(run.id, None)
            self._paths[run.id] = found
        for one, other, paths in shared(group, self._paths):
            await self._tell(other, one, paths)
            if one.requester != other.requester:
                await self._tell(one, other, paths)

    async def _changed(self, run: Run) -> frozenset[str]:
        """Files from the root of its worktree, or of its directory; none where nobody can say."""
        try:
            if (tree := run.resolved.worktree) is not None:
                trees = self._engine.workspaces.worktrees
                if not isinstance(trees, GitWorktrees):
                    return frozenset()
                return await trees.changed_paths(tree)
            known = self._paths.get(run.id, frozenset())
            watch = self._engine.recorder.known_watch(run.id)
            used = watch.attempt, watch.tools_used
            if used == self._tools.get(run.id, (0, 0)):
                return known
            query = LogQuery(limit=CALLS_MAX, types=(LineType.TOOL,), attempt=run.attempt.number)
            page = await self._engine.recorder.read(run, query)
            self._tools[run.id] = used
        except SubagentsError:
            return self._paths.get(run.id, frozenset())
        calls = filter(None, (tool_line(line.text) for line in page.lines))
        named = (each.asked for each in calls if each.writes and each.asked and not each.failed)
        return frozenset(_below(run.resolved.cwd, each) for each in named)

    async def _tell(self, run: Run, other: Run, paths: Sequence[str]) -> None:
        told = self._told[run.id]
        if other.id in told or len(told) >= OTHERS_MAX:
            return
        more = f" and {counted(len(paths) - 1, 'file')} more" if len(paths) > 1 else ""
        who = f"{shown(other.resolved.label, WHO_CHARS_MAX)} ({other.id})"
        words = f"{shown(paths[0], PATH_CHARS_MAX)}{more} also changed by {who}"
        alert = Alert(
            kind=AlertKind.SAME_PATH,
            text=f"🔀 {words}",
            key=f"same_path:{other.id}",
            fields={"message": words, "path": shown(paths[0]), "otherRun": other.id},
        )
        event = Alerted(at_ms=self._clock.now_ms(), alert=alert)
        with suppress(SubagentsError):  # else with the next look
            await self._engine.ledger.apply(run.id, event, key=f"alert:{alert.key}")
            told.add(other.id)


def _below(root: str, path: str) -> str:
    return os.path.relpath(os.path.join(root, path), root)  # noqa: PTH118 - as it is written


def shared(
    group: Iterable[Run], paths_of: dict[RunId, frozenset[str]]
) -> Iterator[tuple[Run, Run, list[str]]]:
    """Pairs that changed the same files, the older run first, with those files in order.

    A run and the one that spawned it are none: what is asked for is no accident.
    """
    runs = sorted(group, key=lambda run: (run.times.created_at_ms, run.id))
    of_path: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs:
        for path in paths_of.get(run.id, ()):
            of_path[path].append(run)
    found: defaultdict[tuple[RunId, RunId], list[str]] = defaultdict(list)
    by_id = {run.id: run for run in runs}
    for path, users in sorted(of_path.items()):
        for number, one in enumerate(users):
            for other in users[number + 1 :]:
                if one.id != other.lineage.requester_run:
                    found[one.id, other.id].append(path)
    for (one_id, other_id), paths in found.items():
        yield by_id[one_id], by_id[other_id], paths
