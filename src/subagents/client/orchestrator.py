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
from typing import Final, Literal, Unpack, cast
from urllib.parse import quote

import msgspec

from subagents.client.agent_tools import Tools, camel, camel_keys
from subagents.client.client import AsyncClient, Document, Query
from subagents.client.daemon_start import ensure_daemon
from subagents.client.spawn_keywords import SpawnParameters
from subagents.config.paths import Paths
from subagents.domain.run.outcome import Outcome
from subagents.domain.run.run import Report, Usage
from subagents.domain.run.values import Value
from subagents.errors import Unavailable

WAIT_S: Final = 300.0
"""One long poll; ``RunHandle.wait`` repeats it for ever."""
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


class CheckResult(Value, frozen=True):
    """One check of the contract."""

    type: str
    target: str
    passed: bool
    reason: str | None = None
    evidence: str | None = None


class VerificationResult(Value, frozen=True):
    """What the contract found: ``passed``, ``failed`` or ``skipped``."""

    status: str
    checks: tuple[CheckResult, ...] = ()
    verified_at: int | None = None


class RunResult(Value, frozen=True):
    """How a run ended, and what it left behind."""

    run_id: str
    label: str
    outcome: Outcome
    result: str | None = None
    report: Report | None = None
    verification: VerificationResult | None = None
    usage: Usage | None = None
    artifacts: tuple[dict[str, object], ...] = ()
    last_words: str | None = None
    """The end of what it said, when it gave no result."""
    files_left: tuple[str, ...] = ()
    """Files of its contract that exist, when it ended badly."""
    workspace: dict[str, object] | None = None
    """Its worktree, and what it changed there (``isolation="worktree"``)."""

    @property
    def ok(self) -> bool:
        """Ended with status ``ok``; with a contract this means that every check passed."""
        return self.outcome.is_ok


