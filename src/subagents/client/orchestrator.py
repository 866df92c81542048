"""The Python API: ``async with Orchestrator.open() as sub: …``.

``open`` runs the daemon inside this process, ``connect`` uses one that runs already. Both speak
through the same socket with the same documents and raise the same errors, so a program can move
from one to the other by changing one word, and workers of an embedded orchestrator can ask and
report like any others.
"""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal, Self, TypeVar, Unpack
from urllib.parse import quote

import msgspec

from subagents.api.wire.agent_answers import (
    SuggestedAgent,
    Suggestions,
    TrackRecord,
    TrackRecords,
)
from subagents.api.wire.event_answers import EventPage, StreamEvent, Timeline, TimelineEvent
from subagents.api.wire.log_answers import LogLine, LogPage, LogSummary
from subagents.api.wire.message_answers import Attention, AttentionItem, Inbox, Message
from subagents.api.wire.requests import INBOX_LIMIT_MAX
from subagents.api.wire.run_answers import (
    PlanReceipt,
    RunResult,
    RunStatus,
    SentMessage,
    SpawnReceipt,
    StoredResult,
    WaitResult,
)
from subagents.api.wire.wire_struct import read
from subagents.client.agent_tools import Tools, camel, camel_keys
from subagents.client.client import AsyncClient, Query
from subagents.client.daemon_start import ensure_daemon
from subagents.client.spawn_keywords import SpawnParameters
from subagents.client.whole_result import pages_async
from subagents.config.paths import Paths
from subagents.domain.run.caller_environment import CallerEnvironment, shell_variables
from subagents.errors import Unavailable

WAIT_S: Final = 300.0
"""One long poll; ``RunHandle.wait`` repeats it for ever."""
INBOX_PAGE: Final = 50
"""Taken at once; a lease holds for a minute."""
LOG_WAIT_S: Final = 20
LOG_PAGE_LINES: Final = 1_000
SUMMARY_S: Final = 60.0
"""A summarizer's answer takes longer than a look."""
DEFAULT_SESSION: Final = "agent:main:main"
EVENTS_WAIT_S: Final = 20
"""One long poll; ``Orchestrator.events`` repeats it for ever."""
RECONNECT_S: Final = 30.0
"""How long it looks for a daemon that went away."""
RECONNECT_POLL_S: Final = 0.2

R = TypeVar("R", bound=StoredResult)


