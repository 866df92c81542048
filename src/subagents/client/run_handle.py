"""One run, as the program that asked for it holds it (``Orchestrator.spawn``, ``get``)."""

import asyncio
import math
import warnings
from collections.abc import AsyncIterator, Sequence
from typing import Final, Literal, TypeVar

from subagents.api.wire.event_answers import Timeline, TimelineEvent, Why
from subagents.api.wire.log_answers import LogLine, LogPage, LogSummary
from subagents.api.wire.run_answers import (
    ResultFile,
    RunDetail,
    RunNode,
    RunResult,
    RunStatus,
    SentMessage,
    SpawnReceipt,
    StoredResult,
    WaitResult,
)
from subagents.api.wire.wire_struct import read
from subagents.client.client import AsyncClient, Document, Query, persistently_async, segment
from subagents.client.whole_result import whole
from subagents.errors import NotFound

WAIT_S: Final = 300.0
"""One long poll; ``RunHandle.wait`` repeats it for ever."""
LOG_WAIT_S: Final = 20
LOG_PAGE_LINES: Final = 1_000
SUMMARY_S: Final = 60.0
"""How long a summary may take: a model writes it."""

T = TypeVar("T")


class RunFailed(Exception):
    """A run that ended otherwise than ``ok``; ``result`` is all that it left behind."""

    def __init__(self, result: RunResult) -> None:
        end = result.outcome
        why = end.error or end.reason
        super().__init__(f"{result.label} ({result.run_id}) ended {end.status}: {why}")
        self.result = result


async def wait_for(
    client: AsyncClient,
    run_ids: Sequence[str],
    *,
    until: Literal["any", "all"],
    timeout: float | None,  # noqa: ASYNC109 - the runs go on
) -> list[RunResult]:
    """Those that ended, in the order of ``run_ids``, with their whole results; none of none.

    Daemons may come and go meanwhile: each is looked for for half a minute.

    Raises:
        DaemonUnreachable: None came back in that time.
        TimeoutError: Too few have ended within ``timeout`` seconds; all of them continue.
        NotFound: One was pruned.
    """
    if not run_ids:
        return []
    loop = asyncio.get_running_loop()
    deadline = math.inf if timeout is None else loop.time() + timeout

    async def ask() -> Document:
        left = min(max(deadline - loop.time(), 0.0), WAIT_S)
        body = {"runIds": list(run_ids), "until": until, "timeoutSeconds": left}
        return await client.post("/v1/wait", body, timeout_s=left)

    while True:
        found = read(await persistently_async(ask, until=deadline), WaitResult)
        for gone in found.errors:  # the first is enough: none of the others is consumed
            raise NotFound(gone.error)
        if found.completed and (until == "any" or not found.pending):
            ended = {each.run_id: await whole(client, each) for each in found.completed}
            # Only now: a result that could not be fetched was not handed over.
            client.hand_over(found.messages)
            return [ended[each] for each in run_ids if each in ended]
        if loop.time() >= deadline:
            late = ", ".join(each.run_id for each in found.pending)
            raise TimeoutError(f"run {late} has not ended within {timeout} s")


