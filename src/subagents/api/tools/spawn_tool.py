"""``sessions_spawn``: one run, or many at once that name each other by label."""

from collections.abc import Mapping, Sequence
from typing import Final

from subagents.api.answers import run_building, waking
from subagents.api.tools.tool import Answer, Call, picked
from subagents.api.tools.tool_wording import joined
from subagents.api.wire import requests as wire
from subagents.api.wire.decoding import as_object, refuse_unknown
from subagents.api.wire.wire_struct import Document
from subagents.config.layers import Config
from subagents.domain.rules.parameter_checks import check_name
from subagents.domain.run.spec import BATCH_RUNS_MAX, IDEMPOTENCY_KEY_CHARS_MAX, Resolved, RunSpec
from subagents.domain.run.values import replace
from subagents.engine.runs.spawn import Receipt
from subagents.engine.runs.spawn_call import RunAsked
from subagents.errors import UsageError
from subagents.text import one_line, tools_in_words

RECEIPT: Final = (
    *("status", "childSessionKey", "runId", "mode", "label", "phase", "resolvedModel"),
    *("effectiveTools", "access", "warnings", "note", "threadId"),
)
ONE_RUN: Final = ("task", "label")
"""Parameters that cannot hold for several runs together."""
FULL_RECEIPTS_MAX: Final = 100
"""A larger batch is answered with ``SHORT_RECEIPT``: a thousand whole ones fill a context."""
SHORT_RECEIPT: Final = ("status", "runId", "label", "phase")
BATCH: Final = "batch"
"""The parameters next to it hold for all its runs that do not give them themselves."""


async def spawn(call: Call) -> Answer:
    """Start one run or a batch, all or nothing; returns before any of them works."""
    arguments = dict(call.arguments)
    if BATCH in arguments:
        specs = _batch(arguments)
    else:
        refuse_unknown(arguments, RunSpec, also=(BATCH,))
        specs = (wire.parse_spec(arguments),)
    specs = _keyed(specs, call.call_id, is_batch=BATCH in arguments)
    resolved = await _resolved_of(call)
    config = await _config(call, resolved)
    with config.explaining():
        receipts = await call.services.engine.spawner.spawn_batch(
            [RunAsked(spec=each) for each in specs],
            call.caller.context(
                config.settings, call.caller.cwd or (resolved.cwd if resolved else "")
            ),
        )
    # What was ignored of a project's file concerns all of them: the first receipt says it.
    first, *others = receipts
    receipts = (replace(first, warnings=(*first.warnings, *config.ignored)), *others)
    run_id = call.caller.run_id
    requester = None if run_id is None else call.services.engine.queries.open_run(run_id)
    wake = waking.wake(call.services, call.caller.session, requester, call.waker)
    text = joined([*(_line(each) for each in receipts), wake])
    found: Document = {"status": "accepted", "receipts": _documents(receipts)}
    if BATCH not in arguments:
        found = _document(receipts[0])
    return Answer(text=text, structured={**found, "wake": wake})


def _batch(arguments: Mapping[str, object]) -> tuple[RunSpec, ...]:
    """The specs of a batch, each with the parameters that hold for all of them.

    Raises:
        UsageError: Names the entry (``batch[3].retryCount``) and what is allowed.
    """
    entries = arguments[BATCH]
    if not isinstance(entries, list) or not 1 <= len(entries) <= BATCH_RUNS_MAX:
        found = len(entries) if isinstance(entries, list) else "none"
        raise UsageError(
            f"batch must be a list of 1 to {BATCH_RUNS_MAX} runs, not {found}",
            details={"field": BATCH},
        )
    shared = {name: value for name, value in arguments.items() if name != BATCH}
    refuse_unknown(shared, RunSpec, also=(BATCH,))
    for name in ONE_RUN:
        if name in shared:
            raise UsageError(
                f"{name} and batch exclude each other: give each entry of batch its own {name}",
                details={"field": name},
            )
    # One key for the batch becomes one for each entry: the same key twice would be one run.
    key = shared.pop("idempotencyKey", None)
    if key is not None:
        wire.parse_spec({"task": "-", "idempotencyKey": key})
    specs = []
    for index, entry in enumerate(entries):
        at = f"batch[{index}]."
        if not isinstance(entry, dict):
            raise UsageError(f"batch[{index}] must be an object of spawn parameters")
        refuse_unknown(entry, RunSpec, inside=at)
        own = {} if key is None else {"idempotencyKey": f"{key}:{index}"}
        specs.append(wire.parse_spec({**shared, **own, **as_object(entry)}, at=at))
    return tuple(specs)


def _keyed(specs: Sequence[RunSpec], call_id: str | None, *, is_batch: bool) -> tuple[RunSpec, ...]:
    """The specs under the id of their call, where the caller gave them no key of their own."""
    if call_id is None:
        return tuple(specs)
    check_name("the id of the call", call_id, chars_max=IDEMPOTENCY_KEY_CHARS_MAX - 10)
    return tuple(
        spec
        if spec.idempotency_key is not None
        else replace(spec, idempotency_key=f"{call_id}:{index}" if is_batch else call_id)
        for index, spec in enumerate(specs)
    )


async def config_of(call: Call) -> Config:
    """The configuration that holds where the caller is, as far as it holds for agents."""
    return await _config(call, await _resolved_of(call))


async def _config(call: Call, resolved: Resolved | None) -> Config:
    # A worker's project is its run's: else it could choose its limits by its working directory.
    where = call.caller.cwd if resolved is None else resolved.project
    return await call.services.config_in(where, is_operator=False)


async def _resolved_of(call: Call) -> Resolved | None:
    """Of the run on whose behalf a worker calls; None for top-level sessions."""
    run_id = call.caller.run_id
    return None if run_id is None else (await call.services.engine.queries.run(run_id)).resolved


def _documents(receipts: Sequence[Receipt]) -> list[Document]:
    # Warnings stay even in a short receipt: no later call repeats them.
    found = [_document(each) for each in receipts]
    if len(found) <= FULL_RECEIPTS_MAX:
        return found
    return [
        {
            name: each[name]
            for name in (*SHORT_RECEIPT, *(("warnings",) if each["warnings"] else ()))
        }
        for each in found
    ]


def _document(receipt: Receipt) -> Document:
    found = run_building.receipt(receipt)
    names = [each for each in RECEIPT if each != "threadId" or found.thread_id is not None]
    return picked(found, names)


def _line(receipt: Receipt) -> str:
    run = receipt.run
    document = _document(receipt)
    tools, servers = run.resolved.effective_tools, run.resolved.mcp_servers
    scope = "".join(f"; {each}" for each in tools_in_words(tools, (), servers))
    access = run.resolved.access
    scope += f"; it {access.text}" if access is not None else ""
    tree = run.resolved.worktree
    scope += f"; worktree {tree.path}, branch {tree.branch}" if tree is not None else ""
    thread = run_building.thread_id(run)
    scope += f"; thread {thread}" if thread is not None else ""
    warnings = "".join(f"\n  warning: {each}" for each in receipt.warnings)
    return (
        f'accepted: {run.id} "{one_line(run.resolved.label)}" by agent {run.resolved.agent_id},'
        f" {run.phase}{scope}; {document['note']}{warnings}"
    )