class RunHandle:
    """One run, as its requester holds it."""

    def __init__(
        self, client: AsyncClient, receipt: SpawnReceipt | SentMessage | RunStatus
    ) -> None:
        self._client = client
        self.id = receipt.run_id
        self.label = receipt.label
        self.receipt = receipt

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of the spawn; none for a run that was found."""
        return () if isinstance(self.receipt, RunStatus) else tuple(self.receipt.warnings)

    async def wait(self, timeout_s: float | None = None) -> RunResult:
        """Wait for the outcome and consume the announcement, once the caller has it: before its
        next call, a few seconds later, or when the ``Orchestrator``'s block ends without an error.

        Args:
            timeout_s: In seconds; None = as long as it takes.

        Raises:
            TimeoutError: The run continues; waiting again is fine.
            NotFound: The run was pruned.
        """
        loop = asyncio.get_running_loop()
        deadline = None if timeout_s is None else loop.time() + timeout_s
        while True:
            left = WAIT_S if deadline is None else min(max(deadline - loop.time(), 0.0), WAIT_S)
            ask = {"runIds": [self.id], "until": "all", "timeoutSeconds": left}
            found = read(await self._client.post("/v1/wait", ask, timeout_s=left), WaitResult)
            if found.completed:
                whole = await self._whole(found.completed[0])
                # Not before: what cannot be fetched was not handed over.
                self._client.hand_over(found.messages)
                return whole
            if deadline is not None and loop.time() >= deadline:
                raise TimeoutError(f"run {self.id} has not ended within {timeout_s} s")

    async def result(self) -> str | None:
        """The whole result of a run that ended, whatever its length; None = it gave none, or has
        not ended. Consumes nothing.

        Raises:
            NotFound: The run was pruned, or the file with its long result is gone.
        """
        answer = await self._client.get(f"/v1/runs/{self.id}/result")
        return (await self._whole(read(answer, StoredResult))).result

    async def _whole(self, found: R) -> R:
        """With all of its result that is kept: an answer carries the last 32 KiB."""
        if not found.truncated:
            return found
        size = found.kept_bytes
        data = b"".join([page async for page in pages_async(self._client, self.id, size)])
        is_cut = len(data) < found.result_bytes
        text = data.decode("utf-8", "replace")
        return msgspec.structs.replace(found, result=text, truncated=is_cut)

    async def status(self) -> RunStatus:
        """How the run is doing now, as ``subagents status --json`` shows it."""
        return read(await self._client.get(f"/v1/runs/{self.id}/status"), RunStatus)

    async def log(
        self,
        *,
        offset: int | None = None,
        limit: int | None = None,
        grep: str | None = None,
        since: str | None = None,
        types: Sequence[str] = (),
        attempt: int | None = None,
        after_seq: int | None = None,
        wait_seconds: int = 0,
    ) -> LogPage:
        """Lines of the run's transcript; without ``offset`` and ``after_seq`` the newest.

        Args:
            offset: The first line, among those that pass the filters, from 0.
            limit: At most so many, 1 to 10,000; None = 50.
            grep: A regular expression, searched in the text.
            since: ``5m``, ``1h``, ``2d`` or ISO 8601.
            types: Of ``text thinking tool error system user``; empty = all.
            attempt: Only this one's.
            after_seq: Only lines behind this one, the oldest first: the ``nextSeq`` of the page
                before.
            wait_seconds: With ``after_seq``: wait so long for a line, 0 to 50.

        Raises:
            UsageError: A parameter is wrong, or ``grep`` takes too long.
        """
        query: Query = {
            "offset": offset,
            "limit": limit,
            "grep": grep,
            "since": since,
            "type": ",".join(types) or None,
            "attempt": attempt,
            "afterSeq": after_seq,
            "waitSeconds": wait_seconds or None,
        }
        path = f"/v1/runs/{self.id}/log"
        return read(await self._client.get(path, query, timeout_s=wait_seconds), LogPage)

    async def follow(self) -> AsyncIterator[LogLine]:
        """Every line of the transcript, from the first to the run's end, as they come."""
        after, ended = 0, False
        while not ended:
            page = await self.log(after_seq=after, limit=LOG_PAGE_LINES, wait_seconds=LOG_WAIT_S)
            for line in page.lines:
                yield line
            after, ended = page.next_seq, page.ended

    async def summary(self) -> LogSummary:
        """What was done so far: a digest made without a model, or what the configured
        ``summarizer_agent`` wrote.
        """
        path = f"/v1/runs/{self.id}/log"
        return read(await self._client.get(path, {"summary": 1}, timeout_s=SUMMARY_S), LogSummary)

    async def cancel(self, reason: str | None = None) -> None:
        """End the run and all its descendants; harmless when it has ended."""
        await self._client.post(f"/v1/runs/{self.id}/cancel", {"reason": reason})

    async def steer(self, message: str) -> str:
        """``steered`` into the live attempt, or ``queued`` for its next turn.

        Raises:
            Conflict: Its runtime takes no messages, or it has ended.
        """
        answer = await self._client.post(f"/v1/runs/{self.id}/steer", {"message": message})
        return str(answer["status"])

    async def continue_(self, message: str, *, idempotency_key: str | None = None) -> "RunHandle":
        """Go on with this run's session, however it ended: the run that has the message now.

        A new one, or the one that is at work in the session and is told (its ``receipt`` has
        ``is_new`` and ``status``).

        Args:
            message: The next thing to do, at most 256 KiB; 4,000 characters for a run at work.
            idempotency_key: The same one twice is one message, for 24 hours.

        Raises:
            Conflict: Its runtime, or its ``cleanup``, left no session to continue; or the key
                stands for another message.
        """
        body = {"message": message, "idempotencyKey": idempotency_key}
        sent = await self._client.post(f"/v1/runs/{self.id}/send", body)
        return RunHandle(self._client, read(sent, SentMessage))

    async def interrupt(self, reason: str | None = None) -> None:
        """End its present turn: it ends ``partial`` with what it has, and can be continued.

        Raises:
            Conflict: It is not at work, or its runtime cannot end a turn.
        """
        await self._client.post(f"/v1/runs/{self.id}/interrupt", {"reason": reason})

    async def answer(self, request_id: str, response: str) -> None:
        """Answer a question of this run's worker."""
        await self._client.post(f"/v1/requests/{request_id}/respond", {"response": response})

    async def timeline(self) -> Sequence[TimelineEvent]:
        """Every event of the run so far, in order."""
        events: list[TimelineEvent] = []
        path = f"/v1/runs/{self.id}/timeline"
        after: int | None = 0
        while after is not None:
            page = read(await self._client.get(path, {"afterSeq": after}), Timeline)
            events += page.events
            after = page.next_seq
        return events