def timeout_of(timeout: float | None, timeout_s: float | None) -> float | None:
    """What was given under either name, with a warning for the former one."""
    if timeout_s is None:
        return timeout
    warnings.warn("timeout_s is timeout now", DeprecationWarning, stacklevel=3)
    return timeout_s


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

    def __repr__(self) -> str:
        return f"<RunHandle {self.id} {self.label!r}>"

    async def wait(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the run goes on
        *,
        timeout_s: float | None = None,
    ) -> RunResult:
        """Wait for the outcome and consume the announcement, once the caller has it: before its
        next call, a few seconds later, or when the ``Orchestrator``'s block ends without an error.

        Args:
            timeout: In seconds; None = as long as it takes.
            timeout_s: Its former name.

        Raises:
            TimeoutError: The run continues; waiting again is fine.
            NotFound: The run was pruned.
            DaemonUnreachable: The daemon went away and none came for half a minute. One that
                crashed is started again, and the wait goes on.
        """
        (ended,) = await wait_for(
            self._client, [self.id], until="all", timeout=timeout_of(timeout, timeout_s)
        )
        return ended

    async def result(self) -> str | None:
        """The whole result of a run that ended, whatever its length; None = it gave none, or has
        not ended. Consumes nothing.

        Raises:
            NotFound: The run was pruned, or the file with its long result is gone.
        """
        return (await whole(self._client, await self._ask("/result", StoredResult))).result

    async def artifacts(self) -> Sequence[ResultFile]:
        """The files of its contract, then those that its worker reported; none before it ended."""
        return (await self._ask("/result", StoredResult)).artifacts

    async def _ask(self, rest: str, kind: type[T]) -> T:
        return read(await self._client.get(f"/v1/runs/{self.id}{rest}"), kind)

    async def status(self) -> RunStatus:
        """How the run is doing now, as ``subagents list --now --json`` shows it."""
        return await self._ask("/status", RunStatus)

    async def show(self) -> RunDetail:
        """Everything about the run, with at most 8,000 characters of its result."""
        return await self._ask("", RunDetail)

    async def tree(self) -> RunNode:
        """The run with all runs below it, at most 1,000."""
        return await self._ask("/tree", RunNode)

    async def why(self) -> Why:
        """Why the run is where it is: one sentence, and the steps that led there."""
        return await self._ask("/why", Why)

    async def retry(self) -> "RunHandle":
        """Start a new run with the parameters of this one, which has ended.

        Raises:
            Conflict: It has not ended.
        """
        receipt = await self._client.post(f"/v1/runs/{self.id}/retry")
        return RunHandle(self._client, read(receipt, SpawnReceipt))

    async def pause(self) -> None:
        """Start nothing for it until ``resume``; a command at work stands still.

        Raises:
            Conflict: It has ended, or it is at work and its runtime cannot pause a worker.
        """
        await self._client.post(f"/v1/runs/{self.id}/pause")

    async def resume(self) -> None:
        """Go on after ``pause``.

        Raises:
            Conflict: It has ended.
        """
        await self._client.post(f"/v1/runs/{self.id}/resume")

    async def prioritize(self, priority: int) -> None:
        """Give it another place among those that wait for a slot; it holds for its retries, too.

        Args:
            priority: -1,000,000 to 1,000,000; higher starts first.

        Raises:
            Conflict: It has ended.
        """
        await self._client.post(f"/v1/runs/{self.id}/priority", {"priority": priority})

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
        """Every line of the transcript, from the first to the run's end, as they come.

        Raises:
            DaemonUnreachable: No daemon came back within half a minute.
        """
        after, ended = 0, False

        async def behind() -> LogPage:
            return await self.log(after_seq=after, limit=LOG_PAGE_LINES, wait_seconds=LOG_WAIT_S)

        while not ended:
            page = await persistently_async(behind, until=math.inf)
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

    async def steer(
        self, message: str, *, add_tokens: int | None = None, add_cost_usd: float | None = None
    ) -> str:
        """``steered`` into the live attempt, or ``queued`` for its next turn.

        By ``add_tokens`` and ``add_cost_usd`` its budget is raised.

        Raises:
            Conflict: Its runtime takes no messages, or it has ended.
        """
        body = {"message": message, "addTokens": add_tokens, "addCostUsd": add_cost_usd}
        answer = await self._client.post(f"/v1/runs/{self.id}/steer", body)
        return str(answer["status"])

    async def continue_(
        self,
        message: str,
        *,
        idempotency_key: str | None = None,
        add_tokens: int | None = None,
        add_cost_usd: float | None = None,
    ) -> "RunHandle":
        """Go on with this run's session, however it ended: the run that has the message now.

        It is a new one, or the one at work in the session, which gets the message (its ``receipt``
        has ``is_new`` and ``status``).

        Args:
            message: The next thing to do, at most 256 KiB; 4,000 characters for a run at work.
            idempotency_key: The same one twice is one message, for 24 hours.
            add_tokens: As in ``steer``; of a run that has ended, to what is left of its budget.
            add_cost_usd: The same of its cost.

        Raises:
            Conflict: Its runtime, or its ``cleanup``, left no session to continue; or the key
                stands for another message.
        """
        body = {
            "message": message,
            "idempotencyKey": idempotency_key,
            "addTokens": add_tokens,
            "addCostUsd": add_cost_usd,
        }
        sent = await self._client.post(f"/v1/runs/{self.id}/send", body)
        return RunHandle(self._client, read(sent, SentMessage))

    async def interrupt(self, reason: str | None = None) -> None:
        """End its present turn: it ends ``partial`` with what it has, and can be continued.

        Raises:
            Conflict: It is not at work, or its runtime cannot end a turn.
        """
        await self._client.post(f"/v1/runs/{self.id}/interrupt", {"reason": reason})

    async def answer(self, request_id: str, response: str) -> None:
        """Answer a question of this run's worker.

        Raises:
            AlreadyAnswered: Somebody, or its deadline, answered it otherwise before.
        """
        path = f"/v1/requests/{segment(request_id)}/respond"
        await self._client.post(path, {"response": response})

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
