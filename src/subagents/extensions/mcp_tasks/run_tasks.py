"""Runs as MCP tasks: the run is the task, and its id is the task's id (docs/decisions/0016).

A wait is a task whose id says what is waited for and until when, so that it, too, is answered
after any crash. Only that a wait was cancelled, and that a person would not answer a question, is
remembered in memory: after a restart the one goes through and the other is asked again.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from subagents.api.answers import run_questions
from subagents.api.calls.auth import note_refusal
from subagents.api.calls.call import require_own
from subagents.api.calls.services import Services
from subagents.api.tools.tool import Answer
from subagents.api.wire.requests import RespondBody
from subagents.config.settings import Retention
from subagents.domain.run.outcome import Status
from subagents.domain.run.run import Request, Run
from subagents.domain.run.values import RunId, announcement_id
from subagents.errors import ConfigError, Forbidden, NotFound
from subagents.extensions.mcp.mcp_calls import (
    ToolParams,
    answer_of,
    handed_over,
    offered_meta,
    tool_result,
)
from subagents.extensions.mcp.mcp_exchange import Exchange
from subagents.extensions.mcp.mcp_message import INVALID_PARAMS, Document, RpcError
from subagents.extensions.mcp.mcp_server import McpRequest, Method, declaring
from subagents.extensions.mcp_tasks.task_extension import (
    EXTENSION,
    Task,
    TaskStatus,
    asks_people,
    task_methods,
)
from subagents.text import cut, one_line

SPAWN: Final = "sessions_spawn"
WAIT: Final = "sessions_wait"
RUNS_MAX: Final = 100
"""The most runs of one task; larger batches and waits are answered without a task: its id is as
long as its list."""
WAIT_S_MAX: Final = 600
MESSAGE_CHARS_MAX: Final = 500
LABELS_MAX: Final = 3
QUESTION_CHARS_MAX: Final = 2_000
REMEMBERED_MAX: Final = 1_000
"""Waits that were cancelled, and questions that were declined."""
POLL_LATE_MS: Final = 10_000
"""How late a client may look again before it counts as gone."""
DAY_MS: Final = 86_400_000
_POLLS: Final = ((60_000, 1_000), (600_000, 3_000))
"""Up to this age of a task: look again after so long. Then:"""
_POLL_MS: Final = 5_000
_RUN: Final = re.compile(r"r-[A-Za-z0-9_-]{1,64}")
_BATCH: Final = re.compile(r"batch((?:\.[A-Za-z0-9_-]{1,64})+)")
_WAIT: Final = re.compile(
    r"wait\.(any|all)\.([0-9]{1,13})\.([0-9]{1,13})((?:\.[A-Za-z0-9_-]{1,64})+)"
)
"""Its times are milliseconds up to the year 2286: those that a calendar can show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """What a task's id says."""

    run_ids: tuple[RunId, ...]
    until: str = "all"
    created_at_ms: int | None = None
    """When a wait began; a spawn is as old as its runs."""
    deadline_ms: int = 0
    """When a wait ends; 0 = never."""

    @property
    def is_wait(self) -> bool:
        return self.created_at_ms is not None


def methods(services: Services, known: Mapping[str, Method]) -> Mapping[str, Method]:
    """The hook ``mcp``: calls of tools that may become tasks, and ``tasks/…``."""
    return {
        "server/discover": declaring(known["server/discover"], "extensions", EXTENSION),
        **task_methods(RunTasks(services), known["tools/call"].handler),
    }


