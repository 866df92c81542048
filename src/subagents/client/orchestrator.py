"""The Python API: ``async with Orchestrator.open() as sub: …``.

``open`` runs the daemon inside this process, ``connect`` uses one that runs already. Both speak
through the same socket with the same documents and raise the same errors, so a program can move
from one to the other by changing one word, and workers of an embedded orchestrator can ask and
report like any others.
"""

import asyncio
import math
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, Literal, Self, TypedDict, Unpack
from urllib.parse import quote

import msgspec

from subagents import process_settings
from subagents.api.wire.agent_answers import SuggestedAgent, Suggestions, TrackRecord, TrackRecords
from subagents.api.wire.event_answers import AlertHistory, EventPage, StreamEvent
from subagents.api.wire.message_answers import Attention, AttentionItem, Inbox, Message
from subagents.api.wire.requests import INBOX_LIMIT_MAX
from subagents.api.wire.run_answers import (
    DryRun,
    PlanDetail,
    PlanPage,
    PlanReceipt,
    PlanStanding,
    RunForest,
    RunPage,
    RunResult,
    RunRow,
    RunStatus,
    SpawnReceipt,
)
from subagents.api.wire.schedule_answers import SchedulePage, ScheduleRow, ScheduleStart
from subagents.api.wire.wire_struct import read
from subagents.api.wire.words import MissedPolicy, OverlapPolicy
from subagents.client.agent_tools import Tools
from subagents.client.client import DEFAULT_SESSION, AsyncClient, Query, persistently_async, segment
from subagents.client.daemon_start import ensure_daemon, revive
from subagents.client.run_handle import RunFailed, RunHandle, timeout_of, wait_for
from subagents.client.spawn_request import PlanRun, SpawnKeywords, as_written, spawn_document
from subagents.config.paths import Paths
from subagents.domain.run.caller_environment import CallerEnvironment, ProcessSettings
from subagents.domain.run.shell_variables import provider_variables, shell_variables
from subagents.errors import AlreadyRunning, UsageError

INBOX_PAGE: Final = 50
"""How many messages are taken at once: their leases hold for a minute."""
INBOX_FRESH_S: Final = 30.0
"""So long they are handed out without a look; a message in hand may take as long again."""
EVENTS_WAIT_S: Final = 20
"""One long poll; ``Orchestrator.events`` repeats it for ever."""
_SELECTOR: Final = re.compile(r"last|r-[0-9a-z]{10}")
"""What an earlier ``run`` took instead of a task: it is refused, so that none is spawned by it."""


class SearchKeywords(TypedDict, total=False):
    """Which runs are wanted; what is left out narrows nothing."""

    label: str
    """Only with this label."""
    phase: str
    """Only in these phases, such as ``running,queued``."""
    outcome: str
    """Only ended ones with these outcomes, such as ``error,timeout``."""
    agent: str
    """Only of this agent."""
    session: str
    """Only those that this session asked for, by its key: ``agent:main:main``."""
    directory: Path | str
    """Only those that work in this directory or below it; a relative one is seen from here."""
    tags: Sequence[str]
    """Only those that have all of these."""
    since: str
    """Only those spawned since then: ``5m``, ``2d`` ago, or an ISO time."""
    until: str
    """Only those spawned before then."""
    text: str
    """Only those whose label or task contains it (case does not matter) or whose id begins so."""
    model: str
    """Only those that were given this model."""
    archived: bool
    """Archived ones, too."""