class RunHandle:
    """One run, as its requester holds it."""

    def __init__(self, client: AsyncClient, receipt: Document) -> None:
        self._client = client
        self.id = str(receipt["runId"])
        self.label = str(receipt["label"])
        self.warnings = tuple(cast("Sequence[str]", receipt.get("warnings", ())))
        self.receipt = receipt

    async def wait(self, timeout_s: float | None = None) -> RunResult:
        """Wait for the outcome and consume the announcement.

        Args:
            timeout_s: In seconds; None = as long as it takes.

        Raises:
            TimeoutError: The run goes on; waiting again is fine.
            NotFound: The run was pruned.
        """
        loop = asyncio.get_running_loop()
        deadline = None if timeout_s is None else loop.time() + timeout_s
        while True:
            left = WAIT_S if deadline is None else min(max(deadline - loop.time(), 0.0), WAIT_S)
            ask = {"runIds": [self.id], "until": "all", "timeoutSeconds": left}
            answer = await self._client.post("/v1/wait", ask, timeout_s=left)
            completed = cast("Sequence[Document]", answer["completed"])
            if completed:
                offered = answer.get("messages") or ()
                if offered:
                    await self._client.post("/v1/inbox/ack", {"messageIds": offered})
                return msgspec.convert(completed[0], RunResult)
            if deadline is not None and loop.time() >= deadline:
                raise TimeoutError(f"run {self.id} has not ended within {timeout_s} s")

    async def status(self) -> Document:
        """The run's row as ``subagents status --json`` shows it."""
        return await self._client.get(f"/v1/runs/{self.id}/status")

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
    ) -> Document:
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

        Returns:
            ``{runId, label, totalLines, returnedLines, offset, droppedLines, lines, nextSeq,
            ended}``; a line is ``{seq, ts, type, text, attempt}``.

        Raises:
            UsageError: A parameter is wrong, or ``grep`` takes too long.

        Source: 4-observability §2.
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
        return await self._client.get(path, query, timeout_s=wait_seconds)

    async def follow(self) -> AsyncIterator[Document]:
        """Every line of the transcript, from the first to the run's end, as they come."""
        after, ended = 0, False
        while not ended:
            page = await self.log(after_seq=after, limit=LOG_PAGE_LINES, wait_seconds=LOG_WAIT_S)
            for line in cast("Sequence[Document]", page["lines"]):
                yield line
            after, ended = cast("int", page["nextSeq"]), bool(page["ended"])

    async def summary(self) -> Document:
        """What was done so far: ``{summary, writtenBy, …}``; a digest made without a model, or
        what the configured ``summarizer_agent`` wrote.
        """
        path = f"/v1/runs/{self.id}/log"
        return await self._client.get(path, {"summary": 1}, timeout_s=SUMMARY_S)

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
        ``isNew`` and ``status``).

        Args:
            message: The next thing to do, at most 256 KiB; 4,000 characters for a run at work.
            idempotency_key: The same one twice is one message, for 24 hours.

        Raises:
            Conflict: Its runtime, or its ``cleanup``, left no session to go on with.
        """
        body = {"message": message, "idempotencyKey": idempotency_key}
        return RunHandle(self._client, await self._client.post(f"/v1/runs/{self.id}/send", body))

    async def interrupt(self, reason: str | None = None) -> None:
        """End its present turn: it ends ``partial`` with what it has, and can be continued.

        Raises:
            Conflict: It is not at work, or its runtime cannot end a turn.
        """
        await self._client.post(f"/v1/runs/{self.id}/interrupt", {"reason": reason})

    async def answer(self, request_id: str, response: str) -> None:
        """Answer a question of this run's worker."""
        await self._client.post(f"/v1/requests/{request_id}/respond", {"response": response})

    async def timeline(self) -> Sequence[Document]:
        """Every event of the run so far, in order."""
        events: list[Document] = []
        after: int | None = 0
        while after is not None:
            page = await self._client.get(f"/v1/runs/{self.id}/timeline", {"afterSeq": after})
            events += cast("Sequence[Document]", page["events"])
            after = cast("int | None", page["nextSeq"])
        return events


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
            home: Where state lives; None = as for every other door (``SUBAGENTS_HOME`` or XDG).
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
        self, task: str, *, agent: str | None = None, **parameters: Unpack[SpawnParameters]
    ) -> RunHandle:
        """Store one run and return its handle before any worker starts.

        Args:
            task: What to do; 1 byte to 256 KiB.
            agent: Agent id; None = the configured default.
            parameters: The spawn parameters in snake_case: ``label``, ``verification``,
                ``retry_count``, ``depends_on``, …; docs/spawn-parameters.md lists them all.

        Raises:
            UsageError: A parameter is unknown or wrong; nothing was stored.
            Forbidden: A guardrail refused; nothing was stored.
        """
        spec = {"task": task, **{camel(name): value for name, value in parameters.items()}}
        if agent is not None:
            spec["agentId"] = agent
        receipt = await self._client.post("/v1/runs", {"spec": camel_keys(spec), "cwd": self._cwd})
        return RunHandle(self._client, receipt)

    async def plan(self, runs: Sequence[Mapping[str, object]]) -> tuple[RunHandle, ...]:
        """Store all of these runs or none; they name each other by label in ``depends_on``."""
        specs = [camel_keys({camel(k): v for k, v in run.items()}) for run in runs]
        answer = await self._client.post("/v1/plans", {"specs": specs, "cwd": self._cwd})
        receipts = cast("Sequence[Document]", answer["receipts"])
        return tuple(RunHandle(self._client, receipt) for receipt in receipts)

    async def run(self, selector: str) -> RunHandle:
        """The handle of a run spawned before: by id, label, unique prefix or ``last``.

        Raises:
            NotFound: No such run.
        """
        return RunHandle(self._client, await self._client.get(f"/v1/runs/{selector}/status"))

    async def inbox(self) -> Sequence[Document]:
        """Unread messages, consumed by this call."""
        answer = await self._client.post("/v1/inbox", {})
        messages = cast("Sequence[Document]", answer["messages"])
        if messages:
            ids = [message["id"] for message in messages]
            await self._client.post("/v1/inbox/ack", {"messageIds": ids})
        return messages

    async def agent_stats(
        self,
        *,
        by: Literal["agent", "tag", "model"] = "agent",
        agent: str | None = None,
        tag: str | None = None,
        model: str | None = None,
        days: int = 30,
    ) -> Sequence[Document]:
        """What ended attempts came to: counts, success with interval and n, runtime, tokens, cost.

        Args:
            by: What is counted together; its name is ``name``.
            agent: Only this agent's attempts.
            tag: Only attempts of runs with this tag.
            model: Only attempts with this model.
            days: UTC days up to and with today, 1 to 30.

        Source: 4-observability §6.
        """
        query = {"by": by, "agent": agent, "tag": tag, "model": model, "days": days}
        answer = await self._client.get("/v1/agents/stats", query)
        return cast("Sequence[Document]", answer["stats"])

    async def suggest_agents(
        self,
        hint: str = "",
        *,
        tags: Sequence[str] = (),
        cost_tier: Literal["free", "cheap", "medium", "expensive"] | None = None,
    ) -> Sequence[Document]:
        """The configured agents, the best for this work first, each with ``reasons``; starts none.

        Args:
            hint: The work in words.
            tags: What the agent should be good at.
            cost_tier: What it may cost.

        Source: 4-observability §7.
        """
        query = {"hint": hint, "tags": ",".join(tags), "costTier": cost_tier, "cwd": self._cwd}
        answer = await self._client.get("/v1/agents/suggest", query)
        return cast("Sequence[Document]", answer["suggestions"])

    async def attention(self) -> Sequence[Document]:
        """What needs a person: questions, blockers, undelivered and failed runs."""
        answer = await self._client.get("/v1/attention")
        return cast("Sequence[Document]", answer["items"])

    async def events(
        self,
        *,
        after: int | None = None,
        run: str | None = None,
        tree: str | None = None,
        types: Sequence[str] = (),
    ) -> AsyncIterator[Document]:
        """What happens to runs, in one order, as it happens; goes on with the next daemon.

        Args:
            after: ``seq`` of the last event that was seen; 0 = from the beginning, None = only what
                is new.
            run: Only of this run.
            tree: Only of this run and all below it.
            types: Only these, such as ``completion`` or ``run``; empty = all.

        Yields:
            The documents of docs/events.md; each has its number as ``seq``.

        Raises:
            DaemonUnreachable: No daemon came back within half a minute.
        """
        query = {"run": run, "tree": tree, "types": ",".join(types) or None}
        seen = after
        if seen is None:
            seen = cast("int", (await self._client.get("/v1/events", query))["seq"])
        while True:
            answer = await self._persistently({**query, "after": seen, "wait": EVENTS_WAIT_S})
            for event in cast("Sequence[Document]", answer["events"]):
                yield event
            seen = cast("int", answer["seq"])

    async def _persistently(self, query: Mapping[str, str | int | None]) -> Document:
        """A page of events, also when the daemon is started anew meanwhile."""
        loop = asyncio.get_running_loop()
        due: float | None = None
        while True:
            try:
                return await self._client.get("/v1/events", query, timeout_s=EVENTS_WAIT_S)
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