class UnreadMessages:
    """The unread messages of a session, one at a time (``Orchestrator.inbox``)."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._page: list[Message] = []
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
        if not self._page:
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
        """Run the daemon inside this process until the block ends; workers outlive it.

        Args:
            home: Where state lives; None = as for every other client (``SUBAGENTS_HOME`` or XDG).
            config: Dotted key → value, stronger than every file, e.g.
                ``{"agents.defaults.subagents.max_concurrent": 2}``.
            session: The session key under which runs are spawned and heard of.
            cwd: Working directory of runs that name none; None = the process's own.

        Raises:
            AlreadyRunning: A daemon owns that home; use ``connect``.
            ConfigError: The configuration is wrong; nothing was started.
        """
        from subagents.wiring import embedded  # noqa: PLC0415 - the whole engine, only here

        paths = Paths.resolve(_environ(home))
        async with embedded(paths, _environ(home), overrides=config or {}):
            where = _absolute(cwd)
            async with _client(paths, session, where) as client:
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
        async with _client(paths, session, where) as client:
            yield cls(client, cwd=where)

    async def spawn(
        self,
        task: str,
        *,
        agent: str | None = None,
        env: Mapping[str, str] | None = None,
        **parameters: Unpack[SpawnParameters],
    ) -> RunHandle:
        """Store one run and return its handle before any worker starts.

        Args:
            task: What to do; 1 byte to 256 KiB.
            agent: Agent id; None = the configured default.
            env: Variables for its worker, kept out of journal and logs. PATH, VIRTUAL_ENV,
                locale, terminal, proxies and SSH_AUTH_SOCK of this process come along anyway.
            parameters: The spawn parameters in snake_case: ``label``, ``verification``,
                ``retry_count``, ``depends_on``, …; docs/spawn-parameters.md lists them all.

        Raises:
            UsageError: A parameter is unknown or wrong; nothing was stored.
            Forbidden: A guardrail refused; nothing was stored.
        """
        spec = {"task": task, **{camel(name): value for name, value in parameters.items()}}
        if agent is not None:
            spec["agentId"] = agent
        body = {"spec": camel_keys(spec), "cwd": self._cwd, **_environment(env)}
        receipt = await self._client.post("/v1/runs", body)
        return RunHandle(self._client, read(receipt, SpawnReceipt))

    async def plan(
        self, runs: Sequence[Mapping[str, object]], *, env: Mapping[str, str] | None = None
    ) -> tuple[RunHandle, ...]:
        """Store all of these runs or none; they name each other by label in ``depends_on``.

        ``env`` is for each of them, as in ``spawn``.
        """
        specs = [camel_keys({camel(k): v for k, v in run.items()}) for run in runs]
        body = {"specs": specs, "cwd": self._cwd, **_environment(env)}
        answer = await self._client.post("/v1/plans", body)
        receipts = read(answer, PlanReceipt).receipts
        return tuple(RunHandle(self._client, receipt) for receipt in receipts)

    async def run(self, selector: str) -> RunHandle:
        """The handle of a run spawned before: by id, label, unique prefix or ``last``.

        Raises:
            NotFound: No such run.
        """
        status = read(await self._client.get(f"/v1/runs/{selector}/status"), RunStatus)
        return RunHandle(self._client, status)

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
            page = await self._persistently({**query, "after": seen, "wait": EVENTS_WAIT_S})
            for event in page.events:
                yield event
            seen = page.seq

    async def _persistently(self, query: Mapping[str, str | int | None]) -> EventPage:
        """A page of events, also when the daemon is started anew meanwhile."""
        loop = asyncio.get_running_loop()
        due: float | None = None
        while True:
            try:
                answer = await self._client.get("/v1/events", query, timeout_s=EVENTS_WAIT_S)
                return read(answer, EventPage)
            except Unavailable:
                due = loop.time() + RECONNECT_S if due is None else due
                if loop.time() > due:
                    raise
            await asyncio.sleep(RECONNECT_POLL_S)


def _client(paths: Paths, session: str, cwd: Path) -> AsyncClient:
    headers = {"x-subagents-cwd": quote(str(cwd))}
    return AsyncClient(paths.socket, session=session, reader=uuid.uuid4().hex, headers=headers)


def _environ(home: Path | str | None) -> dict[str, str]:
    environ = dict(os.environ)
    if home is not None:
        environ["SUBAGENTS_HOME"] = str(home)
    return environ


def _absolute(cwd: Path | str | None) -> Path:
    return Path(cwd or Path.cwd()).absolute()


def _environment(env: Mapping[str, str] | None) -> dict[str, object]:
    """What this process brings for the workers it asks for; nothing when it is a worker itself."""
    brought = CallerEnvironment(shell=shell_variables(os.environ), given=dict(env or {}))
    return {"environment": brought} if brought.names else {}