class UnreadMessages:
    """The unread messages of a session, one at a time (``Orchestrator.inbox``)."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._page: list[Message] = []
        self._taken_s = 0.0
        self._given: set[str] = set()
        self._held: str | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        """The next message; with that, the one before is acknowledged.

        Raises:
            StopAsyncIteration: There is no other.
            DaemonUnreachable: No daemon answers.
        """
        await self._acknowledge()
        # Looked up again after a while, too: by then another reader may have what lies here.
        if not self._page or time.monotonic() - self._taken_s > INBOX_FRESH_S:
            self._taken_s = time.monotonic()
            # What a person still has to answer stays unread, and must not hide what is behind it.
            limit = min(INBOX_PAGE + len(self._given), INBOX_LIMIT_MAX)
            found = read(await self._client.post("/v1/inbox", {"limit": limit}), Inbox).messages
            self._page = [each for each in found if each.id not in self._given]
        if not self._page:
            raise StopAsyncIteration
        message = self._page.pop(0)
        self._given.add(message.id)
        self._held = message.id
        return message

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self._acknowledge()

    async def _acknowledge(self) -> None:
        if self._held is not None:
            await self._client.post("/v1/inbox/ack", {"messageIds": [self._held]})
            self._held = None


class Orchestrator:
    """A requester's session with one daemon, embedded or connected."""

    def __init__(self, client: AsyncClient, *, cwd: Path) -> None:
        """Use ``open`` or ``connect``."""
        self._client = client
        self._cwd = str(cwd)
        self.tools = Tools(client)
        """The tools that agents see, for a model this program drives; without a person's rights."""

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        *,
        home: Path | str | None = None,
        config: Mapping[str, object] | None = None,
        session: str = DEFAULT_SESSION,
        cwd: Path | str | None = None,
    ) -> AsyncIterator["Orchestrator"]:
        """Use the daemon of ``home``, or run one in this process until the block ends; workers
        outlive it.

        Args:
            home: Where state lives; None = as for every other client (``SUBAGENTS_HOME`` or XDG).
            config: Dotted key → value, stronger than every file, e.g.
                ``{"agents.defaults.subagents.max_concurrent": 2}``.
            session: The session key under which runs are spawned and heard of.
            cwd: Working directory of runs that name none; None = the process's own.

        Raises:
            AlreadyRunning: A daemon owns that home, so that ``config`` cannot hold.
            ConfigError: The configuration is wrong; nothing was started.
        """
        from subagents.wiring import embedded  # noqa: PLC0415 - the whole engine, only here

        environ = _environ(home)
        paths = Paths.resolve(environ)
        start = None
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(embedded(paths, environ, overrides=config or {}))
            except AlreadyRunning:
                if config:
                    raise
                # Its lock is taken before it answers: this waits until it does.
                await asyncio.to_thread(ensure_daemon, paths, environ)
                start = partial(revive, paths, environ)
            where = _absolute(cwd)
            client = await stack.enter_async_context(_client(paths, session, where, start=start))
            yield cls(client, cwd=where)

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        *,
        home: Path | str | None = None,
        session: str = DEFAULT_SESSION,
        cwd: Path | str | None = None,
    ) -> AsyncIterator["Orchestrator"]:
        """Use the daemon of ``home``; it is started when none runs.

        Raises:
            DaemonUnreachable: None answers and none could be started.
        """
        environ = _environ(home)
        paths = Paths.resolve(environ)
        await asyncio.to_thread(ensure_daemon, paths, environ)
        where = _absolute(cwd)
        start = partial(revive, paths, environ)
        async with _client(paths, session, where, start=start) as client:
            yield cls(client, cwd=where)

    async def spawn(
        self,
        task: str,
        *,
        agent: str | None = None,
        env: Mapping[str, str] | None = None,
        **parameters: Unpack[SpawnKeywords],
    ) -> RunHandle:
        """Store one run and return its handle before any worker starts.

        Args:
            task: What to do; 1 byte to 256 KiB.
            agent: Agent id; None = ``agents.defaults.subagents.agent``. Refused where that is not
                set: only the command line falls back to ``command``.
            env: Variables for its worker, kept out of journal and logs. PATH, VIRTUAL_ENV,
                locale, terminal, proxies and SSH_AUTH_SOCK of this process come along anyway.
            parameters: The spawn parameters in snake_case: ``label``, ``verification``,
                ``retry_count``, ``depends_on``, …; docs/spawn-parameters.md lists them all.
                ``timeout`` and ``retry`` are those of the command line. A duration is a number of
                the unit in its name, or a text such as ``5m``; ``retry_delay`` and
                ``retry_max_time``, whose names have none, are texts.

        Raises:
            UsageError: A parameter is unknown or wrong; nothing was stored.
            Forbidden: A guardrail refused; nothing was stored.
        """
        run = {"task": task, "agent": agent, **parameters}
        with as_written([run]):
            body = {"spec": spawn_document(run), "cwd": self._cwd, **_environment(env)}
            receipt = await self._client.post("/v1/runs", body)
        return RunHandle(self._client, read(receipt, SpawnReceipt))

    async def plan(
        self,
        runs: Sequence[PlanRun],
        *,
        name: str | None = None,
        max_tokens: int | None = None,
        max_total_tokens: int | None = None,
        max_cost_usd: float | None = None,
        jobs: int | None = None,
        idempotency_key: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> tuple[RunHandle, ...]:
        """Store all of these runs or none; they name each other by label in ``depends_on``.

        Args:
            runs: 1 to 1,000; each has ``task`` and what ``spawn`` takes, ``agent`` and ``timeout``
                too. The id of the first one is that of the plan.
            name: To find the plan by.
            max_tokens: What all of them, with the runs below them, may use together, without
                what comes from a cache.
            max_total_tokens: The same with what comes from a cache.
            max_cost_usd: The same in dollars.
            jobs: At most so many of them work at once; None = as many as their lanes have slots.
            idempotency_key: With the same one within 24 hours the same runs are given again.
            env: For each of them, as in ``spawn``.

        Raises:
            UsageError: A parameter of one of them is wrong; nothing was stored.
            Forbidden: A guardrail refused; nothing was stored.
            IdempotencyConflict: The key stands for another plan; nothing was stored.
        """
        rest = {
            "name": name,
            "budget": _budget(max_tokens, max_total_tokens, max_cost_usd),
            "jobs": jobs,
            "idempotencyKey": idempotency_key,
        }
        with as_written(runs):
            body = {"specs": [spawn_document(run) for run in runs], "cwd": self._cwd, **rest}
            answer = await self._client.post("/v1/plans", {**body, **_environment(env)})
        return self._handles(answer)

    async def dry_run(
        self,
        runs: Sequence[PlanRun],
        *,
        max_tokens: int | None = None,
        max_total_tokens: int | None = None,
        max_cost_usd: float | None = None,
        env: Mapping[str, str] | None = None,
    ) -> DryRun:
        """What these runs would come to at this moment; nothing is stored or started.

        Args:
            runs: 1 to 1,000, as ``plan`` takes them; what ``spawn`` takes is a list of one.
            max_tokens: As in ``plan``.
            max_total_tokens: As in ``plan``.
            max_cost_usd: As in ``plan``.
            env: As in ``plan``; the answer has the names alone.

        Raises:
            UsageError: As ``plan`` would refuse them; ``details["problems"]`` of several runs has
                one entry for each that is refused.
            Forbidden: A guardrail would refuse.
        """
        budget = _budget(max_tokens, max_total_tokens, max_cost_usd)
        rest = {"cwd": self._cwd, "budget": budget}
        with as_written(runs):
            body = {"specs": [spawn_document(run) for run in runs], **rest}
            answer = await self._client.post("/v1/plans/dry-run", {**body, **_environment(env)})
        return read(answer, DryRun)

    def _handles(self, answer: dict[str, object]) -> tuple[RunHandle, ...]:
        receipts = read(answer, PlanReceipt).receipts
        return tuple(RunHandle(self._client, receipt) for receipt in receipts)

    async def plans(
        self, *, limit: int = 20, offset: int = 0, since: str | None = None
    ) -> Sequence[PlanStanding]:
        """How plans stand, newest first, of every session.

        Args:
            limit: At most so many, 1 to 100.
            offset: How many of the newest are left out.
            since: Only those started since then: ``5m``, ``2d`` ago, or an ISO time.
        """
        query = {"limit": limit, "offset": offset or None, "since": since}
        return read(await self._client.get("/v1/plans", query), PlanPage).plans

    async def get_plan(self, selector: str) -> PlanDetail:
        """How a plan stands, with its steps: by id, unique prefix, name or ``last``.

        Raises:
            NotFound: No such plan.
        """
        return read(await self._client.get(f"/v1/plans/{segment(selector)}"), PlanDetail)

    async def retry_plan(self, selector: str) -> tuple[RunHandle, ...]:
        """Start what failed of a plan again, and what waited for it; those runs.

        Raises:
            NotFound: No such plan.
            Conflict: A step has not ended, or every one ended ok.
        """
        return self._handles(await self._client.post(f"/v1/plans/{segment(selector)}/retry"))

    async def cancel_plan(self, selector: str, reason: str | None = None) -> PlanDetail:
        """Cancel the steps of a plan that have not ended.

        Raises:
            NotFound: No such plan.
        """
        path = f"/v1/plans/{segment(selector)}/cancel"
        return read(await self._client.post(path, {"reason": reason}), PlanDetail)

    async def schedule(
        self,
        name: str,
        when: str,
        runs: Sequence[PlanRun],
        *,
        zone: str = "UTC",
        overlap: OverlapPolicy = "skip",
        missed: MissedPolicy = "once",
        replace: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> ScheduleRow:
        """Start these runs at their times, until the schedule is removed.

        Args:
            name: What to call it; its runs have the tag ``schedule:<name>``.
            when: Five fields of cron, an alias such as ``@daily``, or ``every 15m``.
            runs: What to start each time: one run, or the steps of a plan, as for ``plan``.
            zone: IANA name of the time zone in which ``when`` is meant; or a rule as POSIX has it
                in TZ.
            overlap: What a time does while runs of an earlier one have not ended: leave it out,
                start after them, cancel them first, or start in parallel.
            missed: For times that passed while nothing could be started: start once, or not at
                all.
            replace: Take the place of the schedule of this name.
            env: For each of the runs, as in ``spawn``.

        Raises:
            UsageError: ``when``, ``zone`` or a parameter of a run is wrong; nothing was stored.
            Conflict: There is a schedule of this name.
            Forbidden: A guardrail would refuse the runs now; nothing was stored.
        """
        body = {
            "name": name,
            "when": when,
            "zone": zone,
            "overlap": overlap,
            "missed": missed,
            "replace": replace,
            "specs": [spawn_document(run) for run in runs],
            "planName": name if len(runs) > 1 else None,
            "cwd": self._cwd,
            **_environment(env),
        }
        with as_written(runs):
            return read(await self._client.post("/v1/schedules", body), ScheduleRow)

    async def schedules(self) -> Sequence[ScheduleRow]:
        """All schedules, oldest first, each with what became of its newest times."""
        return read(await self._client.get("/v1/schedules"), SchedulePage).schedules

    async def pause_schedule(self, name: str) -> ScheduleRow:
        """Let a schedule start nothing until it is resumed.

        Raises:
            NotFound: No such schedule.
        """
        return read(await self._client.post(_schedule(name, "/pause")), ScheduleRow)

    async def resume_schedule(self, name: str) -> ScheduleRow:
        """Let a paused schedule go on; what was due meanwhile is left out.

        Raises:
            NotFound: No such schedule.
        """
        return read(await self._client.post(_schedule(name, "/resume")), ScheduleRow)

    async def run_schedule(self, name: str) -> tuple[RunHandle, ...]:
        """Start the work of a schedule now, besides its times.

        Raises:
            NotFound: No such schedule.
            Conflict: Its overlap is ``skip``, and runs of an earlier time have not ended.
        """
        found = read(await self._client.post(_schedule(name, "/run")), ScheduleStart)
        return tuple([await self.get(run_id) for run_id in found.run_ids])

    async def remove_schedule(self, name: str) -> ScheduleRow:
        """Remove a schedule; its runs go on.

        Raises:
            NotFound: No such schedule.
        """
        return read(await self._client.delete(_schedule(name)), ScheduleRow)

    async def run(
        self,
        task: str,
        *,
        agent: str | None = None,
        env: Mapping[str, str] | None = None,
        check: bool = False,
        **parameters: Unpack[SpawnKeywords],
    ) -> RunResult:
        """Spawn one run, wait for its end and give its result, as ``subagents run`` does.

        Args:
            task: As for ``spawn``, like ``env`` and ``parameters``.
            agent: Agent id; None as for ``spawn``.
            env: Variables for its worker.
            check: Raise when it ends otherwise than ``ok``.
            parameters: The spawn parameters.

        Raises:
            RunFailed: It ended otherwise, and ``check`` was asked for.
            UsageError: A parameter is unknown or wrong, or the task is the id of a run or ``last``,
                which is for ``get``; nothing was stored.
            Forbidden: A guardrail refused; nothing was stored.
        """
        if _SELECTOR.fullmatch(task):
            raise UsageError(
                f"run() starts a task, and {task!r} names a run", hint=f"await sub.get({task!r})"
            )
        done = await (await self.spawn(task, agent=agent, env=env, **parameters)).wait()
        if check and not done.ok:
            raise RunFailed(done)
        return done

    async def get(self, selector: str) -> RunHandle:
        """The handle of a run spawned before: by id, label, unique prefix or ``last``.

        Raises:
            NotFound: No such run.
        """
        found = await self._client.get(f"/v1/runs/{segment(selector)}/status")
        return RunHandle(self._client, read(found, RunStatus))

    async def list(
        self,
        *,
        tree: str | None = None,
        limit: int = 50,
        offset: int = 0,
        roots: bool = False,
        sort: Literal[
            "newest", "oldest", "ended", "ended_oldest", "cost", "took", "tokens"
        ] = "newest",
        **search: Unpack[SearchKeywords],
    ) -> Sequence[RunRow]:
        """Runs of every session, newest first.

        Args:
            tree: Only this run, by selector, and those below it.
            limit: At most so many, 1 to 1,000.
            offset: How many are left out before.
            roots: Only those that no other run spawned, each with counts of those below it.
            sort: Which come first, by when they were spawned; ``ended`` and ``ended_oldest`` are of
                ended runs alone, by when they ended; by ``cost``, ``took`` or ``tokens`` the newest
                1,000 that fit, the most first.
            search: Which runs: by label, phase, outcome, agent, session, directory, tags, time,
                model or text; see ``SearchKeywords``.

        Raises:
            UsageError: There is no such phase or outcome, or a time that cannot be read.
        """
        window = {"tree": tree, "limit": limit, "offset": offset or None}
        order = {"roots": 1 if roots else None, "sort": sort}
        query = {**_search_query(search), **window, **order}
        return read(await self._client.get("/v1/runs", query), RunPage).runs

    async def tree(self, **search: Unpack[SearchKeywords]) -> RunForest:
        """The newest 50 runs that fit and that no other run spawned, each with all below it.

        Args:
            search: As ``list`` takes it; it is about the roots.

        Raises:
            UsageError: As ``list`` raises it.
        """
        return read(await self._client.get("/v1/tree", _search_query(search)), RunForest)

    async def wait_any(
        self,
        runs: Iterable[RunHandle],
        timeout: float | None = None,  # noqa: ASYNC109 - the runs go on
        *,
        timeout_s: float | None = None,
    ) -> Sequence[RunResult]:
        """Those of ``runs`` that have ended, one at least; else as ``RunHandle.wait``.

        Args:
            runs: At least one, at most 1,000.
            timeout: In seconds; None = as long as it takes.
            timeout_s: Its former name.

        Raises:
            TimeoutError: None has ended; all continue.
            NotFound: One was pruned.
        """
        ids = [each.id for each in runs]
        return await wait_for(
            self._client, ids, until="any", timeout=timeout_of(timeout, timeout_s)
        )

    async def wait_all(
        self,
        runs: Iterable[RunHandle],
        timeout: float | None = None,  # noqa: ASYNC109 - the runs go on
        *,
        timeout_s: float | None = None,
    ) -> Sequence[RunResult]:
        """The results of ``runs``, in their order; else as ``wait_any``.

        Raises:
            TimeoutError: Some have not ended; they continue, and nothing was consumed.
            NotFound: One was pruned.
        """
        ids = [each.id for each in runs]
        return await wait_for(
            self._client, ids, until="all", timeout=timeout_of(timeout, timeout_s)
        )

    def inbox(self) -> "UnreadMessages":
        """Unread messages, oldest first, each acknowledged once it was dealt with.

        ``async for message in orchestrator.inbox(): …`` acknowledges a message when the next one is
        asked for. Who leaves the loop early writes ``async with orchestrator.inbox() as messages``
        around it: the last one is then acknowledged when that block ends without an error. What
        was not acknowledged comes again, with the same id.
        """
        return UnreadMessages(self._client)

    async def agent_stats(
        self,
        *,
        by: Literal["agent", "tag", "model"] = "agent",
        agent: str | None = None,
        tag: str | None = None,
        model: str | None = None,
        days: int = 30,
    ) -> Sequence[TrackRecord]:
        """What ended attempts came to: counts, success with interval and n, runtime, tokens, cost.

        Args:
            by: What is counted together; its name is ``name``.
            agent: Only this agent's attempts.
            tag: Only attempts of runs with this tag.
            model: Only attempts with this model.
            days: UTC days up to and with today, 1 to 30.
        """
        query = {"by": by, "agent": agent, "tag": tag, "model": model, "days": days}
        return read(await self._client.get("/v1/agents/stats", query), TrackRecords).stats

    async def suggest_agents(
        self,
        hint: str = "",
        *,
        tags: Sequence[str] = (),
        cost_tier: Literal["free", "cheap", "medium", "expensive"] | None = None,
    ) -> Sequence[SuggestedAgent]:
        """The configured agents, the best for this work first, each with ``reasons``; starts none.

        Args:
            hint: The work in words.
            tags: What the agent should be good at.
            cost_tier: What it may cost.
        """
        query = {"hint": hint, "tags": ",".join(tags), "costTier": cost_tier, "cwd": self._cwd}
        return read(await self._client.get("/v1/agents/suggest", query), Suggestions).suggestions

    async def attention(self) -> Sequence[AttentionItem]:
        """What needs a person: questions, blockers, undelivered and failed runs."""
        return read(await self._client.get("/v1/attention"), Attention).items

    async def alerts(
        self,
        *,
        run: str | None = None,
        kind: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> AlertHistory:
        """Alerts that were raised, newest first, and what became of each.

        Args:
            run: Only those of this run, by selector.
            kind: Only these, such as ``stuck,budget_alert``.
            limit: At most so many, 1 to 500.
            cursor: The page behind: ``next_cursor`` of the page before.

        Raises:
            UsageError: There is no such kind.
        """
        query = {"run": run, "kind": kind, "limit": limit, "cursor": cursor}
        return read(await self._client.get("/v1/alerts", query), AlertHistory)

    async def events(
        self,
        *,
        after: int | None = None,
        run: str | None = None,
        tree: str | None = None,
        types: Sequence[str] = (),
    ) -> AsyncIterator[StreamEvent]:
        """What happens to runs, in one order, as it happens; continues with the next daemon.

        Args:
            after: ``seq`` of the last event that was seen; 0 = from the beginning, None = only what
                is new.
            run: Only of this run.
            tree: Only of this run and all below it.
            types: Only these, such as ``completion`` or ``run``; empty = all.

        Yields:
            Every event; its number is ``seq``. docs/events.md says which fields each kind has.

        Raises:
            DaemonUnreachable: No daemon came back within half a minute.
        """
        query = {"run": run, "tree": tree, "types": ",".join(types) or None}
        seen = after
        if seen is None:
            seen = read(await self._client.get("/v1/events", query), EventPage).seq
        while True:
            ask = {**query, "after": seen, "wait": EVENTS_WAIT_S}
            found = await persistently_async(
                partial(self._client.get, "/v1/events", ask, timeout_s=EVENTS_WAIT_S),
                until=math.inf,
            )
            page = read(found, EventPage)
            for event in page.events:
                yield event
            seen = page.seq


def _client(
    paths: Paths, session: str, cwd: Path, *, start: Callable[[], bool] | None
) -> AsyncClient:
    # Quoted: a header is ASCII, and a path any bytes.
    headers = {"x-subagents-cwd": quote(os.fsencode(cwd))}
    return AsyncClient(paths.socket, session=session, headers=headers, start=start)


def _search_query(search: SearchKeywords) -> Query:
    """The parameters of ``/v1/runs`` and ``/v1/tree``."""
    directory = search.get("directory")
    return {
        "label": search.get("label"),
        "phase": search.get("phase"),
        "outcome": search.get("outcome"),
        "agentId": search.get("agent"),
        "requester": search.get("session"),
        "directory": None if directory is None else str(Path(directory).absolute()),
        "tag": ",".join(search.get("tags", ())) or None,
        "since": search.get("since"),
        "until": search.get("until"),
        "q": search.get("text"),
        "model": search.get("model"),
        "archived": 1 if search.get("archived") else None,
    }


def _environ(home: Path | str | None) -> dict[str, str]:
    environ = dict(os.environ)
    if home is not None:
        environ["SUBAGENTS_HOME"] = str(home)
    return environ


def _absolute(cwd: Path | str | None) -> Path:
    return Path(cwd or Path.cwd()).absolute()


def _schedule(name: str, call: str = "") -> str:
    return f"/v1/schedules/{segment(name)}{call}"


def _budget(tokens: int | None, total: int | None, cost_usd: float | None) -> dict[str, object]:
    return {"maxTokens": tokens, "maxTotalTokens": total, "maxCostUsd": cost_usd}


def _environment(env: Mapping[str, str] | None) -> dict[str, object]:
    """What this process brings for the workers that it asks for."""
    process = None
    # A worker's own limits and priority are its run's, and not for the runs that it spawns.
    if not os.environ.get("SUBAGENTS_RUN_ID"):
        process = msgspec.convert(process_settings.own(), ProcessSettings)
    brought = CallerEnvironment(
        shell=shell_variables(os.environ),
        given=dict(env or {}),
        provider=provider_variables(os.environ),
        process=process,
    )
    return {} if brought.is_empty else {"environment": brought}
