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
from typing import Final, cast
from urllib.parse import quote

import msgspec

from subagents.client import AsyncClient, Document, ensure_daemon
from subagents.config.paths import Paths
from subagents.domain.model import Report, Usage
from subagents.domain.outcome import Outcome
from subagents.domain.values import Value
from subagents.orchestrator_tools import Tools, camel, camel_keys

WAIT_S: Final = 300.0
"""One long poll; ``RunHandle.wait`` repeats it for ever."""
DEFAULT_SESSION: Final = "agent:main:main"


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
        self, task: str, *, agent: str | None = None, **parameters: object
    ) -> RunHandle:
        """Store one run and return its handle before any worker starts.

        Args:
            task: What to do; 1 byte to 256 KiB.
            agent: Agent id; None = the configured default.
            parameters: The other parameters of ``sessions_spawn`` in snake_case: ``label``,
                ``verification``, ``retry_count``, ``depends_on``, ``run_timeout_seconds``, …

        Raises:
            UsageError: A parameter is unknown or wrong; nothing was stored.
            Forbidden: A guardrail refused; nothing was stored.

        Source: 5-surfaces §6; 2-lifecycle §2.
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

    async def attention(self) -> Sequence[Document]:
        """What needs a person: questions, blockers, undelivered and failed runs."""
        answer = await self._client.get("/v1/attention")
        return cast("Sequence[Document]", answer["items"])


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