class RunTasks:
    """``sessions_spawn`` and ``sessions_wait`` as tasks."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._cancelled_waits: dict[str, None] = {}
        self._declined: dict[str, None] = {}

    def needs_task(self, _tool: str) -> bool:
        return False

    async def begin(self, request: McpRequest, asked: ToolParams) -> Task | Document | None:
        if asked.name == SPAWN:
            return await self._spawn(request, asked.arguments or {})
        if asked.name == WAIT:
            return await self._wait(request, asked.arguments or {})
        return None

    async def look(self, request: McpRequest, task_id: str) -> Task:
        named = parse(task_id)
        runs = await self._runs(request, task_id, named)
        task = self._standing(task_id, named, runs)
        if task.status is TaskStatus.CANCELLED:
            await self._told_of_cancel(request, named, runs)
            return task
        if task.status is TaskStatus.COMPLETED:
            return await self._finished(request, task, named)
        asked = {} if named.is_wait or not asks_people(request.message) else self._questions(runs)
        self._comes_back(task, named, asked)
        if asked:
            return replace(task, status=TaskStatus.INPUT_REQUIRED, input_requests=asked)
        return task

    async def update(self, request: McpRequest, task_id: str, responses: Mapping[str, Any]) -> None:
        runs = await self._runs(request, task_id, parse(task_id))
        pending = {str(each.id) for run in runs for each in run.pending_requests}
        for request_id, response in responses.items():
            if request_id in pending:
                await self._respond(request, request_id, response)

    async def cancel(self, request: McpRequest, task_id: str) -> None:
        named = parse(task_id)
        runs = await self._runs(request, task_id, named)
        if named.is_wait:
            _remember(self._cancelled_waits, task_id)
            return
        caller = request.exchange.caller
        for run in runs:
            if not run.is_settled:
                await self._services.engine.control.cancel(
                    run.id, by=caller.session, reason="tasks/cancel"
                )

    # -- beginning -------------------------------------------------------------------------

    async def _spawn(self, request: McpRequest, arguments: Mapping[str, Any]) -> Task | Document:
        exchange = request.exchange
        answer = await answer_of(request, SPAWN, arguments, is_task=True)
        receipts = [] if answer.is_error else _receipts(answer)
        if not 1 <= len(receipts) <= RUNS_MAX:
            return handed_over(exchange, answer)
        exchange.services.engine.mailbox.release(answer.offered, reader=exchange.caller.reader)
        named = _Named(run_ids=_ids(receipts))
        task_id = spell(named)
        runs = [await self._services.engine.queries.run(run_id) for run_id in named.run_ids]
        task = self._standing(task_id, named, runs)
        self._comes_back(task, named)
        warnings = "".join(f"; warning: {one_line(each)}" for each in _warnings(receipts))
        wake = f"; {answer.structured['wake']}" if "wake" in answer.structured else ""
        # Also a run that was spawned before under this key and is over: its result is fetched.
        return replace(
            task,
            status=TaskStatus.WORKING,
            message=cut(f"{task.message}{wake}{warnings}", MESSAGE_CHARS_MAX),
        )

    async def _wait(
        self, request: McpRequest, arguments: Mapping[str, Any]
    ) -> Task | Document | None:
        """A look now, and a task only when there is something left to wait for."""
        timeout_s = arguments.get("timeoutSeconds")
        if timeout_s is not None and not _is_timeout(timeout_s):
            return None
        exchange = request.exchange
        answer = await answer_of(request, WAIT, {**arguments, "timeoutSeconds": 0})
        found = answer.structured
        completed, pending = _ids(found.get("completed")), _ids(found.get("pending"))
        until = arguments.get("until") or "any"
        is_enough = not pending if until == "all" else bool(completed)
        if answer.is_error or is_enough or found.get("errors") or not pending:
            return handed_over(exchange, answer)
        exchange.services.engine.mailbox.release(answer.offered, reader=exchange.caller.reader)
        if len(completed) + len(pending) > RUNS_MAX:
            return None
        now_ms = self._services.now_ms()
        named = _Named(
            run_ids=(*completed, *pending),
            until=str(until),
            created_at_ms=now_ms,
            # Nobody holds a line here, so without a word about it there is no end to the wait.
            deadline_ms=0 if timeout_s is None else now_ms + round(timeout_s * 1000),
        )
        task_id = spell(named)
        task = self._standing(task_id, named, await self._runs(request, task_id, named))
        self._comes_back(task, named)
        return task

    def _comes_back(self, task: Task, named: _Named, asked: Iterable[str] = ()) -> None:
        """The client looks again soon, so nobody else needs to bring the results meanwhile."""
        brought = [*map(announcement_id, named.run_ids), *asked]
        self._services.engine.mailbox.expect(brought, for_ms=task.poll_ms + POLL_LATE_MS)

    # -- looking ---------------------------------------------------------------------------

    async def _runs(self, request: McpRequest, task_id: str, named: _Named) -> list[Run]:
        """The runs of a task, when all of them are the caller's to see.

        Raises:
            NotFound: One of them is not, or there is none such.
        """
        exchange = request.exchange
        try:
            runs = [await self._services.engine.queries.run(run_id) for run_id in named.run_ids]
            for run in runs:
                await require_own(self._services, run, exchange.caller)
        except Forbidden as error:
            note_refusal(
                self._services,
                exchange.caller,
                f"{request.message.method} {task_id}",
                error.message,
            )
            raise _unknown(task_id) from error
        except NotFound as error:
            raise _unknown(task_id) from error
        return runs

    def _standing(self, task_id: str, named: _Named, runs: Sequence[Run]) -> Task:
        created = named.created_at_ms
        if created is None:
            created = min(run.times.created_at_ms for run in runs)
        now_ms = self._services.now_ms()
        return Task(
            id=task_id,
            status=self._status(task_id, named, runs, now_ms),
            created_at_ms=created,
            updated_at_ms=max(created, *(run.news_at_ms for run in runs)),
            ttl_ms=self._ttl_ms(),
            poll_ms=next((poll for age, poll in _POLLS if now_ms - created < age), _POLL_MS),
            message=_message(named, runs),
        )

    def _status(self, task_id: str, named: _Named, runs: Sequence[Run], now_ms: int) -> TaskStatus:
        ended = [run.is_settled for run in runs]
        if named.is_wait:
            if task_id in self._cancelled_waits:
                return TaskStatus.CANCELLED
            is_enough = all(ended) if named.until == "all" else any(ended)
            is_late = 0 < named.deadline_ms <= now_ms
            return TaskStatus.COMPLETED if is_enough or is_late else TaskStatus.WORKING
        if not all(ended):
            return TaskStatus.WORKING
        if all(_is_cancelled(run) for run in runs):
            return TaskStatus.CANCELLED
        return TaskStatus.COMPLETED

    async def _finished(self, request: McpRequest, task: Task, named: _Named) -> Task:
        """With what ``sessions_wait`` says of these runs now; new results are handed over."""
        exchange = request.exchange
        asked = {"runIds": list(named.run_ids), "until": named.until, "timeoutSeconds": 0}
        answer = await answer_of(request, WAIT, asked)
        exchange.hand_over(answer.offered)
        return replace(task, result=tool_result(answer), meta=offered_meta(exchange, answer))

    async def _told_of_cancel(
        self, request: McpRequest, named: _Named, runs: Sequence[Run]
    ) -> None:
        """Who cancelled a run and reads that it is over need not find it in its inbox, too."""
        exchange = request.exchange
        by = {run.control.cancel.by if run.control.cancel is not None else None for run in runs}
        if named.is_wait or by != {exchange.caller.session}:
            return
        asked = {"runIds": list(named.run_ids), "timeoutSeconds": 0}
        exchange.hand_over((await answer_of(request, WAIT, asked)).offered)

    def _ttl_ms(self) -> int:
        try:
            retention = self._services.config_known().settings.retention
        except ConfigError:
            # Somebody is editing it; a task that is there must not vanish meanwhile.
            retention = Retention()
        return retention.result_retention_days * DAY_MS

    # -- questions -------------------------------------------------------------------------

    def _questions(self, runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
        return {
            str(request.id): _elicitation(run, request)
            for run in runs
            for request in run.pending_requests
            if request.id not in self._declined
        }

    async def _respond(self, request: McpRequest, request_id: str, response: object) -> None:
        given = response if isinstance(response, dict) else {}
        if given.get("action") != "accept":
            _remember(self._declined, request_id)
            return
        content = given.get("content")
        text = content.get("answer") if isinstance(content, dict) else None
        if not isinstance(text, str) or not text.strip():
            raise RpcError(
                INVALID_PARAMS, f'inputResponses["{request_id}"].content.answer must be a text'
            )
        exchange = request.exchange
        if await self._approved(exchange, request_id, text):
            return
        arguments = {"requestId": request_id, "response": text}
        answer = await answer_of(request, "respond_orchestrator_request", arguments)
        exchange.services.engine.mailbox.release(answer.offered, reader=exchange.caller.reader)
        if answer.is_error:
            raise RpcError(INVALID_PARAMS, answer.text)

    async def _approved(self, exchange: Exchange, request_id: str, text: str) -> bool:
        """Take a person's decision about more access; False = the question is another one.

        It was typed into the client's form: an agent cannot say it through a tool.
        """
        run = await run_questions.asking_run(self._services, exchange.caller, request_id)
        if run.approval is None or run.approval.id != request_id:
            return False
        decision = "approve" if text.strip().lower() == "approve" else "deny"
        body = RespondBody(response=text, decision=decision)
        await run_questions.respond(
            self._services, exchange.caller, request_id, body, is_person=True
        )
        return True


# -- the id of a task ---------------------------------------------------------------------------


def spell(named: _Named) -> str:
    """The id of a task; a single spawned run is its own."""
    if named.created_at_ms is None and len(named.run_ids) == 1:
        return named.run_ids[0]
    short = ".".join(run_id.removeprefix("r-") for run_id in named.run_ids)
    if named.created_at_ms is None:
        return f"batch.{short}"
    return f"wait.{named.until}.{named.created_at_ms}.{named.deadline_ms}.{short}"


def parse(task_id: str) -> _Named:
    """What an id says.

    Raises:
        NotFound: It is none of ours.
    """
    if _RUN.fullmatch(task_id):
        return _Named(run_ids=(RunId(task_id),))
    if found := _BATCH.fullmatch(task_id):
        return _Named(run_ids=_run_ids(found[1]))
    if found := _WAIT.fullmatch(task_id):
        return _Named(
            run_ids=_run_ids(found[4]),
            until=found[1],
            created_at_ms=int(found[2]),
            deadline_ms=int(found[3]),
        )
    raise _unknown(task_id)


def _run_ids(text: str) -> tuple[RunId, ...]:
    run_ids = tuple(RunId(f"r-{each}") for each in text.split(".") if each)
    if len(run_ids) > RUNS_MAX:
        raise NotFound("no such task")
    return run_ids


def _unknown(task_id: str) -> NotFound:
    return NotFound(f"no task {task_id[:100]}", hint="see: subagents list")


# -- small parts --------------------------------------------------------------------------------


def _receipts(answer: Answer) -> list[Document]:
    """What was accepted: one run, or those of a batch."""
    found = answer.structured.get("receipts")
    return found if isinstance(found, list) else [answer.structured]


def _ids(documents: object) -> tuple[RunId, ...]:
    rows = documents if isinstance(documents, list) else []
    return tuple(RunId(str(row["runId"])) for row in rows if isinstance(row, dict))


def _warnings(receipts: Sequence[Document]) -> list[str]:
    """Each with the run it is about."""
    found = ((receipt.get("runId"), receipt.get("warnings")) for receipt in receipts)
    return [
        f"{run_id}: {each}"
        for run_id, warnings in found
        if isinstance(warnings, list)
        for each in warnings
    ]


def _is_timeout(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < float(value) <= WAIT_S_MAX  # type: ignore[arg-type]


def _is_cancelled(run: Run) -> bool:
    return run.outcome is not None and run.outcome.status is Status.CANCELLED


def _message(named: _Named, runs: Sequence[Run]) -> str:
    shown = sorted(runs, key=lambda run: run.is_settled)[:LABELS_MAX]
    parts = [_status_of(run) for run in shown]
    more = len(runs) - len(shown)
    if more:
        parts.append(f"{more} more")
    start = "waiting for " if named.is_wait else ""
    return cut(f"{start}{'; '.join(parts)}", MESSAGE_CHARS_MAX)


def _status_of(run: Run) -> str:
    """``run r-… "label": running, writing tests 40 %, asks: …``"""
    parts = [str(run.outcome.status if run.outcome is not None else run.phase)]
    if run.outcome is None and run.progress.latest is not None:
        percent = run.progress.latest.percent_complete
        done = "" if percent is None else f" {percent:g} %"
        parts.append(f"{one_line(run.progress.latest.phase)}{done}")
    if run.outcome is None and run.pending_requests:
        request = run.pending_requests[0]
        parts.append(f"asks ({request.id}): {one_line(request.question)}")
    return f'run {run.id} "{one_line(run.resolved.label)}": {", ".join(parts)}'


def _elicitation(run: Run, request: Request) -> dict[str, Any]:
    """A worker's question as a form with one field."""
    answer: dict[str, Any] = {"type": "string", "title": "Answer"}
    if request.options:
        answer["enum"] = list(request.options)
    context = f"\n\n{request.context}" if request.context else ""
    text = f'Sub-agent "{one_line(run.resolved.label)}" asks: {request.question}{context}'
    return {
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": text[:QUESTION_CHARS_MAX],
            "requestedSchema": {
                "type": "object",
                "properties": {"answer": answer},
                "required": ["answer"],
            },
        },
    }


def _remember(known: dict[str, None], name: str) -> None:
    known[name] = None
    while len(known) > REMEMBERED_MAX:
        del known[next(iter(known))]
